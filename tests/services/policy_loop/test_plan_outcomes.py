"""What becomes of plans, told by tick events: of the symbol, of the last five, by the right policy."""

import pytest

from schemas.policy import FrozenPolicy
from schemas.tick_validation import TickValidationEvent
from schemas.vocabulary import TickEventKind
from services.policy_loop.background import LAST, PlanOutcomes
from tests.services.policy_checks.plans import right_request

REQUEST = right_request()
SNAPSHOT = REQUEST.snapshot


def policy(name: str, symbol: str = SNAPSHOT.symbol) -> FrozenPolicy:
    return FrozenPolicy(
        symbol=symbol, proposal=REQUEST.proposal, playbook_id="p", playbook_version=1, playbook_hash="h",
        regime_key="up/low", fingerprint=(0.5,), risk_fraction=0.01, frozen_at=1, snapshot_hash=name,
        proposal_hash="h", reflection_hash="h", verdict_hash="h", prompt_hash=None, model="m",
    )  # fmt: skip


def event(kind: TickEventKind, of: FrozenPolicy, at: int = 5, **detail: object) -> TickValidationEvent:
    payload = {"policy_id": of.policy_id, **detail}
    return TickValidationEvent(
        kind=kind, symbol=of.symbol, bar_label=at, ts_event=at, known_at=at, detail=payload
    )


def in_force(of: FrozenPolicy | None):
    return SNAPSHOT.model_copy(update={"active_policy_id": None if of is None else of.policy_id})


@pytest.mark.parametrize(
    ("kind", "detail", "seen"),
    [
        (TickEventKind.THESIS_ARMED, {}, {"theses_armed": 1}),
        (TickEventKind.THESIS_EXPIRED, {}, {"theses_expired": 1}),
        (TickEventKind.ORDER_REFUSED, {"reason": "exposure"}, {"orders_refused": ("exposure",)}),
        (TickEventKind.POLICY_EXPIRED, {}, {}),
    ],
)
def test_plan_outcome_follows_the_tick_events_of_its_policy(kind, detail, seen):
    plans, mine = PlanOutcomes(), policy("a")
    plans.frozen(mine, 3)
    plans.observe(event(kind, policy("b"), **detail))
    assert plans.of(in_force(mine))[0].became == "frozen"
    plans.observe(event(kind, mine, **detail))
    (shown,) = plans.of(in_force(mine))
    assert (shown.became, shown.became_at, shown.frozen_at) == (str(kind), 5, 3)
    assert {name: getattr(shown, name) for name in seen} == seen


def test_plan_outcome_holds_each_trade_with_its_r():
    plans, mine = PlanOutcomes(), policy("a")
    plans.frozen(mine, 3)
    plans.observe(event(TickEventKind.EXIT_FILLED, mine, 7, reason="target", r=1.5))
    (shown,) = plans.of(in_force(None))
    assert [(trade.closed_at, trade.reason, trade.r) for trade in shown.trades] == [(7, "target", 1.5)]
    assert shown.became == "exit_filled", "a plan that traded and went is not called retired"


def test_plan_outcomes_are_the_last_of_the_symbol_newest_first_and_say_who_was_replaced():
    plans = PlanOutcomes()
    every = [policy(str(number)) for number in range(LAST + 2)]
    plans.frozen(policy("x", "ELSE"), 1)
    for at, entry in enumerate(every):
        plans.frozen(entry, at)
    shown = plans.of(in_force(every[-1]))
    assert [entry.policy_id for entry in shown] == [entry.policy_id for entry in every[:1:-1]]
    assert [outcome.became for outcome in shown] == ["frozen"] + ["replaced"] * (LAST - 1)
    assert [outcome.became for outcome in plans.of(in_force(None))][0] == "retired"
    assert plans.of(SNAPSHOT.model_copy(update={"symbol": "NONE"})) == ()
