"""The plans from which a model may start: it picks one by its id and says what it would change.

An id is the start of the plan's own content hash, so the same plan has the same id in every run and an
unchanged base is the base itself. Only playbooks that the regime and the envelope allow are offered. Pure
functions of the snapshot, the revision and what was frozen before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from agents.strategies.rule_strategist import RuleStrategist, proposal_of
from schemas.proposal import PolicyProposal
from schemas.snapshot import PolicySnapshot
from services.ports import Revision

Origin = Literal["refused", "in_force", "playbook"]
FrozenPlan = Callable[[str], PolicyProposal | None]
ID_DIGITS = 16


@dataclass(frozen=True)
class PlanBase:
    """One plan to start from, and where it comes from."""

    proposal: PolicyProposal
    origin: Origin

    @property
    def id(self) -> str:
        """First digits of the plan's content hash."""
        return self.proposal.content_hash[:ID_DIGITS]

    def shown(self) -> dict[str, Any]:
        """The base as the prompt carries it."""
        return {"id": self.id, "origin": self.origin, "plan": self.proposal.payload()}


def plan_bases(
    rules: RuleStrategist, snapshot: PolicySnapshot, revision: Revision | None, frozen: FrozenPlan
) -> tuple[PlanBase, ...]:
    """Bases on offer, each plan once: the refused one, the one in force, then playbooks by rank.

    None at all while a position is open or the regime is unknown.

    Args:
        rules: ranks the playbooks that regime and envelope allow.
        snapshot: what is known.
        revision: with the plan that was refused.
        frozen: the plan of a policy frozen earlier in the run, by policy id.
    """
    if snapshot.position is not None or snapshot.regime is None:
        return ()
    regime = snapshot.regime
    ranked = rules.ranked(snapshot, regime)
    eligible = {(candidate.playbook.id, candidate.direction) for candidate in ranked}
    found: list[PlanBase] = []
    if revision is not None:
        found.append(PlanBase(revision.proposal, "refused"))
    in_force = None if snapshot.active_policy_id is None else frozen(snapshot.active_policy_id)
    if in_force is not None and (in_force.playbook_id, in_force.direction) in eligible:
        found.append(PlanBase(in_force, "in_force"))
    found += [PlanBase(proposal_of(candidate, regime), "playbook") for candidate in ranked]
    first: dict[str, PlanBase] = {}
    for base in found:
        first.setdefault(base.id, base)
    return tuple(first.values())
