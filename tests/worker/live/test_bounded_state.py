"""What a live run holds of its past: what its symbols stand in, and what the next report reads."""

from collections.abc import Iterator

import pytest

from schemas.settings import Settings
from services.slow_loop import drift_window
from services.slow_loop.untraded_signals import UntradedSignals
from services.statistics.slots import last_slot
from tests.worker.live.test_savepoint_sessions import go_on
from tests.worker.live.test_service_states import END, ROWS, stepper
from worker.session import Session

KEPT = 5


@pytest.fixture(scope="module")
def sessions() -> Iterator[list[dict[str, int]]]:
    """Counts of what a session holds, every ten rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drift_window, "WINDOWS_KEPT", KEPT)
        one, counts = stepper(), []
        for number in range(0, END, 10):
            go_on(one, number, number + 10, ROWS)
            counts.append(count(one.session))
        yield counts


def count(session: Session) -> dict[str, int]:
    facts, now = session.slow_loop.facts, session.clock.now
    slot = last_slot(now, session.settings.high_level.interval_for(session.bars.timeframe))
    return {
        "policies": len(session.policy_loop.policies),
        "structures": len(session.policy_loop.structures),
        "tags": len(session.engine._tags),
        "policies of facts": len(facts._policies),
        "regimes": sum(known_at <= slot for known_at, _ in facts._drift._fingerprints),
        "frozen": sum(
            plans for rules in session.policy_loop.signals.tried.values() for plans, _ in rules.values()
        ),
    }


def test_run_that_goes_on_holds_two_policies_of_a_symbol_at_most(sessions) -> None:
    symbols = len(ROWS[0].bars)
    assert sessions[-1]["frozen"] > 20 * symbols, "so many were in force, one after the other"
    for name in ("policies", "structures", "tags", "policies of facts"):
        assert max(found[name] for found in sessions) <= 2 * symbols, name


def test_run_that_goes_on_holds_the_newest_regimes_of_before_its_last_slot(sessions) -> None:
    assert max(found["regimes"] for found in sessions) == KEPT


def test_signals_of_the_same_rules_wait_with_one_plan() -> None:
    one = stepper()
    go_on(one, 0, 200, ROWS)
    plan = next(iter(one.session.policy_loop.policies.values())).proposal
    signals = UntradedSignals(Settings().execution)
    for number in range(50):
        changes = {"rationale": f"reason {number}", "conviction": number / 100}
        signals.note_blocked("W00", number, plan.model_copy(update=changes), number)
    other = plan.model_copy(update={"horizon_bars": plan.horizon_bars + 1})
    signals.note_blocked("W00", 50, other, 50)
    waiting = [signal.proposal for signal in signals._pending]
    assert len({id(proposal) for proposal in waiting}) == 2
    assert [each.horizon_bars - plan.horizon_bars for each in waiting] == [0] * 50 + [1]
    assert {each.stop for each in waiting} == {plan.stop}
