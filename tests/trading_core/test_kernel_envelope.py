"""Every limit of the envelope on bars made by hand: the event, what it closes, what it blocks, how it ends.

A scenario is a function that plays a market to its end; its story is exact. Together the scenarios have to
show every refusal, clamp, breach and kind of event that the kernel declares.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from schemas.vocabulary import OverrideReason, TickEventKind
from tests.each_case import check_each
from tests.trading_core import envelope_scenarios as played
from tests.trading_core.engine_bench import NO_COSTS, engine_on, story
from tests.trading_core.envelope_scenarios import FALL, LOW, flat, limits_of, order, rest_of
from tests.trading_core.market import panel
from trading_core.kernel.records import BREACHES, CLAMPS, REFUSALS
from trading_core.kernel.state_machine import STATES
from trading_core.trigger_engine import TriggerEngine

STORIES: dict[Callable[[], played.Played], list[str]] = {
    played.daily_loss: [
        "3 X entry 100", "4 breach daily_loss", "5 X exit envelope 90", "5 Y refused halted",
        "6 released daily_loss", "7 Y entry 100",
    ],
    played.drawdown: [
        "3 X entry 100", "4 breach drawdown", "5 X exit envelope 90", "7 Y refused halted",
        "7 released drawdown", "8 Y clamped recovery_half_risk", "9 Y entry 100",
    ],
    played.losses_in_a_row: [
        "3 W entry 100", "3 X entry 100", "3 Y entry 100", "4 X exit stop 95", "4 Y exit stop 95",
        "4 breach consecutive_losses", "5 W exit envelope 100", "7 Z refused halted", "9 Z entry 100",
    ],
    played.losses_of_a_symbol: [
        "3 X entry 100", "4 X exit stop 95", "4 X breach symbol_losses", "5 X refused paused_after_losses",
        "6 Y entry 100", "6 X refused paused_after_losses", "8 X entry 100",
    ],
    played.gross_exposure: [
        "2 X clamped gross_exposure", "3 X entry 100", "4 Y refused no_capacity", "4 breach gross_exposure",
        "5 X exit envelope 130", "5 Y refused halted", "6 Y clamped gross_exposure", "7 Y entry 100",
    ],
    played.net_exposure: [
        "2 X clamped net_exposure", "3 X entry 100", "4 Y refused no_capacity", "4 breach net_exposure",
        "5 X exit envelope 130", "5 Y refused halted", "6 Y clamped net_exposure", "7 Y entry 100",
    ],
    played.bucket_exposure: [
        "2 X clamped bucket_exposure", "3 X entry 100", "4 Y refused no_capacity", "4 breach bucket_exposure",
        "5 X exit envelope 130", "5 Y refused halted", "6 Y clamped bucket_exposure", "7 Y entry 100",
    ],
    played.symbol_exposure: [
        "2 X clamped symbol_exposure", "2 Y clamped symbol_exposure", "3 X entry 100", "3 Y entry 100",
    ],
    played.net_exposure_of_both_sides: ["2 X clamped net_exposure", "3 X entry 100", "4 Y entry 100"],
    played.risk_cap: ["2 X clamped risk_cap", "3 X entry 100"],
    played.throttle: [
        "3 X entry 100", "3 Z refused throttled", "4 Y entry 100", "5 Z refused throttled", "7 Z entry 100",
    ],
    played.kill_switch: [
        "3 X entry 100", "6 breach kill_switch", "6 Y refused envelope", "7 X exit kill_switch 100",
        "7 W refused halted", "10 W entry 100",
    ],
    played.kill_switch_before_the_fill: ["4 breach kill_switch", "4 X refused envelope"],
    played.everything_at_once: [
        "2 X clamped gross_exposure", "3 X entry 100", "4 breach daily_loss", "4 breach drawdown",
        "4 breach gross_exposure", "5 released daily_loss", "5 X exit envelope 120",
    ],
    played.account_gone: ["3 X entry 100", "4 X exit stop 10200", "4 breach account_gone"],
    played.levels: [
        "2 U refused wrong_side", "2 V refused no_planned_risk", "2 X refused level_unknown",
        "2 Y refused level_unknown",
    ],
    played.too_little_reward: ["2 X refused reward_to_risk"],
    played.added_to_and_ended_by_a_rule: [
        "3 X entry 100", "5 X added 105 x50", "6 X exit rule", "7 X exit exit_rule 105",
    ],
    played.resting_orders: [
        "3 Y refused retired", "4 V invalidated", "4 V refused invalidated", "4 X refused no_trade_window",
        "5 U refused unfilled", "5 U expired",
    ],
    played.a_whole_life: [
        "2 X refined stop 96", "3 Y entry 100", "4 X entry 100", "4 Y exit stop 50", "5 X scaled 104 x31.25",
        "5 X stop 100 by break_even", "6 X exit target 110", "11 X expired", "14 Y entry 100",
        "15 Y exit time_stop 100",
    ],
}  # fmt: skip


@check_each("scenario", STORIES, ids=lambda scenario: scenario.__name__)
def test_kernel_envelope_tells_exactly_this(scenario):
    engine, events = scenario()
    assert story(engine, events) == STORIES[scenario]


def test_kernel_envelope_scenarios_show_everything_that_the_kernel_declares():
    """A new refusal, clamp, breach or kind of event without a scenario fails here."""
    events = [event for scenario in STORIES for event in scenario()[1]]
    refusals = {e.detail["reason"] for e in events if e.kind == "order_refused"}
    clamps = {name for e in events if e.kind == "order_clamped" for name in e.detail["clamps"]}
    breaches = {e.detail["limit"] for e in events if e.kind == "envelope_breach"}
    assert refusals == set(REFUSALS)
    assert clamps == set(CLAMPS)
    assert breaches == set(BREACHES)
    assert {event.kind for event in events} == set(TickEventKind)


@check_each("scenario", STORIES, ids=lambda scenario: scenario.__name__)
def test_kernel_envelope_books_agree_with_the_symbols_at_the_end(scenario):
    engine, _ = scenario()
    port, state = engine.portfolio[0], engine.state
    held = state["direction"] * state["quantity"] * state["last_close"]
    assert port["orders"] == state["order"].sum()
    assert port["positions"] == np.count_nonzero(state["direction"])
    assert port["equity"] == pytest.approx(port["cash"] + held.sum())
    assert port["gross"] == pytest.approx(np.abs(held).sum())
    assert port["net"] == pytest.approx(held.sum())
    assert (state["exit_reason"][state["direction"] == 0] == -1).all(), "nothing is queued without a position"


@pytest.mark.parametrize(
    ("scenario", "quantities"),
    [
        (played.gross_exposure, [(10.0, 9.0), (10.0, 9.0)]),
        (played.symbol_exposure, [(10.0, 9.0), (10.0, 9.0)]),
        (played.risk_cap, [(40.0, 10.0)]),
        (played.drawdown, [(10.0, 5.0)]),
    ],
)
def test_kernel_clamp_tells_what_was_asked_and_what_is_left(scenario, quantities):
    found = [(e.detail["wanted"], e.detail["quantity"]) for e in scenario()[1] if e.kind == "order_clamped"]
    assert found == [
        (pytest.approx(request, rel=0.01), pytest.approx(left, rel=0.01)) for request, left in quantities
    ]


# Where symbol X stands when the switch goes on after the row, and what its story then is.
EMERGENCIES: dict[str, tuple[int, dict[str, Any], list[str]]] = {
    "IDLE": (1, {}, ["2 breach kill_switch", "2 X refused halted"]),
    "THESIS_ARMED": (
        2, {"entry_kind": "limit", "entry": 60.0}, ["3 breach kill_switch", "3 X refused envelope"],
    ),
    "POSITION_OPEN": (3, {}, ["3 X entry 100", "4 breach kill_switch", "5 X exit kill_switch 100"]),
    "HOLD_LOCK": (4, {}, ["3 X entry 100", "5 breach kill_switch", "6 X exit kill_switch 100"]),
    "INVALIDATED": (
        4, {"invalidation": [4, 5, 6]},
        ["3 X entry 100", "4 X invalidated", "5 X exit invalidation 100", "5 breach kill_switch"],
    ),
    "COOLDOWN": (
        4, {"horizon": 1}, ["3 X entry 100", "4 X exit time_stop 100", "5 breach kill_switch"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EMERGENCIES)
def test_kernel_emergency_exit_is_vetoed_by_no_state(name):
    row, policy, expected = EMERGENCIES[name]
    engine = engine_on(panel({"X": flat(9)}), envelope=limits_of(cooldown_bars=3))
    engine.advance(2 if policy.get("horizon") else 0)
    order(engine, "X", [2], **policy)
    events = [*rest_of(engine, row + 1)]
    assert STATES[engine.state["state"][0]] == name
    engine.set_kill_switch(True)
    events += rest_of(engine)
    assert sorted(story(engine, events)) == sorted(expected)


def test_kernel_emergency_closes_a_position_opened_at_the_close_of_the_breach():
    engine = engine_on(
        panel({"X": flat(8), "Y": [*flat(4), FALL, *[LOW] * 3]}), envelope=limits_of(max_daily_loss=0.0005),
        execution=NO_COSTS.model_copy(update={"fill": "close"}),
    )  # fmt: skip
    order(engine, "X", [4])
    order(engine, "Y", [2])
    shown = story(engine, rest_of(engine))
    assert shown[1:] == [
        "4 X entry 100", "4 breach daily_loss", "5 released daily_loss", "5 X exit envelope 100",
        "5 Y exit envelope 90",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scenario", "row", "symbols", "reason"),
    [
        (played.daily_loss, 4, ["X"], OverrideReason.ENVELOPE_BREACH),
        (played.losses_in_a_row, 4, ["W"], OverrideReason.ENVELOPE_BREACH),
        (played.losses_of_a_symbol, 4, ["X"], OverrideReason.ENVELOPE_BREACH),
        (played.kill_switch, 6, ["X", "Y", "Z"], OverrideReason.KILL_SWITCH),
    ],
)
def test_kernel_breach_opens_a_boundary_where_something_was_stopped(
    scenario, row, symbols, reason, monkeypatch
):
    found: list[tuple[int, str]] = []
    advance = TriggerEngine.advance

    def seen(engine, until=None):
        step = advance(engine, until)
        found.extend((b.t, engine.bars.symbols[b.s]) for b in step.boundaries if reason in b.overrides)
        return step

    monkeypatch.setattr(TriggerEngine, "advance", seen)
    scenario()
    assert found == [(row, symbol) for symbol in symbols]
