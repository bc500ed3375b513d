"""The judge at the policy boundary, by rules, with the fast reflection's result as its evidence.

It checks that the result is about this proposal or amendment, complete, and not at odds with itself. Pure
functions of their inputs. It can be stricter than the reflection, never milder.
"""

from dataclasses import dataclass, replace

from schemas.invocation import ReflectionInvocationMeta
from schemas.judge import BoundaryVerdict
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import Finding, PolicyAmendmentRequest, PolicyLevelReflectionResult
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import (
    AmendmentKind,
    CheckName,
    FindingClass,
    InvocationOutcome,
    JudgeDecision,
    ReflectionStatus,
    Severity,
)
from services.policy_checks.amendment import AMENDMENT_CHECKS

REQUIRED_CHECKS = (CheckName.INVARIANT, CheckName.COHERENCE, CheckName.MEMORY, CheckName.EXPECTATION)
CLASS_OF = {
    CheckName.INVARIANT: FindingClass.STRUCTURAL_VIOLATION,
    CheckName.COHERENCE: FindingClass.STRUCTURAL_VIOLATION,
    CheckName.MEMORY: FindingClass.MEMORY_CONTRADICTION,
    CheckName.EXPECTATION: FindingClass.STATISTICAL_SUSPICION,
    CheckName.OWN: FindingClass.STRUCTURAL_VIOLATION,
    CheckName.CONSOLIDATION: FindingClass.STATISTICAL_SUSPICION,
}
WEIGHT = {severity: position for position, severity in enumerate(Severity)}

STRUCTURAL = FindingClass.STRUCTURAL_VIOLATION
Reflection = PolicyLevelReflectionResult | ReflectionInvocationMeta


@dataclass(frozen=True)
class Ruling:
    """A decision before it is bound to its hashes."""

    decision: JudgeDecision
    finding_class: FindingClass
    reason: str
    evidence_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """What is judged, by its hashes, and the checks that a result on it has to have run."""

    snapshot_hash: str
    proposal_hash: str
    playbook_hash: str
    required: tuple[CheckName, ...]


def judge_boundary(
    snapshot: PolicySnapshot,
    proposal: PolicyProposal,
    reflection: Reflection,
    playbook: PlaybookDefinition,
    *,
    reflection_off: bool = False,
) -> BoundaryVerdict:
    """Approve, revise, reject or stand down.

    An invocation record stands in for a result only when the settings switch the fast reflection off.
    """
    subject = Subject(snapshot.content_hash, proposal.content_hash, playbook.content_hash, REQUIRED_CHECKS)
    ruling = (
        _account_ruling(snapshot)
        or _plan_ruling(snapshot, proposal, playbook)
        or _reflection_ruling(subject, reflection, reflection_off)
        or _verdict_on(reflection)
    )
    return _bound(ruling, subject, reflection)


def judge_amendment(
    request: PolicyAmendmentRequest, reflection: Reflection, *, reflection_off: bool = False
) -> BoundaryVerdict:
    """Approve, revise or reject an amendment; a keep that a guardrail forbids is a stand-down.

    What only lowers exposure or leaves a position to its exits is approved on any passing result of its own.
    """
    policy = request.policy
    playbook_hash = "" if policy is None else policy.playbook_hash
    subject = Subject(
        request.snapshot.content_hash, request.amendment.content_hash, playbook_hash, AMENDMENT_CHECKS
    )
    ruling = (
        _amendment_ruling(request)
        or _reflection_ruling(subject, reflection, reflection_off)
        or _verdict_on(reflection)
    )
    if ruling.decision is JudgeDecision.STAND_DOWN and request.snapshot.position is not None:
        ruling = replace(ruling, decision=JudgeDecision.REJECT)
    return _bound(ruling, subject, reflection)


def _bound(ruling: Ruling, subject: Subject, reflection: Reflection) -> BoundaryVerdict:
    return BoundaryVerdict.trust(
        decision=ruling.decision,
        finding_class=ruling.finding_class,
        reason=ruling.reason,
        evidence_ids=ruling.evidence_ids,
        snapshot_hash=subject.snapshot_hash,
        proposal_hash=subject.proposal_hash,
        reflection_hash=reflection.content_hash,
    )


def _account_ruling(snapshot: PolicySnapshot) -> Ruling | None:
    if snapshot.risk.kill_switch:
        return Ruling(JudgeDecision.STAND_DOWN, STRUCTURAL, "the kill switch is on", ("kill_switch",))
    if snapshot.risk.halted:
        return Ruling(
            JudgeDecision.STAND_DOWN, STRUCTURAL, "the risk envelope has halted entries", ("halted",)
        )
    return None


def _plan_ruling(
    snapshot: PolicySnapshot, proposal: PolicyProposal, playbook: PlaybookDefinition
) -> Ruling | None:
    """The judge's own look at eligibility, whatever the reflection said."""
    if proposal.playbook_id != playbook.id:
        reason = f"the proposal names {proposal.playbook_id!r}, the playbook in force is {playbook.id!r}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("playbook_mismatch",))
    if not playbook.enabled or proposal.direction not in playbook.rules:
        reason = f"{playbook.id!r} may not be traded {proposal.direction}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("direction_not_allowed",))
    if snapshot.position is not None:
        reason = "a position is open: it can only be kept, or its stop tightened"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("entry_while_in_position",))
    if not playbook.eligibility[proposal.direction].allows(snapshot.labels):
        where = "an unknown regime" if snapshot.labels is None else repr(snapshot.labels.key)
        reason = f"{playbook.id!r} is not eligible {proposal.direction} in {where}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("not_eligible",))
    return None


def _amendment_ruling(request: PolicyAmendmentRequest) -> Ruling | None:
    """The judge's own look at an amendment, whatever the reflection said: a keep is a decision to enter."""
    snapshot, policy, playbook = request.snapshot, request.policy, request.playbook
    if request.amendment.kind is AmendmentKind.TIGHTEN:
        return _tighten_ruling(snapshot, request.amendment.stop)
    if request.amendment.kind is AmendmentKind.STAND_DOWN or snapshot.position is not None:
        return None
    if policy is None or playbook is None or playbook.content_hash != policy.playbook_hash:
        reason = "the playbook version of the policy is not the active one"
        return Ruling(JudgeDecision.STAND_DOWN, STRUCTURAL, reason, ("playbook_replaced",))
    return _account_ruling(snapshot) or _plan_ruling(snapshot, policy.proposal, playbook)


def _tighten_ruling(snapshot: PolicySnapshot, stop: float | None) -> Ruling | None:
    position = snapshot.position
    if position is None or stop is None:
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, "there is no stop to move", ("no_position",))
    nearer, farther = sorted((position.stop, snapshot.close))
    if nearer < stop < farther and (position.direction == "long") == (position.stop < snapshot.close):
        return None
    reason = f"stop {stop!r} does not lie between stop {position.stop!r} and close {snapshot.close!r}"
    return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("stop_not_tighter",))


def _reflection_ruling(subject: Subject, reflection: Reflection, reflection_off: bool) -> Ruling | None:
    """Refuse what is no result about this subject; None leaves the word to the result itself."""
    if isinstance(reflection, PolicyLevelReflectionResult):
        return _binding_ruling(subject, reflection)
    if reflection.outcome is InvocationOutcome.DISABLED and reflection_off:
        return None
    reason = f"an invocation record with outcome {reflection.outcome} is no result"
    if reflection.outcome is InvocationOutcome.DISABLED:
        reason = "the record says that reflection is off, the settings say that it is on"
    return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("no_result",))


def _binding_ruling(subject: Subject, result: PolicyLevelReflectionResult) -> Ruling | None:
    """Refuse a result about something else, one that did not run, or one without its deterministic checks."""
    pairs = {
        "snapshot": (result.snapshot_hash, subject.snapshot_hash),
        "proposal": (result.proposal_hash, subject.proposal_hash),
        "playbook": (result.playbook_hash, subject.playbook_hash),
    }
    differing = [name for name, (given, actual) in pairs.items() if given != actual]
    if differing:
        reason = f"the reflection is about another {' and '.join(differing)}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("hash_mismatch",))
    if result.meta.outcome not in (InvocationOutcome.RAN, InvocationOutcome.DEGRADED):
        reason = f"the reflection ended as {result.meta.outcome}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("reflection_did_not_run",))
    missing = [name for name in subject.required if name not in result.checks_run]
    if result.status is not ReflectionStatus.BLOCK and missing:
        reason = f"checks that did not run: {', '.join(missing)}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("checks_missing",))
    return None


def _verdict_on(result: Reflection) -> Ruling:
    if isinstance(result, ReflectionInvocationMeta):
        return Ruling(JudgeDecision.APPROVE, FindingClass.NONE, "the fast reflection is switched off")
    heaviest = max(result.findings, key=lambda item: WEIGHT[item.severity], default=None)
    if result.status is ReflectionStatus.BLOCK:
        return _on_block(result, heaviest)
    if result.status is ReflectionStatus.REVISE:
        kind = STRUCTURAL if heaviest is None else CLASS_OF[heaviest.check]
        reason = "; ".join(result.requested_revisions) or _messages(result, Severity.MAJOR)
        return Ruling(
            JudgeDecision.REVISE, kind, reason or "the reflection asked for a revision", _evidence(result)
        )
    if heaviest is not None and WEIGHT[heaviest.severity] >= WEIGHT[Severity.MAJOR]:
        reason = f"passed although {heaviest.code} is {heaviest.severity}: {heaviest.message}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, _evidence(result))
    if heaviest is None or heaviest.severity is Severity.INFO:
        return Ruling(JudgeDecision.APPROVE, FindingClass.NONE, "nothing found against it", _evidence(result))
    reason = f"only minor findings: {_messages(result, Severity.MINOR)}"
    return Ruling(JudgeDecision.APPROVE, CLASS_OF[heaviest.check], reason, _evidence(result))


def _on_block(result: PolicyLevelReflectionResult, heaviest: Finding | None) -> Ruling:
    """A broken guardrail stands the symbol down; any other block only refuses this proposal."""
    if heaviest is None:
        return Ruling(JudgeDecision.STAND_DOWN, STRUCTURAL, "blocked without a finding", ("no_finding",))
    blockers = [item for item in result.findings if item.severity is Severity.BLOCKER] or [heaviest]
    guardrail = any(item.check is CheckName.INVARIANT for item in blockers)
    decision = JudgeDecision.STAND_DOWN if guardrail else JudgeDecision.REJECT
    reason = "; ".join(item.message for item in blockers)
    return Ruling(decision, CLASS_OF[blockers[0].check], reason, _evidence(result))


def _messages(result: PolicyLevelReflectionResult, severity: Severity) -> str:
    return "; ".join(item.message for item in result.findings if item.severity is severity)


def _evidence(result: PolicyLevelReflectionResult) -> tuple[str, ...]:
    """Codes of the findings, then the cases they cite, each once in order of appearance."""
    codes = [item.code for item in result.findings]
    cases = [ref for item in result.findings for ref in item.evidence]
    return tuple(dict.fromkeys([*codes, *cases]))
