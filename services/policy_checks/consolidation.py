"""What is a model asked, and what may its reply change? It may ask for a revision, on evidence that exists.

Evidence is a finding of at least minor severity, or a reason of the plan by its place, with what speaks
against it; an objection to a reason that code finds true and on the plan's side does not count. No reply
blocks: that is the rules' alone. The wire model is closed, so it has no place for a trigger, a feature, a
hypothesis or a playbook; a reply that brings one in is refused, and the refusal is a finding. A need for
something new goes to the slow loop. Pure functions over request and reply; the call and its deadline are the
service's.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter

from prompts import PromptTemplate
from schemas.proposal import PolicyProposal
from schemas.reflection import Finding, PolicyLevelReflectionRequest
from schemas.vocabulary import CheckName, ReflectionStatus, Severity
from services.model_calls.quoting import count_noun, keep_comment
from services.model_calls.reply_format import ClosedReply, DecisionField, ReplyFormat
from services.model_calls.reply_text import MalformedReply, is_read, read_reply
from services.model_calls.wording import PLAIN, Wording
from services.policy_checks.findings import finding
from services.policy_checks.reasons import describe_reasons, holds

LONGEST_REPLY = 8_000
STRICTNESS = {ReflectionStatus.PASS: 0, ReflectionStatus.REVISE: 1, ReflectionStatus.BLOCK: 2}
OF_WEIGHT = (Severity.MINOR, Severity.MAJOR, Severity.BLOCKER)  # what a stricter verdict may rest on
ObjectionCode = Literal["reason_against_direction", "reason_not_about_this_plan", "reason_too_weak"]


class Objection(ClosedReply):
    """A reason of the plan, by its place in `because` from 0, and what speaks against it."""

    reason: int
    code: ObjectionCode


class ConsolidationReply(ClosedReply):
    """The closed wire model of the consolidation; `findings` holds ids."""

    findings: tuple[str, ...] = Field(max_length=20)
    objections: tuple[Objection, ...] = Field(default=(), max_length=8)
    comment: str | None = Field(default=None, max_length=1_000)
    verdict: Annotated[Literal["pass", "revise"], DecisionField(("findings", "objections"))]
    deferred_needs: tuple[Annotated[str, StringConstraints(min_length=1, max_length=300)], ...] = Field(
        default=(), max_length=5
    )


_REPLY = TypeAdapter(ConsolidationReply)
refuse = partial(finding, CheckName.CONSOLIDATION, Severity.MINOR)
note = partial(finding, CheckName.CONSOLIDATION, Severity.INFO)
revise = partial(finding, CheckName.CONSOLIDATION, Severity.MAJOR)


@dataclass(frozen=True)
class Consolidation:
    """What a reply adds. `refused` names the finding for which the reply counts for nothing.

    `comment` is the model's own words, which nobody checks and no part of a run reads.
    """

    findings: tuple[Finding, ...]
    deferred: tuple[str, ...] = ()
    refused: str | None = None
    comment: str | None = None


def consolidation_question(
    template: PromptTemplate,
    request: PolicyLevelReflectionRequest,
    findings: Sequence[Finding],
    wording: Wording = PLAIN,
) -> str:
    """The request to a model: everything that somebody wrote stands in it as quoted JSON, a line each.

    The words of the reasons are written anew where the question is in disguise: the rationale holds prices.
    """
    named = [
        {"id": id_, **found.payload()} for id_, found in zip(finding_ids(findings), findings, strict=True)
    ]
    return template.render(
        findings=wording.json(named),
        proposal=wording.json(_shown_plan(request.proposal, wording)),
        reasons=wording.json(_reasons(request, wording)),
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


@dataclass(frozen=True)
class Grounds:
    """What a verdict that is stricter than the rules' may rest on: ids of findings, places of reasons."""

    findings: frozenset[str]
    reasons: frozenset[int]

    @property
    def exist(self) -> bool:
        """Whether any answer could change anything."""
        return bool(self.findings or self.reasons)


def grounds_of(request: PolicyLevelReflectionRequest, findings: Sequence[Finding]) -> Grounds:
    """Findings that are at least minor, and reasons that code does not find true and on the plan's side.

    A need for something new is none: it is shown in a report and decides nothing.
    """
    named = zip(finding_ids(findings), findings, strict=True)
    plan = request.proposal
    return Grounds(
        frozenset(id_ for id_, found in named if found.severity in OF_WEIGHT),
        frozenset(
            place
            for place, reason in enumerate(plan.because)
            if holds(reason, plan, request.playbook, request.snapshot) is not True
        ),
    )


def _shown_plan(proposal: PolicyProposal, wording: Wording) -> dict[str, object]:
    payload = proposal.payload()
    if proposal.because and wording.now is not None:
        del payload["rationale"]
    return payload


def _reasons(request: PolicyLevelReflectionRequest, wording: Wording) -> list[dict[str, object]]:
    """The reasons with their places, what each comes to in words, and what code finds."""
    shown = []
    for place, reason in enumerate(request.proposal.because):
        found = holds(reason, request.proposal, request.playbook, request.snapshot)
        words = "; ".join(describe_reasons([reason], request.snapshot, None, request.proposal, wording))
        shown.append({"reason": place, **reason.payload(), "words": words, "holds": found})
    return shown


def weigh_reply(
    text: str,
    request: PolicyLevelReflectionRequest,
    findings: Sequence[Finding],
    symbols: Iterable[str] = (),
) -> Consolidation:
    """Findings and needs that a reply may add to the deterministic `findings`, which let the plan pass.

    Args:
        text: of the reply.
        request: what was asked about.
        findings: of the rules.
        symbols: names of the run that a comment may not have, besides those of the request.
    """
    reply = _read(text)
    if isinstance(reply, Finding):
        return Consolidation((reply,), refused=reply.code)
    refusal = _citation_refusal(reply, findings) or _objection_refusal(reply, request)
    if refusal is not None:
        return Consolidation((refusal,), refused=refusal.code)
    known = grounds_of(request, findings)
    counting = [objection for objection in reply.objections if objection.reason in known.reasons]
    overruled = tuple(
        _overrule(objection, request) for objection in reply.objections if objection not in counting
    )
    refusal = _evidence_refusal(reply, counting, known)
    if refusal is not None:
        return Consolidation((refusal, *overruled), refused=refusal.code)
    added = _weigh(reply, counting, request) + overruled
    return Consolidation(added, reply.deferred_needs, comment=_comment(reply, request, symbols))


def _read(text: str) -> ConsolidationReply | Finding:
    try:
        return read_reply(text, _REPLY, longest=LONGEST_REPLY)
    except MalformedReply as error:
        if error.extra:
            message = f"the reply brings {count_noun(len(error.extra), 'field')} of its own"
            return refuse("model_scope_refused", f"{message}; a need for something new is a deferred need")
        return refuse("model_reply_malformed", error.plain)


def _weigh(
    reply: ConsolidationReply, counting: Sequence[Objection], request: PolicyLevelReflectionRequest
) -> tuple[Finding, ...]:
    """That the reader agrees, or that it asks for a revision with each objection under its own code."""
    message = f"the second reader answers {reply.verdict!r}"
    if reply.verdict == "pass":
        return (note("model_agrees", message, *reply.findings),)
    lowered = revise("model_lowered_verdict", message, *reply.findings)
    return lowered, *(revise(objection.code, *_describe(objection, request)) for objection in counting)


def _overrule(objection: Objection, request: PolicyLevelReflectionRequest) -> Finding:
    message, evidence = _describe(objection, request)
    text = f"{message}: code finds it true and on the plan's side, so {objection.code} does not count"
    return note("objection_overruled", text, evidence)


def _describe(objection: Objection, request: PolicyLevelReflectionRequest) -> tuple[str, str]:
    """An objection in words, and the reason that it is about."""
    reason = request.proposal.because[objection.reason]
    message = f"the second reader objects to reason {objection.reason}, the {reason.kind} {reason.name!r}"
    return message, f"because[{objection.reason}]"


def _comment(
    reply: ConsolidationReply, request: PolicyLevelReflectionRequest, symbols: Iterable[str]
) -> str | None:
    books = (known.playbook_id for known in request.snapshot.expectations)
    names = {request.snapshot.symbol, request.playbook.id, *request.playbook.parameters, *books, *symbols}
    return keep_comment(reply.comment, names)


def _citation_refusal(reply: ConsolidationReply, findings: Sequence[Finding]) -> Finding | None:
    ids = finding_ids(findings)
    unknown = sorted(set(reply.findings) - set(ids))
    if not unknown:
        return None
    message = f"cited {count_noun(len(unknown), 'finding')} that there is not; there are {list(ids)}"
    return refuse("model_cited_unknown_finding", message)


def _objection_refusal(reply: ConsolidationReply, request: PolicyLevelReflectionRequest) -> Finding | None:
    places = len(request.proposal.because)
    unknown = [objection.reason for objection in reply.objections if not 0 <= objection.reason < places]
    if not unknown:
        return None
    message = f"objected to reason {unknown[0]}; the plan has {places}, counted from 0"
    return refuse("model_objected_to_no_reason", message)


def _evidence_refusal(
    reply: ConsolidationReply, counting: Sequence[Objection], known: Grounds
) -> Finding | None:
    if reply.verdict == "pass" or counting or known.findings.intersection(reply.findings):
        return None
    message = (
        f"answered {reply.verdict!r} without evidence: a reason that code does not find true and on the "
        f"plan's side, or a finding that is at least minor; those are {sorted(known.findings)}"
    )
    return refuse("model_lowered_without_evidence", message)


FORM = ReplyFormat(
    "policy_level_reflection", ConsolidationReply, lambda text: is_read(text, _REPLY, longest=LONGEST_REPLY)
)
