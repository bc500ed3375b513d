"""Tick validation in the trigger engine: every bar, deterministic, typed; and the state machine it drives."""

import numpy as np
import pytest

from schemas.errors import InvariantViolation
from schemas.settings import EnvelopeSettings
from schemas.vocabulary import OverrideReason, PolicyEventKind, PolicyState
from tests.trading_core.engine_bench import engine_on, install, kinds, run_all
from tests.trading_core.market import random_series, series
from trading_core.kernel.state_machine import LEGAL, STATES, TRANSITIONS

FLAT = (100.0, 101.0, 99.0, 100.0)


def _flat(count: int) -> list[tuple[float, float, float, float]]:
    return [FLAT] * count


def test_trigger_engine_tick_validation_thesis_spans_bars_and_activates() -> None:
    engine = engine_on(series(_flat(8)))
    install(engine, setup=[1], activation=[3])
    steps = run_all(engine)
    assert kinds(steps) == [
        "thesis_armed", "IDLE>THESIS_ARMED", "activation_triggered", "order_accepted",
        "entry_filled", "THESIS_ARMED>POSITION_OPEN", "POSITION_OPEN>HOLD_LOCK",
    ]  # fmt: skip
    filled = next(event for step in steps for event in step.events if event.kind == "entry_filled")
    assert filled.bar_label == int(engine.bars.times[4])
    assert filled.detail["price"] == 100.0
    assert filled.detail["quantity"] == pytest.approx(100_000 * 0.005 / 5.0)


def test_trigger_engine_tick_validation_policy_is_first_evaluated_on_the_next_bar() -> None:
    engine = engine_on(series(_flat(6)))
    engine.advance(2)
    install(engine, setup=[1, 2])
    assert kinds(run_all(engine)) == ["thesis_armed", "IDLE>THESIS_ARMED"]
    assert engine.state["armed_own"][0] == 3


def test_trigger_engine_tick_validation_window_times_out_to_idle() -> None:
    engine = engine_on(series(_flat(9)))
    install(engine, setup=[1], activation=[], window=3)
    steps = run_all(engine)
    assert kinds(steps) == ["thesis_armed", "IDLE>THESIS_ARMED", "thesis_expired", "THESIS_ARMED>IDLE"]
    expired = steps[0].events[2]
    assert expired.bar_label == int(engine.bars.times[5])
    assert engine.state["policy"][0] >= 0, "the policy stays until its horizon"


def test_trigger_engine_tick_validation_without_activation_rule_breaks_the_setup_extreme() -> None:
    rows = _flat(3) + [(100.0, 102.0, 99.0, 101.5)] + _flat(2)
    engine = engine_on(series(rows))
    install(engine, setup=[1], activation=None)
    steps = run_all(engine)
    activated = next(event for step in steps for event in step.events if event.kind == "activation_triggered")
    assert activated.bar_label == int(engine.bars.times[3])


def test_trigger_engine_tick_validation_armed_invalidation_opens_a_boundary() -> None:
    engine = engine_on(series(_flat(7)))
    install(engine, setup=[1], activation=[], invalidation=[2])
    steps = run_all(engine)
    boundary = steps[0].boundaries[0]
    assert boundary.overrides == (OverrideReason.INVALIDATION_HIT,)
    assert boundary.state is PolicyState.INVALIDATED
    assert kinds(steps)[-1] == "INVALIDATED>IDLE"


def test_trigger_engine_tick_validation_hold_lock_invalidation_exits_at_the_next_open() -> None:
    rows = _flat(6) + [(100.5, 101.0, 99.0, 100.0)] + _flat(5)
    engine = engine_on(series(rows))
    install(engine, setup=[1], activation=[2], invalidation=[5])
    steps = run_all(engine)
    assert kinds(steps)[-5:] == [
        "invalidation_hit", "HOLD_LOCK>INVALIDATED", "exit_filled", "INVALIDATED>COOLDOWN", "COOLDOWN>IDLE",
    ]  # fmt: skip
    trade = np.concatenate([step.trades for step in steps])[0]
    assert (int(trade["exit_t"]), float(trade["exit_price"])) == (6, 100.5)


def test_trigger_engine_tick_validation_refinement_tightens_within_bounds() -> None:
    engine = engine_on(series(_flat(8)))
    refinement = [np.nan, np.nan, 96.0, 99.0, np.nan, np.nan, np.nan, np.nan]
    install(engine, setup=[1], activation=[4], stop=95.0, refinement=refinement)
    steps = run_all(engine)
    refined = [event for step in steps for event in step.events if event.kind == "entry_refined"]
    assert [event.detail["stop"] for event in refined] == [96.0], "99 would leave less than half the distance"
    accepted = next(event for step in steps for event in step.events if event.kind == "order_accepted")
    assert accepted.detail["stop"] == 96.0


def test_trigger_engine_tick_validation_cooldown_has_a_duration() -> None:
    rows = _flat(3) + [(100.0, 111.0, 99.0, 110.0)] + _flat(8)
    engine = engine_on(series(rows), envelope=EnvelopeSettings(cooldown_bars=4))
    install(engine, setup=[1], activation=[2])
    run_all(engine, 4)
    install(engine, setup=list(range(4, 12)), name="next")
    steps = run_all(engine)
    idle = next(event for step in steps for event in step.events if event.detail.get("from") == "COOLDOWN")
    assert idle.bar_label == int(engine.bars.times[7])


def test_trigger_engine_tick_validation_policy_leads_to_one_position_only() -> None:
    rows = _flat(3) + [(100.0, 111.0, 99.0, 110.0)] + _flat(10)
    engine = engine_on(series(rows))
    install(engine, setup=list(range(1, 14)), activation=list(range(1, 14)))
    steps = run_all(engine)
    assert kinds(steps).count("entry_filled") == 1


@pytest.mark.parametrize(
    ("stop", "target", "reason"),
    [
        (101.0, 110.0, "wrong_side"),
        (95.0, 99.0, "wrong_side"),
        (100.0, 110.0, "no_planned_risk"),
        (float("nan"), 110.0, "level_unknown"),
    ],
)
def test_trigger_engine_tick_validation_order_without_right_levels_is_refused(
    stop: float, target: float, reason: str
) -> None:
    engine = engine_on(series(_flat(6)))
    install(engine, setup=[1], activation=[2], stop=stop, target=target)
    steps = run_all(engine)
    refused = next(event for step in steps for event in step.events if event.kind == "order_refused")
    assert refused.detail["reason"] == reason
    assert "entry_filled" not in kinds(steps)


def test_trigger_engine_tick_validation_exposure_is_reserved_in_symbol_order() -> None:
    bars = random_series(1, 6, 2, scale=1e-6)
    engine = engine_on(bars)
    for s in range(2):
        install(engine, s=s, setup=[1], activation=[2], stop=99.2, target=110.0)
    steps = run_all(engine)
    accepted = [event for step in steps for event in step.events if event.kind == "order_accepted"]
    clamped = [event for step in steps for event in step.events if event.kind == "order_clamped"]
    assert [event.symbol for event in accepted] == ["S00", "S01"]
    assert accepted[0].detail["quantity"] == pytest.approx(625.0, rel=1e-3)
    assert clamped[0].symbol == "S01"
    assert clamped[0].detail["clamps"] == ["gross_exposure"]
    assert accepted[1].detail["quantity"] == pytest.approx(375.0, rel=1e-2)


def test_trigger_engine_tick_validation_daily_loss_flattens_halts_and_rearms_next_day() -> None:
    rows = _flat(3) + [(100.0, 100.0, 89.0, 90.0)] + [(90.0, 91.0, 89.0, 90.0)] * 5
    engine = engine_on(series(rows, timeframe="4h"), envelope=EnvelopeSettings(max_daily_loss=0.001))
    install(engine, setup=[1], activation=[2], stop=50.0, target=200.0)
    steps = run_all(engine)
    names = kinds(steps)
    assert "envelope_breach" in names
    exit_ = next(event for step in steps for event in step.events if event.kind == "exit_filled")
    assert exit_.detail["reason"] == "envelope"
    assert exit_.bar_label == int(engine.bars.times[4])
    released = next(event for step in steps for event in step.events if event.kind == "envelope_released")
    assert released.bar_label == int(engine.bars.times[6])
    assert any(OverrideReason.ENVELOPE_BREACH in b.overrides for step in steps for b in step.boundaries)


def test_trigger_engine_tick_validation_drawdown_halts_and_halves_risk_after_release() -> None:
    rows = _flat(3) + [(100.0, 100.0, 89.0, 90.0)] + [(90.0, 91.0, 89.0, 90.0)] * 12
    envelope = EnvelopeSettings(
        max_drawdown=0.009, max_daily_loss=0.5, drawdown_release_bars=4, cooldown_bars=1
    )
    engine = engine_on(series(rows), envelope=envelope)
    install(engine, setup=[1], activation=[2], stop=95.0, target=200.0)
    run_all(engine, 5)
    assert not engine.is_halted(), "a stopped-out 0.5 % loss is no breach"
    engine = engine_on(series(rows), envelope=envelope.model_copy(update={"max_drawdown": 0.004}))
    install(engine, setup=[1], activation=[2], stop=95.0, target=200.0)
    run_all(engine, 5)
    assert engine.is_halted()
    install(engine, setup=[9], activation=[10], stop=85.0, target=200.0, name="later")
    steps = run_all(engine)
    accepted = [event for step in steps for event in step.events if event.kind == "order_accepted"]
    assert len(accepted) == 1
    equity = float(engine.equity[10])
    assert accepted[0].detail["quantity"] == pytest.approx(equity * 0.005 * 0.5 / 5.0)


def test_trigger_engine_tick_validation_kill_switch_flattens_until_the_operator_releases_it() -> None:
    engine = engine_on(series(_flat(12)))
    install(engine, setup=[1], activation=[2])
    run_all(engine, 5)
    engine.set_kill_switch(True)
    steps = run_all(engine, 8)
    assert [e.detail["reason"] for step in steps for e in step.events if e.kind == "exit_filled"] == [
        "kill_switch"
    ]
    assert any(OverrideReason.KILL_SWITCH in b.overrides for step in steps for b in step.boundaries)
    assert engine.is_halted()
    engine.set_kill_switch(False)
    assert not engine.is_halted()


def test_trigger_engine_tick_validation_heartbeat_counts_own_bars_since_the_last_evaluation() -> None:
    engine = engine_on(series(_flat(16)), heartbeat=5)
    beats = []
    while not engine.done:
        step = engine.advance()
        for boundary in step.boundaries:
            assert boundary.events == (PolicyEventKind.HEARTBEAT,)
            beats.append(boundary.t)
        if engine.t == 5:
            engine.advance(7)
            engine.mark_evaluated(0)
    assert beats == [4, 11]


def test_trigger_engine_tick_validation_stale_data_opens_a_boundary_when_bars_return() -> None:
    bars = random_series(2, 30, 2, scale=1e-6)
    bars.present[6:16, 0] = False
    engine = engine_on(bars)
    install(engine, setup=[1], activation=[2], stop=50.0, target=200.0)
    steps = run_all(engine)
    stale = [b for step in steps for b in step.boundaries if OverrideReason.STALE_DATA in b.overrides]
    assert [(b.s, b.t) for b in stale] == [(0, 16)]


def test_trigger_engine_tick_validation_tighten_stop_refuses_anything_looser() -> None:
    engine = engine_on(series(_flat(8)))
    install(engine, setup=[1], activation=[2])
    run_all(engine, 5)
    event = engine.tighten_stop(0, 97.0)
    assert (event.detail["stop_before"], event.detail["stop"]) == (95.0, 97.0)
    for level in (96.0, 97.0, 100.5, float("nan")):
        with pytest.raises(InvariantViolation, match="not tighter"):
            engine.tighten_stop(0, level)


def test_trigger_engine_tick_validation_install_over_a_position_is_refused() -> None:
    engine = engine_on(series(_flat(8)))
    install(engine, setup=[1], activation=[2])
    run_all(engine, 5)
    with pytest.raises(InvariantViolation, match="holds a position"):
        install(engine, setup=[6], name="other")


@pytest.mark.parametrize("forbidden", ["llm_calls", "memory_reads", "policy_writes"])
def test_trigger_engine_tick_validation_guard_raises_inside_the_tick_path(
    forbidden: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_on(series(_flat(4)))

    def intruding(end: int) -> tuple[int, int]:
        engine.guard.forbid(forbidden)  # type: ignore[arg-type]
        return end, 0

    monkeypatch.setattr(engine, "_run_kernel", intruding)
    with pytest.raises(InvariantViolation, match="tick path"):
        engine.advance()
    assert engine.guard.attempts[forbidden] == 1  # type: ignore[index]
    engine.guard.forbid(forbidden)  # type: ignore[arg-type]
    assert engine.guard.attempts[forbidden] == 1, "outside the tick path nothing is forbidden"  # type: ignore[index]


def test_trigger_engine_tick_validation_illegal_transition_is_a_fault() -> None:
    engine = engine_on(series(_flat(6)))
    install(engine, setup=[1], activation=[2])
    run_all(engine, 3)
    engine.state["state"][0] = STATES.index(PolicyState.COOLDOWN)
    with pytest.raises(InvariantViolation, match="COOLDOWN -> POSITION_OPEN"):
        engine.advance()


def test_trigger_engine_tick_validation_retired_order_is_refused_by_name() -> None:
    engine = engine_on(series(_flat(8)))
    install(engine, setup=[1], activation=[2])
    run_all(engine, 3)
    events = engine.retire(0)
    assert [(event.kind, event.detail.get("reason")) for event in events] == [
        ("order_refused", "retired"),
        ("state_transition", None),
    ]
    assert "entry_filled" not in kinds(run_all(engine))


def test_trigger_engine_tick_validation_suppressed_heartbeat_fires_again_when_suppression_ends() -> None:
    engine = engine_on(series(_flat(30)), heartbeat=5)
    install(engine, setup=[3], activation=[], window=4)
    beats = [(b.t, str(b.state)) for step in run_all(engine) for b in step.boundaries]
    assert beats[:3] == [(4, "THESIS_ARMED"), (8, "IDLE"), (13, "IDLE")]


def test_trigger_engine_tick_validation_requested_boundary_opens_on_the_next_bar() -> None:
    engine = engine_on(series(_flat(6)))
    engine.advance(2)
    engine.request_boundary(0)
    steps = run_all(engine)
    assert [(b.t, b.events) for step in steps for b in step.boundaries] == [(2, (PolicyEventKind.REPLAN,))]


def test_trigger_engine_tick_validation_override_of_an_absent_symbol_waits_for_its_bar() -> None:
    bars = random_series(3, 12, 2, scale=1e-6)
    engine = engine_on(bars)
    install(engine, setup=[1], activation=[2], stop=50.0, target=200.0)
    run_all(engine, 5)
    bars.present[5:8, 0] = False
    engine.set_kill_switch(True)
    steps = run_all(engine)
    seen = [
        (b.s, b.t) for step in steps for b in step.boundaries if OverrideReason.KILL_SWITCH in b.overrides
    ]
    assert seen == [(0, 8)]


def test_trigger_engine_tick_validation_hole_of_the_whole_feed_is_stale() -> None:
    bars = series(_flat(12))
    bars.times[6:] += 30 * 86_400 * 10**9
    engine = engine_on(bars)
    install(engine, setup=[1], activation=[2], stop=50.0, target=200.0)
    stale = [
        b.t for step in run_all(engine) for b in step.boundaries if OverrideReason.STALE_DATA in b.overrides
    ]
    assert stale == [6]


def test_trigger_engine_tick_validation_table_is_the_kernels_only_source() -> None:
    assert LEGAL.sum() == len(TRANSITIONS)
    assert all(LEGAL[STATES.index(a), STATES.index(b)] == 1 for a, b in TRANSITIONS)
