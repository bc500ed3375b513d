"""What is a model asked, and what may its reply change? It may lower the verdict, with findings that exist.

The wire model is closed, so it has no place for a trigger, a feature, a hypothesis or a playbook; free
text that brings one in is refused as well, and the refusal is a finding. A need for something new goes
to the slow loop. Pure functions over request and reply; the call and its deadline are the service's.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from prompts import PromptTemplate
from schemas.canonical import canonical_json
from schemas.reflection import Finding, PolicyLevelReflectionRequest
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from services.model_calls.reply_format import ReplyFormat
from services.model_calls.reply_text import first_problem, json_text
from services.policy_checks.findings import status_of
from services.quoting import quoted_json
from trading_core.features import FEATURES

LONGEST_REPLY = 8_000
STRICTNESS = {ReflectionStatus.PASS: 0, ReflectionStatus.REVISE: 1, ReflectionStatus.BLOCK: 2}
SEVERITY = {ReflectionStatus.REVISE: Severity.MAJOR, ReflectionStatus.BLOCK: Severity.BLOCKER}
NAME = re.compile(r"[a-z][a-z0-9_]*")
COMPARISON = re.compile(r"([\w.]+)\s*(<=|>=|==|!=|<|>)\s*(-?[\w.]+)")
PLAIN_WORDS = frozenset({"highest", "lowest", "efficiency"})  # indicators whose name is also an ordinary word


class ConsolidationReply(BaseModel):
    """The closed wire model of the consolidation."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    verdict: Literal["pass", "revise", "block"]
    summary: str = Field(max_length=600)
    cited_findings: tuple[str, ...] = Field(max_length=20)
    deferred_needs: tuple[Annotated[str, StringConstraints(min_length=1, max_length=300)], ...] = Field(
        max_length=5
    )


@dataclass(frozen=True)
class Consolidation:
    """What a reply adds. `refused` names the finding for which the reply counts for nothing."""

    findings: tuple[Finding, ...]
    deferred: tuple[str, ...] = ()
    refused: str | None = None


def consolidation_question(
    template: PromptTemplate, request: PolicyLevelReflectionRequest, findings: Sequence[Finding]
) -> str:
    """The request to a model: everything that somebody wrote stands in it as quoted JSON, a line each."""
    named = [
        {"id": id_, **found.payload()} for id_, found in zip(finding_ids(findings), findings, strict=True)
    ]
    return template.render(
        verdict=status_of(findings).value,
        findings=quoted_json(named),
        proposal=quoted_json(request.proposal.payload()),
        playbook=quoted_json(request.playbook.payload()),
        snapshot=quoted_json(request.snapshot.payload()),
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
    text: str, request: PolicyLevelReflectionRequest, findings: Sequence[Finding]
) -> Consolidation:
    """Findings and needs that a reply may add to the deterministic `findings`."""
    reply = _read(text)
    if isinstance(reply, Finding):
        return Consolidation((reply,), refused=reply.code)
    refusal = _scope_refusal(reply, request, findings) or _citation_refusal(reply, findings)
    if refusal is not None:
        return Consolidation((refusal,), refused=refusal.code)
    summary = _finding("model_summary", Severity.INFO, reply.summary, reply.cited_findings)
    verdict, floor = ReflectionStatus(reply.verdict), status_of(findings)
    if STRICTNESS[verdict] > STRICTNESS[floor]:
        lowered = _finding("model_lowered_verdict", SEVERITY[verdict], reply.summary, reply.cited_findings)
        return Consolidation((lowered,), reply.deferred_needs)
    if STRICTNESS[verdict] < STRICTNESS[floor]:
        message = f"the model answered {verdict.value!r}; the rules' {floor.value!r} stands"
        milder = _finding("model_raised_verdict", Severity.INFO, message)
        return Consolidation((milder, summary), reply.deferred_needs)
    return Consolidation((summary,), reply.deferred_needs)


def stated_verdict(text: str) -> ReflectionStatus | None:
    """The verdict that a reply states; None when it is no answer."""
    reply = _read(text)
    return None if isinstance(reply, Finding) else ReflectionStatus(reply.verdict)


def _read(text: str) -> ConsolidationReply | Finding:
    if len(text) > LONGEST_REPLY:
        return _malformed(f"{len(text)} characters, more than {LONGEST_REPLY}")
    try:
        return ConsolidationReply.model_validate_json(json_text(text))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        extra = [".".join(map(str, item["loc"])) for item in problems if item["type"] == "extra_forbidden"]
        if extra:
            return _refused(f"the reply brings {', '.join(repr(name[:60]) for name in sorted(extra))}")
        return _malformed(first_problem(error))
    except ValueError as error:
        return _malformed(str(error))
    except RecursionError:
        return _malformed("nested too deeply")


def _citation_refusal(reply: ConsolidationReply, findings: Sequence[Finding]) -> Finding | None:
    ids = finding_ids(findings)
    unknown = sorted(set(reply.cited_findings) - set(ids))
    if unknown:
        message = f"cited {', '.join(repr(id_[:60]) for id_ in unknown)}; there are {list(ids)}"
        return _finding("model_cited_unknown_finding", Severity.MINOR, message)
    stricter = STRICTNESS[ReflectionStatus(reply.verdict)] > STRICTNESS[status_of(findings)]
    if stricter and not reply.cited_findings:
        message = f"answered {reply.verdict!r} without citing a finding"
        return _finding("model_lowered_without_evidence", Severity.MINOR, message)
    return None


def _scope_refusal(
    reply: ConsolidationReply, request: PolicyLevelReflectionRequest, findings: Sequence[Finding]
) -> Finding | None:
    """Refuse a summary that names an indicator, rule or playbook which plan and findings do not."""
    known = canonical_json([request.proposal.payload(), request.playbook.payload()]).casefold()
    known += " ".join(f"{found.code} {found.message} {found.remedy}" for found in findings).casefold()
    text = reply.summary.casefold()
    news = [*_new_names(text, known), *_new_rules(text, known), *_other_playbooks(text, request)]
    return _refused(f"the summary brings {', '.join(repr(item[:60]) for item in news)}") if news else None


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
    return [other for other in sorted(others) if other in text or other.replace("_", " ") in text]


@lru_cache(maxsize=1)
def _field_names() -> frozenset[str]:
    return frozenset(PolicyLevelReflectionRequest.model_fields) | frozenset(ConsolidationReply.model_fields)


@lru_cache(maxsize=1)
def _indicators() -> frozenset[str]:
    return frozenset(family.stem for family in FEATURES.values() if family.defaults) - PLAIN_WORDS


def _stem(name: str) -> str:
    """`rsi` of `rsi`, `rsi14` and `rsi_14`."""
    return name.partition("_")[0].rstrip("0123456789")


def _refused(message: str) -> Finding:
    advice = "a need for something new is a deferred need"
    return _finding("model_scope_refused", Severity.MINOR, f"{message}; {advice}")


def _malformed(message: str) -> Finding:
    return _finding("model_reply_malformed", Severity.MINOR, message)


def _finding(code: str, severity: Severity, message: str, evidence: tuple[str, ...] = ()) -> Finding:
    return Finding(
        check=CheckName.CONSOLIDATION, code=code, severity=severity, message=message, evidence=evidence
    )


FORM = ReplyFormat(
    "policy_level_reflection", ConsolidationReply, lambda text: not isinstance(_read(text), Finding)
)
