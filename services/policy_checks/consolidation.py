"""What is a model asked, and what may its reply change? It may ask for a revision, on evidence that exists.

Evidence is a finding of at least minor severity, or words of thesis or rationale that code finds there, with
the reason why they speak against the plan. No reply blocks: that is the rules' alone. The wire model is
closed, so it has no place for a trigger, a feature, a hypothesis or a playbook; free text that brings one in
is refused as well, and the refusal is a finding. A need for something new goes to the slow loop. Pure
functions over request and reply; the call and its deadline are the service's.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter

from prompts import PromptTemplate
from schemas.canonical import canonical_json
from schemas.reflection import Finding, PolicyLevelReflectionRequest
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import MalformedReply, is_read, read_reply
from services.model_calls.wording import PLAIN, Wording
from services.policy_checks.findings import status_of
from trading_core.features import FEATURES

LONGEST_REPLY = 8_000
STRICTNESS = {ReflectionStatus.PASS: 0, ReflectionStatus.REVISE: 1, ReflectionStatus.BLOCK: 2}
OF_WEIGHT = (Severity.MINOR, Severity.MAJOR, Severity.BLOCKER)  # what a stricter verdict may rest on
QuotationCode = Literal[
    "text_contradicts_direction",
    "text_not_about_this_plan",
    "text_cites_the_future",
    "text_claims_unknown_fact",
]
SHORTEST_QUOTATION = 2  # words
MARKS = {"'": "‘’‚‛", '"': "“”„‟", "-": "–—−‐‑"}
PLAIN_MARKS = {ord(mark): plain for plain, marks in MARKS.items() for mark in marks}
NAME = re.compile(r"[a-z][a-z0-9_]*")
COMPARISON = re.compile(r"([\w.]+)\s*(<=|>=|==|!=|<|>)\s*(-?[\w.]+)")
PLAIN_WORDS = frozenset({"highest", "lowest", "efficiency"})  # indicators whose name is also an ordinary word


class Quotation(BaseModel):
    """Words of thesis or rationale as they stand there, and why they speak against the plan."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    text: str = Field(min_length=1, max_length=300)
    code: QuotationCode


class ConsolidationReply(BaseModel):
    """The closed wire model of the consolidation; `findings` holds ids, and block asks for a revision."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    verdict: Literal["pass", "revise", "block"]
    summary: str = Field(max_length=600)
    findings: tuple[str, ...] = Field(max_length=20)
    quotations: tuple[Quotation, ...] = Field(default=(), max_length=5)
    deferred_needs: tuple[Annotated[str, StringConstraints(min_length=1, max_length=300)], ...] = Field(
        default=(), max_length=5
    )


_REPLY = TypeAdapter(ConsolidationReply)


@dataclass(frozen=True)
class Consolidation:
    """What a reply adds. `refused` names the finding for which the reply counts for nothing."""

    findings: tuple[Finding, ...]
    deferred: tuple[str, ...] = ()
    refused: str | None = None


def consolidation_question(
    template: PromptTemplate,
    request: PolicyLevelReflectionRequest,
    findings: Sequence[Finding],
    wording: Wording = PLAIN,
) -> str:
    """The request to a model: everything that somebody wrote stands in it as quoted JSON, a line each."""
    named = [
        {"id": id_, **found.payload()} for id_, found in zip(finding_ids(findings), findings, strict=True)
    ]
    return template.render(
        verdict=status_of(findings).value,
        findings=wording.json(named),
        proposal=wording.json(request.proposal.payload()),
        playbook=wording.json(request.playbook.payload()),
        snapshot=wording.json(request.snapshot.payload()),
    )


def finding_ids(findings: Sequence[Finding]) -> tuple[str, ...]:
    """What each finding is cited by: its code, or `code#1`, `code#2` where several share the code."""
    total, seen = Counter(found.code for found in findings), Counter[str]()
    ids = []
    for found in findings:
        seen[found.code] += 1
        ids.append(found.code if total[found.code] == 1 else f"{found.code}#{seen[found.code]}")
    return tuple(ids)


def weigh_reply(
    text: str,
    request: PolicyLevelReflectionRequest,
    findings: Sequence[Finding],
    wording: Wording = PLAIN,
) -> Consolidation:
    """Findings and needs that a reply may add to the deterministic `findings`, as they were worded."""
    reply = _read(text)
    if isinstance(reply, Finding):
        return Consolidation((reply,), refused=reply.code)
    floor, needs = status_of(findings), reply.deferred_needs
    stricter = floor is ReflectionStatus.PASS and reply.verdict != "pass"
    refusal = (
        _scope_refusal(reply, request, findings, wording)
        or _citation_refusal(reply, findings)
        or _quotation_refusal(reply, request, wording)
        or (_evidence_refusal(reply, findings) if stricter else None)
    )
    if refusal is not None:
        return Consolidation((refusal,), refused=refusal.code)
    if stricter:
        return Consolidation(_objections(reply), needs)
    summary = _finding("model_summary", Severity.INFO, reply.summary, reply.findings)
    if STRICTNESS[ReflectionStatus(reply.verdict)] < STRICTNESS[floor]:
        message = f"the model answered {reply.verdict!r}; the rules' {floor.value!r} holds"
        return Consolidation((_finding("model_raised_verdict", Severity.INFO, message), summary), needs)
    return Consolidation((summary,), needs)


def stated_verdict(text: str) -> ReflectionStatus | None:
    """The verdict that a reply states; None when it is no answer."""
    reply = _read(text)
    return None if isinstance(reply, Finding) else ReflectionStatus(reply.verdict)


def _read(text: str) -> ConsolidationReply | Finding:
    try:
        return read_reply(text, _REPLY, longest=LONGEST_REPLY)
    except MalformedReply as error:
        if error.extra:
            return _refuse(f"the reply brings {', '.join(repr(name[:60]) for name in error.extra)}")
        return _refuse_form(str(error))


def _objections(reply: ConsolidationReply) -> tuple[Finding, ...]:
    """A major finding for the summary, and one for each quotation under its own code."""
    lowered = _finding("model_lowered_verdict", Severity.MAJOR, reply.summary, reply.findings)
    return lowered, *(
        _finding(quoted.code, Severity.MAJOR, f"the second reader objects to {quoted.text!r}")
        for quoted in reply.quotations
    )


def _citation_refusal(reply: ConsolidationReply, findings: Sequence[Finding]) -> Finding | None:
    ids = finding_ids(findings)
    unknown = sorted(set(reply.findings) - set(ids))
    if not unknown:
        return None
    message = f"cited {', '.join(repr(id_[:60]) for id_ in unknown)}; there are {list(ids)}"
    return _finding("model_cited_unknown_finding", Severity.MINOR, message)


def _quotation_refusal(
    reply: ConsolidationReply, request: PolicyLevelReflectionRequest, wording: Wording
) -> Finding | None:
    said = request.proposal.thesis, request.proposal.rationale
    texts = [_as_read(text) for text in (*said, *map(wording.text, said))]
    for quoted in reply.quotations:
        words = _as_read(quoted.text)
        if not words or (len(words.split()) < SHORTEST_QUOTATION and words not in texts):
            message = f"quoted {quoted.text!r}: a quotation has at least {SHORTEST_QUOTATION} words"
            return _finding("model_quoted_too_little", Severity.MINOR, message)
        if not any(re.search(rf"(?<!\w){re.escape(words)}(?!\w)", text) for text in texts):
            message = f"quoted {quoted.text!r}, which neither thesis nor rationale holds"
            return _finding("model_quoted_what_is_not_there", Severity.MINOR, message)
    return None


def _evidence_refusal(reply: ConsolidationReply, findings: Sequence[Finding]) -> Finding | None:
    named = zip(finding_ids(findings), findings, strict=True)
    weighty = {id_ for id_, found in named if found.severity in OF_WEIGHT}
    if reply.quotations or weighty.intersection(reply.findings):
        return None
    message = (
        f"answered {reply.verdict!r} without evidence: a quotation of thesis or rationale, or a finding that "
        f"is at least minor; those are {sorted(weighty)}"
    )
    return _finding("model_lowered_without_evidence", Severity.MINOR, message)


def _as_read(text: str) -> str:
    """The text as it reads: compatible characters, marks, case and blanks made one, nothing unseen."""
    folded = unicodedata.normalize("NFKC", text).translate(PLAIN_MARKS).casefold()
    return " ".join("".join(c for c in folded if unicodedata.category(c) != "Cf").split())


def _scope_refusal(
    reply: ConsolidationReply,
    request: PolicyLevelReflectionRequest,
    findings: Sequence[Finding],
    wording: Wording,
) -> Finding | None:
    """Refuse a summary that names an indicator, rule or playbook which the request does not.

    Another playbook of the snapshot may be named where the plan's own texts speak of it.
    """
    parts = request.proposal.payload(), request.playbook.payload(), dict(request.snapshot.features)
    known = canonical_json(parts).casefold()
    known += " ".join(f"{found.code} {found.message} {found.remedy}" for found in findings).casefold()
    known += wording.json([found.payload() for found in findings]).casefold()
    text = reply.summary.casefold()
    news = [*_new_names(text, known), *_new_rules(text, known), *_other_playbooks(text, request)]
    return _refuse(f"the summary brings {', '.join(repr(item[:60]) for item in news)}") if news else None


def _new_names(text: str, known: str) -> list[str]:
    names = set(NAME.findall(known)) | _field_names()
    indicators = _indicators() - {_stem(name) for name in names}
    return [
        name
        for name in dict.fromkeys(NAME.findall(text))
        if name not in names and ("_" in name or _stem(name) in indicators)
    ]


def _new_rules(text: str, known: str) -> list[str]:
    said = "".join(known.split())
    rules = [match.group(0) for match in COMPARISON.finditer(text)]
    return [rule for rule in rules if "".join(rule.split()) not in said]


def _other_playbooks(text: str, request: PolicyLevelReflectionRequest) -> list[str]:
    others = {summary.playbook_id for summary in request.snapshot.expectations} - {request.playbook.id}
    own = _as_read(f"{request.proposal.thesis} {request.proposal.rationale}")
    return [other for other in sorted(others) if _speaks_of(text, other) and not _speaks_of(own, other)]


def _speaks_of(text: str, playbook_id: str) -> bool:
    return playbook_id in text or playbook_id.replace("_", " ") in text


@lru_cache(maxsize=1)
def _field_names() -> frozenset[str]:
    return frozenset(PolicyLevelReflectionRequest.model_fields) | frozenset(ConsolidationReply.model_fields)


@lru_cache(maxsize=1)
def _indicators() -> frozenset[str]:
    return frozenset(family.stem for family in FEATURES.values() if family.defaults) - PLAIN_WORDS


def _stem(name: str) -> str:
    """`rsi` of `rsi`, `rsi14` and `rsi_14`."""
    return name.partition("_")[0].rstrip("0123456789")


def _refuse(message: str) -> Finding:
    advice = "a need for something new is a deferred need"
    return _finding("model_scope_refused", Severity.MINOR, f"{message}; {advice}")


def _refuse_form(message: str) -> Finding:
    return _finding("model_reply_malformed", Severity.MINOR, message)


def _finding(code: str, severity: Severity, message: str, evidence: tuple[str, ...] = ()) -> Finding:
    return Finding(
        check=CheckName.CONSOLIDATION, code=code, severity=severity, message=message, evidence=evidence
    )


FORM = ReplyFormat(
    "policy_level_reflection", ConsolidationReply, lambda text: is_read(text, _REPLY, longest=LONGEST_REPLY)
)
