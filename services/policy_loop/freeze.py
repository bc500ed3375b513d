"""Freeze: the only door through which a proposal becomes a policy, and a policy is amended.

It demands a passing reflection and an approving verdict for exactly this proposal or amendment and this
snapshot, by their hashes. With reflection switched off it demands the invocation record that says so, which
only that setting can make.
"""

from dataclasses import dataclass

from schemas.errors import FreezeRefused
from schemas.invocation import ReflectionInvocationMeta
from schemas.judge import BoundaryVerdict
from schemas.playbook import PlaybookDefinition
from schemas.policy import AmendedPolicy, FrozenPolicy, PolicyAmendment
from schemas.proposal import PolicyProposal
from schemas.reflection import PolicyLevelReflectionResult
from schemas.regime import UNKNOWN
from schemas.snapshot import PolicySnapshot
from schemas.vocabulary import InvocationOutcome, JudgeDecision, ReflectionStatus
from services.ports import PlanRound

Evidence = PolicyLevelReflectionResult | ReflectionInvocationMeta


@dataclass(frozen=True)
class ApprovedPlan:
    """A round whose proposal may be frozen, with the verdict that says so."""

    round: PlanRound
    verdict: BoundaryVerdict


@dataclass(frozen=True)
class JudgedAmendment:
    """An amendment with the reflection and the verdict that it met, whatever they said."""

    amendment: PolicyAmendment
    reflection: Evidence
    verdict: BoundaryVerdict


def freeze(
    approved: ApprovedPlan,
    snapshot: PolicySnapshot,
    playbook: PlaybookDefinition,
    previous: FrozenPolicy | None = None,
    *,
    reflection_off: bool = False,
) -> FrozenPolicy:
    """The frozen policy of a proposal that passed; `previous` is the one that it takes the place of.

    Raises:
        FreezeRefused: no proposal, result or verdict, one for something else, or one that did not pass.
    """
    answer, proposal = approved.round.answer, approved.round.answer.proposal
    if proposal is None:
        raise FreezeRefused("the answer has no proposal")
    hashes = proposal.content_hash, snapshot.content_hash
    passed = _passed_reflection(approved.round.reflection, *hashes, reflection_off)
    verdict = _approving_verdict(approved.verdict, passed, *hashes)
    if proposal.playbook_id != playbook.id:
        raise FreezeRefused(f"the proposal names playbook {proposal.playbook_id!r}, not {playbook.id!r}")
    regime = snapshot.regime
    if regime is None and not playbook.eligibility[proposal.direction].is_open:
        raise FreezeRefused(f"the snapshot has no regime yet, and {playbook.id!r} asks for one")
    return FrozenPolicy.trust(
        symbol=snapshot.symbol,
        proposal=proposal,
        playbook_id=playbook.id,
        playbook_version=playbook.version,
        playbook_hash=playbook.content_hash,
        regime_key=UNKNOWN if regime is None else regime.labels.key,
        fingerprint=() if regime is None else regime.fingerprint,
        risk_fraction=playbook.risk_fraction,
        frozen_at=snapshot.ts_event,
        snapshot_hash=snapshot.content_hash,
        proposal_hash=proposal.content_hash,
        reflection_hash=passed.content_hash,
        verdict_hash=verdict.content_hash,
        prompt_hash=answer.prompt_hash,
        model=answer.model,
        replaces=None if previous is None else previous.policy_id,
        changed_fields=changed_fields(previous, proposal),
    )


def amend(
    judged: JudgedAmendment, snapshot: PolicySnapshot, *, amended_at: int, reflection_off: bool = False
) -> AmendedPolicy:
    """The frozen amendment; without one no stop moves and no policy is kept or stood down.

    Args:
        judged: what passed, with the reflection and the verdict on exactly that.
        snapshot: under which it passed.
        amended_at: close of the bar at which it is carried out, ns.
        reflection_off: whether the settings switch reflection off.

    Raises:
        FreezeRefused: no result or verdict, one for something else, or one that did not pass.
    """
    amendment = judged.amendment
    hashes = amendment.content_hash, snapshot.content_hash
    passed = _passed_reflection(judged.reflection, *hashes, reflection_off)
    approved = _approving_verdict(judged.verdict, passed, *hashes)
    if amendment.policy_id is None:
        raise FreezeRefused("the amendment names no policy")
    return AmendedPolicy.trust(
        amendment=amendment,
        policy_id=amendment.policy_id,
        amended_at=amended_at,
        snapshot_hash=snapshot.content_hash,
        amendment_hash=amendment.content_hash,
        reflection_hash=passed.content_hash,
        verdict_hash=approved.content_hash,
    )


def changed_fields(previous: FrozenPolicy | None, proposal: PolicyProposal) -> tuple[str, ...]:
    """The fields in which a proposal differs from the policy before it; empty without one."""
    if previous is None:
        return ()
    names = type(proposal).model_fields
    return tuple(name for name in names if getattr(previous.proposal, name) != getattr(proposal, name))


def _passed_reflection(
    reflection: Evidence | None, proposal_hash: str, snapshot_hash: str, off: bool
) -> Evidence:
    if reflection is None:
        raise FreezeRefused("no reflection result: a provider that omits reflection cannot trade")
    if isinstance(reflection, ReflectionInvocationMeta):
        if not off or reflection.outcome is not InvocationOutcome.DISABLED:
            raise FreezeRefused(
                f"an invocation record {reflection.outcome!r} is no result while reflection is on"
            )
        return reflection
    if reflection.proposal_hash != proposal_hash or reflection.snapshot_hash != snapshot_hash:
        raise FreezeRefused("the reflection result belongs to another proposal or snapshot")
    if reflection.status is not ReflectionStatus.PASS:
        raise FreezeRefused(f"the reflection said {reflection.status}")
    return reflection


def _approving_verdict(
    verdict: BoundaryVerdict | None, reflection: Evidence, proposal_hash: str, snapshot_hash: str
) -> BoundaryVerdict:
    if verdict is None:
        raise FreezeRefused("no verdict of the judge")
    if verdict.proposal_hash != proposal_hash or verdict.snapshot_hash != snapshot_hash:
        raise FreezeRefused("the verdict belongs to another proposal or snapshot")
    if verdict.reflection_hash != reflection.content_hash:
        raise FreezeRefused("the verdict was given on another reflection")
    if verdict.decision is not JudgeDecision.APPROVE:
        raise FreezeRefused(f"the judge said {verdict.decision}")
    return verdict
