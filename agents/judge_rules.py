"""The judge at the policy boundary, by rules, with the fast reflection's result as its evidence.

It checks that the result is about this proposal, complete, and not at odds with itself. A pure function of
its four inputs. It can be stricter than the reflection, never milder. Called by the judge client.
"""

from dataclasses import dataclass

from schemas.judge import BoundaryVerdict
from schemas.playbook import PlaybookDefinition
from schemas.proposal import PolicyProposal
from schemas.reflection import Finding, PolicyLevelReflectionResult, ReflectionInvocationMeta
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import (
    CheckName,
    FindingClass,
    InvocationOutcome,
    JudgeDecision,
    ReflectionStatus,
    Severity,
)

REQUIRED_CHECKS = (CheckName.INVARIANT, CheckName.COHERENCE, CheckName.MEMORY, CheckName.EXPECTATION)
CLASS_OF = {
    CheckName.INVARIANT: FindingClass.STRUCTURAL_VIOLATION,
    CheckName.COHERENCE: FindingClass.STRUCTURAL_VIOLATION,
    CheckName.MEMORY: FindingClass.MEMORY_CONTRADICTION,
    CheckName.EXPECTATION: FindingClass.STATISTICAL_SUSPICION,
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


def judge_boundary(
    snapshot: PolicySnapshot, proposal: PolicyProposal, reflection: Reflection, playbook: PlaybookDefinition
) -> BoundaryVerdict:
    """Approve, revise, reject or stand down.

    An invocation record stands in for a result only when the fast reflection is switched off.
    """
    ruling = (
        _account_ruling(snapshot)
        or _plan_ruling(snapshot, proposal, playbook)
        or _reflection_ruling(snapshot, proposal, reflection, playbook)
    )
    return BoundaryVerdict(
        decision=ruling.decision,
        finding_class=ruling.finding_class,
        reason=ruling.reason,
        evidence_ids=ruling.evidence_ids,
        snapshot_hash=snapshot.content_hash,
        proposal_hash=proposal.content_hash,
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
    if snapshot.regime is None or not playbook.eligibility[proposal.direction].allows(snapshot.regime.labels):
        where = "an unknown regime" if snapshot.regime is None else repr(snapshot.regime.labels.key)
        reason = f"{playbook.id!r} is not eligible {proposal.direction} in {where}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("not_eligible",))
    return None


def _reflection_ruling(
    snapshot: PolicySnapshot, proposal: PolicyProposal, reflection: Reflection, playbook: PlaybookDefinition
) -> Ruling:
    if isinstance(reflection, ReflectionInvocationMeta):
        if reflection.outcome is InvocationOutcome.DISABLED:
            return Ruling(JudgeDecision.APPROVE, FindingClass.NONE, "the fast reflection is switched off")
        reason = f"an invocation record with outcome {reflection.outcome} is no result"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("no_result",))
    return _binding_ruling(snapshot, proposal, reflection, playbook) or _verdict_on(reflection)


def _binding_ruling(
    snapshot: PolicySnapshot,
    proposal: PolicyProposal,
    result: PolicyLevelReflectionResult,
    playbook: PlaybookDefinition,
) -> Ruling | None:
    """Refuse a result about something else, one that did not run, or one without its deterministic checks."""
    pairs = {
        "snapshot": (result.snapshot_hash, snapshot.content_hash),
        "proposal": (result.proposal_hash, proposal.content_hash),
        "playbook": (result.playbook_hash, playbook.content_hash),
    }
    differing = [name for name, (given, actual) in pairs.items() if given != actual]
    if differing:
        reason = f"the reflection is about another {' and '.join(differing)}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("hash_mismatch",))
    if result.meta.outcome not in (InvocationOutcome.RAN, InvocationOutcome.DEGRADED):
        reason = f"the reflection ended as {result.meta.outcome}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("reflection_did_not_run",))
    missing = [name for name in REQUIRED_CHECKS if name not in result.checks_run]
    if result.status is not ReflectionStatus.BLOCK and missing:
        reason = f"checks that did not run: {', '.join(missing)}"
        return Ruling(JudgeDecision.REJECT, STRUCTURAL, reason, ("checks_missing",))
    return None


def _verdict_on(result: PolicyLevelReflectionResult) -> Ruling:
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
