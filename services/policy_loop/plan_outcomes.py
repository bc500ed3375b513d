"""What became of the last plans of each symbol, told by the tick events of their policies.

A strategist that is a model is shown it; nothing here decides anything. Events come in the order in which
they are known.
"""

from collections import deque
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from schemas.background import ClosedTrade, PlanOutcome
from schemas.policy import FrozenPolicy
from schemas.reflection import TickValidationEvent
from schemas.snapshot import PolicySnapshot
from schemas.state import Stateful
from schemas.vocabulary import TickEventKind

LAST = 5
REPLACED, RETIRED = "replaced", "retired"
OVER = frozenset({TickEventKind.POLICY_EXPIRED, TickEventKind.EXIT_FILLED, REPLACED})


def _last(plans: deque[PlanOutcome]) -> deque[PlanOutcome]:
    return deque(plans, maxlen=LAST)


class PlanOutcomes(Stateful):
    """The last plans of a run, by symbol."""

    STATE: ClassVar = {"_plans": dict[str, Annotated[deque[PlanOutcome], AfterValidator(_last)]]}

    def __init__(self) -> None:
        self._plans: dict[str, deque[PlanOutcome]] = {}

    def frozen(self, policy: FrozenPolicy, now: int) -> None:
        """A policy is in force from now, ns; the one before it is not any more."""
        plans = self._plans.setdefault(policy.symbol, deque(maxlen=LAST))
        proposal = policy.proposal
        if plans and plans[-1].became not in OVER:
            plans[-1] = plans[-1].model_copy(update={"became": REPLACED, "became_at": now})
        plans.append(
            PlanOutcome(
                policy_id=policy.policy_id,
                playbook_id=proposal.playbook_id,
                direction=proposal.direction,
                conviction=proposal.conviction,
                frozen_at=now,
                became_at=now,
            )
        )

    def observe(self, event: TickValidationEvent) -> None:
        """One tick event; those of older or of no policies say nothing here."""
        plans = self._plans.get(event.symbol or "", deque())
        for place, plan in enumerate(plans):
            if plan.policy_id == event.detail.get("policy_id"):
                plans[place] = plan.model_copy(update=_told(plan, event))
                return

    def of(self, snapshot: PolicySnapshot) -> tuple[PlanOutcome, ...]:
        """The last plans of the snapshot's symbol, newest first."""
        plans = tuple(reversed(self._plans.get(snapshot.symbol, ())))
        managed = snapshot.managed_policy_id
        if plans and plans[0].policy_id != managed and plans[0].became not in OVER:
            gone = {"became": RETIRED, "became_at": snapshot.known_at}
            return plans[0].model_copy(update=gone), *plans[1:]
        return plans


def _told(plan: PlanOutcome, event: TickValidationEvent) -> dict[str, Any]:
    update: dict[str, Any] = {"became": str(event.kind), "became_at": event.known_at}
    if event.kind is TickEventKind.THESIS_ARMED:
        update["theses_armed"] = plan.theses_armed + 1
    elif event.kind is TickEventKind.THESIS_EXPIRED:
        update["theses_expired"] = plan.theses_expired + 1
    elif event.kind is TickEventKind.ORDER_REFUSED:
        update["orders_refused"] = (*plan.orders_refused, event.detail["reason"])
    elif event.kind is TickEventKind.EXIT_FILLED:
        told = event.detail
        trade = ClosedTrade(closed_at=event.known_at, reason=told["reason"], r=told["r"])
        update["trades"] = (*plan.trades, trade)
    return update
