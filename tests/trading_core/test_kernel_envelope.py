"""Every limit of the envelope on bars made by hand: the event, what it closes, what it blocks, how it ends.

A scenario is a function that plays a market to its end; its story is exact. Together the scenarios have to
show every refusal, clamp, breach and kind of event that the kernel declares.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from schemas.config import CorrelationBucket, EnvelopeSettings, ExecutionSettings
from schemas.reflection import TickValidationEvent
from schemas.vocabulary import OverrideReason, TickEventKind
from tests.trading_core.engine_bench import FLAT, NO_COSTS, WIDE, engine_on, install, run_all, story
from tests.trading_core.market import Row, panel
from trading_core.kernel.records import BREACHES, CLAMPS, FLAG_NO_TRADE, REFUSALS
from trading_core.kernel.state_machine import STATES
from trading_core.trigger_engine import TriggerEngine

Rows = list[Row | None]
Played = tuple[TriggerEngine, list[TickValidationEvent]]
FAR: dict[str, Any] = {"stop": 50.0, "target": 200.0, "horizon": 90}
LOW, HIGH = (90.0, 91.0, 89.0, 90.0), (130.0, 131.0, 129.0, 130.0)
FALL, RISE = (100.0, 100.0, 89.0, 90.0), (100.0, 131.0, 100.0, 130.0)
NAN = float("nan")


def _limits(**limits: Any) -> EnvelopeSettings:
    return WIDE.model_copy(update={"cooldown_bars": 1, **limits})


def _flat(count: int) -> Rows:
    return [FLAT] * count


def _engine(markets: dict[str, Rows], timeframe: str = "1d", **limits: Any) -> TriggerEngine:
    return engine_on(panel(markets, timeframe), envelope=_limits(**limits))


def _order(engine: TriggerEngine, symbol: str, rows: list[int], **policy: Any) -> None:
    """A policy that orders at the close of the given rows, as long as it is in force."""
    install(
        engine,
        s=engine.bars.symbols.index(symbol),
        setup=rows,
        **{"immediate": True, "name": f"policy of {symbol}", **FAR, **policy},
    )


def _rest(engine: TriggerEngine, until: int | None = None) -> Iterator[TickValidationEvent]:
    for step in run_all(engine, until):
        yield from step.events


def daily_loss() -> Played:
    engine = _engine({"X": [*_flat(4), FALL, *[LOW] * 4], "Y": _flat(9)}, "4h", max_daily_loss=0.0005)
    _order(engine, "X", [2])
    _order(engine, "Y", [5, 6])
    return engine, [*_rest(engine)]


def drawdown() -> Played:
    limits: dict[str, Any] = {"max_drawdown": 0.0005, "drawdown_release_bars": 3, "recovery_bars": 2}
    engine = _engine({"X": [*_flat(4), FALL, *[LOW] * 8], "Y": _flat(13)}, **limits)
    _order(engine, "X", [2])
    _order(engine, "Y", [7, 8])
    return engine, [*_rest(engine)]


def losses_in_a_row() -> Played:
    limits: dict[str, Any] = {"max_consecutive_losses": 2, "loss_pause_bars": 3}
    markets = {"X": [*_flat(4), FALL, *[LOW] * 5], "Y": [*_flat(4), FALL, *[LOW] * 5]}
    engine = _engine({**markets, "W": _flat(10), "Z": _flat(10)}, **limits)
    for symbol in ("X", "Y"):
        _order(engine, symbol, [2], stop=95.0)
    _order(engine, "W", [2])
    _order(engine, "Z", [7, 8])
    return engine, [*_rest(engine)]


def losses_of_a_symbol() -> Played:
    limits: dict[str, Any] = {"max_symbol_losses": 1, "loss_pause_bars": 3}
    engine = _engine({"X": [*_flat(4), (100.0, 101.0, 94.0, 100.0), *_flat(5)], "Y": _flat(10)}, **limits)
    _order(engine, "X", [2, 5, 6, 7], stop=95.0, standing=True)
    _order(engine, "Y", [5])
    return engine, [*_rest(engine)]


def _drifts(**limits: Any) -> Played:
    engine = _engine({"X": [*_flat(4), RISE, *[HIGH] * 4], "Y": _flat(9)}, **limits)
    _order(engine, "X", [2])
    _order(engine, "Y", [4, 5, 6])
    return engine, [*_rest(engine)]


def gross_exposure() -> Played:
    return _drifts(max_gross_exposure=0.009)


def net_exposure() -> Played:
    return _drifts(max_net_exposure=0.009)


def bucket_exposure() -> Played:
    return _drifts(
        correlation_buckets=(CorrelationBucket(name="both", symbols=("X", "Y"), max_exposure=0.009),)
    )


def symbol_exposure() -> Played:
    engine = _engine({"X": _flat(5), "Y": _flat(5)}, max_symbol_exposure=0.009)
    for symbol in ("X", "Y"):
        _order(engine, symbol, [2])
    return engine, [*_rest(engine)]


def net_exposure_of_both_sides() -> Played:
    """A short makes room for a long."""
    engine = _engine({"X": _flat(6), "Y": _flat(6)}, max_net_exposure=0.009)
    _order(engine, "X", [2], direction=-1, stop=150.0, target=50.0)
    _order(engine, "Y", [3], risk_fraction=0.0085)
    return engine, [*_rest(engine)]


def risk_cap() -> Played:
    engine = _engine({"X": _flat(5)}, risk_fraction=0.005)
    _order(engine, "X", [2], risk_fraction=0.02)
    return engine, [*_rest(engine)]


def throttle() -> Played:
    engine = _engine({name: _flat(9) for name in "XYZ"}, "15m", max_entries_per_hour=2)
    for symbol, rows in {"X": [2], "Y": [3], "Z": [3, 5, 6]}.items():
        _order(engine, symbol, rows)
    return engine, [*_rest(engine)]


def kill_switch() -> Played:
    """X holds, Y rests, Z is armed; the switch goes on after row 5 and off after row 8."""
    engine = _engine({name: _flat(12) for name in "WXYZ"})
    _order(engine, "X", [2])
    _order(engine, "Y", [4], entry_kind="limit", entry=80.0, window=9)
    _order(engine, "Z", [4], immediate=False, activation=[7])
    _order(engine, "W", [7, 9])
    events = [*_rest(engine, 6)]
    engine.set_kill_switch(True)
    events += _rest(engine, 9)
    engine.set_kill_switch(False)
    return engine, [*events, *_rest(engine)]


def kill_switch_before_the_fill() -> Played:
    engine = _engine({"X": _flat(7)})
    _order(engine, "X", [3])
    events = [*_rest(engine, 4)]
    engine.set_kill_switch(True)
    return engine, [*events, *_rest(engine)]


def everything_at_once() -> Played:
    engine = _engine(
        {"X": [*_flat(4), FALL, *[LOW] * 3]}, max_daily_loss=0.0005, max_drawdown=0.0005,
        max_gross_exposure=0.02, max_exposure_drift=0.0,
    )  # fmt: skip
    _order(engine, "X", [2], direction=-1, stop=190.0, target=20.0, risk_fraction=0.02)
    engine.bars.close[4, 0] = engine.bars.high[4, 0] = engine.bars.open[5, 0] = engine.bars.high[5, 0] = 120.0
    return engine, [*_rest(engine)]


def levels() -> Played:
    engine = _engine({name: _flat(6) for name in "UVXY"})
    _order(engine, "U", [2], stop=101.0)
    _order(engine, "V", [2], stop=100.0)
    _order(engine, "X", [2], stop=NAN)
    _order(engine, "Y", [2], target=NAN)
    return engine, [*_rest(engine)]


def resting_orders() -> Played:
    """One runs out of time, one is invalidated, one meets a no-trade window, one is retired."""
    bars = panel({name: _flat(8) for name in "UVXY"})
    flags = np.zeros(bars.shape, dtype=np.uint8)
    flags[4, 2] = FLAG_NO_TRADE
    engine = engine_on(bars, envelope=_limits(), flags=flags)
    limit: dict[str, Any] = {"entry_kind": "limit", "entry": 90.0, "window": 2}
    _order(engine, "U", [2], **limit)
    _order(engine, "V", [2], **limit, invalidation=[4])
    _order(engine, "X", [2], **limit)
    _order(engine, "Y", [2], **limit)
    events = [*_rest(engine, 4)]
    return engine, [*events, *engine.retire(3), *_rest(engine)]


def a_whole_life() -> Played:
    """Arming, refinement, activation, break-even, scale-out and target; then a policy that never trades."""
    rows: Rows = [*_flat(5), (100.0, 107.0, 99.5, 106.0), (106.0, 111.0, 105.0, 110.0), *_flat(9)]
    engine = _engine({"X": rows, "Y": [*_flat(4), (100.0, 101.0, 40.0, 100.0), *_flat(11)]})
    install(
        engine, setup=[1], activation=[3], refinement=96.0, break_even_r=1.0, scale_out_r=1.0,
        scale_out_share=0.25,
    )  # fmt: skip
    _order(engine, "Y", [2])
    events = [*_rest(engine, 8)]
    install(engine, setup=[9], activation=[], window=1, horizon=3, name="second")
    events += _rest(engine, 13)
    _order(engine, "Y", [13], horizon=1, name="third")
    return engine, [*events, *_rest(engine)]


STORIES: dict[Callable[[], Played], list[str]] = {
    daily_loss: [
        "3 X entry 100", "4 breach daily_loss", "5 X exit envelope 90", "5 Y refused halted",
        "6 released daily_loss", "7 Y entry 100",
    ],
    drawdown: [
        "3 X entry 100", "4 breach drawdown", "5 X exit envelope 90", "7 Y refused halted",
        "7 released drawdown", "8 Y clamped recovery_half_risk", "9 Y entry 100",
    ],
    losses_in_a_row: [
        "3 W entry 100", "3 X entry 100", "3 Y entry 100", "4 X exit stop 95", "4 Y exit stop 95",
        "4 breach consecutive_losses", "5 W exit envelope 100", "7 Z refused halted", "9 Z entry 100",
    ],
    losses_of_a_symbol: [
        "3 X entry 100", "4 X exit stop 95", "4 X breach symbol_losses", "5 X refused paused_after_losses",
        "6 Y entry 100", "6 X refused paused_after_losses", "8 X entry 100",
    ],
    gross_exposure: [
        "2 X clamped gross_exposure", "3 X entry 100", "4 Y refused no_capacity", "4 breach gross_exposure",
        "5 X exit envelope 130", "5 Y refused halted", "6 Y clamped gross_exposure", "7 Y entry 100",
    ],
    net_exposure: [
        "2 X clamped net_exposure", "3 X entry 100", "4 Y refused no_capacity", "4 breach net_exposure",
        "5 X exit envelope 130", "5 Y refused halted", "6 Y clamped net_exposure", "7 Y entry 100",
    ],
    bucket_exposure: [
        "2 X clamped bucket_exposure", "3 X entry 100", "4 Y refused no_capacity", "4 breach bucket_exposure",
        "5 X exit envelope 130", "5 Y refused halted", "6 Y clamped bucket_exposure", "7 Y entry 100",
    ],
    symbol_exposure: [
        "2 X clamped symbol_exposure", "2 Y clamped symbol_exposure", "3 X entry 100", "3 Y entry 100",
    ],
    net_exposure_of_both_sides: ["2 X clamped net_exposure", "3 X entry 100", "4 Y entry 100"],
    risk_cap: ["2 X clamped risk_cap", "3 X entry 100"],
    throttle: [
        "3 X entry 100", "3 Z refused throttled", "4 Y entry 100", "5 Z refused throttled", "7 Z entry 100",
    ],
    kill_switch: [
        "3 X entry 100", "6 breach kill_switch", "6 Y refused envelope", "7 X exit kill_switch 100",
        "7 W refused halted", "10 W entry 100",
    ],
    kill_switch_before_the_fill: ["4 breach kill_switch", "4 X refused envelope"],
    everything_at_once: [
        "2 X clamped gross_exposure", "3 X entry 100", "4 breach daily_loss", "4 breach drawdown",
        "4 breach gross_exposure", "5 released daily_loss", "5 X exit envelope 120",
    ],
    levels: [
        "2 U refused wrong_side", "2 V refused no_planned_risk", "2 X refused level_unknown",
        "2 Y refused level_unknown",
    ],
    resting_orders: [
        "3 Y refused retired", "4 V invalidated", "4 V refused invalidated", "4 X refused no_trade_window",
        "5 U refused unfilled", "5 U expired",
    ],
    a_whole_life: [
        "2 X refined stop 96", "3 Y entry 100", "4 X entry 100", "4 Y exit stop 50", "5 X scaled 104 x31.25",
        "5 X stop 100 by break_even", "6 X exit target 110", "11 X expired", "14 Y entry 100",
        "15 Y exit time_stop 100",
    ],
}  # fmt: skip


@pytest.mark.parametrize("scenario", STORIES, ids=lambda scenario: scenario.__name__)
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


@pytest.mark.parametrize("scenario", STORIES, ids=lambda scenario: scenario.__name__)
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
        (gross_exposure, [(10.0, 9.0), (10.0, 9.0)]),
        (symbol_exposure, [(10.0, 9.0), (10.0, 9.0)]),
        (risk_cap, [(40.0, 10.0)]),
        (drawdown, [(10.0, 5.0)]),
    ],
)
def test_kernel_clamp_tells_what_was_asked_and_what_is_left(scenario, quantities):
    found = [(e.detail["wanted"], e.detail["quantity"]) for e in scenario()[1] if e.kind == "order_clamped"]
    assert found == [
        (pytest.approx(asked, rel=0.01), pytest.approx(left, rel=0.01)) for asked, left in quantities
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
    engine = engine_on(panel({"X": _flat(9)}), envelope=_limits(cooldown_bars=3))
    engine.advance(2 if policy.get("horizon") else 0)
    _order(engine, "X", [2], **policy)
    events = [*_rest(engine, row + 1)]
    assert STATES[engine.state["state"][0]] == name
    engine.set_kill_switch(True)
    events += _rest(engine)
    assert sorted(story(engine, events)) == sorted(expected)


def test_kernel_emergency_closes_a_position_opened_at_the_close_of_the_breach():
    engine = engine_on(
        panel({"X": _flat(8), "Y": [*_flat(4), FALL, *[LOW] * 3]}), envelope=_limits(max_daily_loss=0.0005),
        execution=NO_COSTS.model_copy(update={"fill": "close"}),
    )  # fmt: skip
    _order(engine, "X", [4])
    _order(engine, "Y", [2])
    told = story(engine, _rest(engine))
    assert told[1:] == [
        "4 X entry 100", "4 breach daily_loss", "5 released daily_loss", "5 X exit envelope 100",
        "5 Y exit envelope 90",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("scenario", "row", "symbols", "reason"),
    [
        (daily_loss, 4, ["X"], OverrideReason.ENVELOPE_BREACH),
        (losses_in_a_row, 4, ["W"], OverrideReason.ENVELOPE_BREACH),
        (losses_of_a_symbol, 4, ["X"], OverrideReason.ENVELOPE_BREACH),
        (kill_switch, 6, ["X", "Y", "Z"], OverrideReason.KILL_SWITCH),
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


def test_kernel_risk_is_halved_until_a_new_high_of_the_bars_after_the_release():
    """Release at row 6; equity has to pass its high of rows 7 and 8, which it does when X rises at row 11."""
    closes = [100.0] * 4 + [80.0] * 5 + [80.0, 80.0, 90.0, 90.0, 90.0, 90.0]
    rows: Rows = [(c, c + 1, c - 1, c) for c in closes]
    limits: dict[str, Any] = {"max_drawdown": 0.001, "drawdown_release_bars": 2, "recovery_bars": 2}
    engine = _engine({"X": rows, "Y": _flat(15)}, **limits)
    _order(engine, "X", [2])
    _order(engine, "Y", [8, 12], horizon=1, standing=True)
    events = [*_rest(engine, 9)]
    _order(engine, "X", [9], name="second", stop=40.0)
    told = story(engine, [*events, *_rest(engine)])
    assert [line for line in told if "clamped" in line or "Y entry" in line] == [
        "8 Y clamped recovery_half_risk", "9 Y entry 100", "9 X clamped recovery_half_risk", "13 Y entry 100",
    ]  # fmt: skip
    assert engine.portfolio["recovery_from"][0] == -1


def test_kernel_account_that_is_lost_orders_nothing_and_stays_halted():
    engine = engine_on(
        panel({"X": [*_flat(4), *[(300.0, 301.0, 299.0, 300.0)] * 6]}), envelope=_limits(),
        execution=ExecutionSettings(fee_bps=0.0, slippage_bps=0.0, sizing="fixed", fixed_quantity=900.0),
        cash=1_000.0,
    )  # fmt: skip
    engine.parameters["max_risk"] = 100.0
    _order(engine, "X", [2, 6, 7, 8], direction=-1, stop=120.0, target=50.0, standing=True, risk_fraction=1.0)
    told = story(engine, _rest(engine))
    assert engine.equity[-1] < 0.0
    assert [line for line in told if "entry" in line] == ["3 X entry 100"]
    assert {line.split(maxsplit=1)[1] for line in told if "refused" in line} <= {
        "X refused no_capacity", "X refused halted",
    }  # fmt: skip


def test_kernel_bucket_is_deaf_to_symbols_outside_it():
    bucket = CorrelationBucket(name="other", symbols=("Y",), max_exposure=0.009)
    assert story(*_drifts(correlation_buckets=(bucket,))) == [
        "3 X entry 100", "4 Y clamped bucket_exposure", "5 Y entry 100",
    ]  # fmt: skip


def _breaches(engine: TriggerEngine) -> list[str]:
    return [line for line in story(engine, _rest(engine)) if "breach" in line]


@pytest.mark.parametrize("limit", ["drawdown", "daily_loss"])
@pytest.mark.parametrize(("close", "broken"), [(90.234375, True), (90.25, False)])
def test_kernel_loss_breaks_its_limit_when_it_is_exactly_as_large(limit, close, broken):
    """Ten units lose a 1024th of the account, or a little less; every number here is exact."""
    after = (close, close, close, close)
    engine = _engine(
        {"X": [*_flat(4), (100.0, 100.0, 89.0, close), after]}, "4h", **{f"max_{limit}": 2.0**-10}
    )
    _order(engine, "X", [2])
    assert _breaches(engine) == ([f"4 breach {limit}"] if broken else [])


@pytest.mark.parametrize(
    "limits",
    [
        {"max_gross_exposure": 0.009},
        {"max_net_exposure": 0.009},
        {"correlation_buckets": (CorrelationBucket(name="one", symbols=("X",), max_exposure=0.009),)},
    ],
    ids=["gross", "net", "bucket"],
)
@pytest.mark.parametrize(("close", "broken"), [(110.05, 0), (110.2, 1)])
def test_kernel_exposure_may_drift_a_tenth_above_its_cap(limits, close, broken):
    """Nine units at 100 are the cap of 900; the account, and with it the cap, grows with the price."""
    rows: Rows = [*_flat(4), (100.0, close, 100.0, close), (close, close, close, close)]
    engine = _engine({"X": rows}, max_exposure_drift=0.1, **limits)
    _order(engine, "X", [2])
    assert len(_breaches(engine)) == broken


def test_kernel_exposure_breaks_again_after_its_halt_has_ended():
    markets: dict[str, Rows] = {"X": [*_flat(4), RISE, *[HIGH] * 6], "Y": [*_flat(8), RISE, *[HIGH] * 2]}
    engine = _engine(markets, max_gross_exposure=0.009)
    _order(engine, "X", [2])
    _order(engine, "Y", [6])
    assert _breaches(engine) == ["4 breach gross_exposure", "8 breach gross_exposure"]


def test_kernel_winning_trade_ends_the_losses_in_a_row():
    """W loses, X wins, then Y and Z lose: only the last one is the second in a row."""
    loss, win = (100.0, 101.0, 94.0, 100.0), (100.0, 106.0, 99.0, 100.0)
    fills = {"W": loss, "X": win, "Y": loss, "Z": loss}
    markets: dict[str, Rows] = {
        name: [*_flat(3 + k), row, *_flat(5 - k)] for k, (name, row) in enumerate(fills.items())
    }
    engine = _engine(markets, max_consecutive_losses=2)
    for k, name in enumerate(fills):
        _order(engine, name, [1 + k], stop=95.0, target=105.0)
    assert _breaches(engine) == ["6 breach consecutive_losses"]


def test_kernel_clamp_of_caps_that_leave_the_same_names_the_first():
    bucket = CorrelationBucket(name="one", symbols=("X",), max_exposure=0.009)
    engine = _engine(
        {"X": _flat(5)}, max_gross_exposure=0.009, max_net_exposure=0.009, max_symbol_exposure=0.009,
        correlation_buckets=(bucket,),
    )  # fmt: skip
    _order(engine, "X", [2])
    assert story(engine, _rest(engine)) == ["2 X clamped gross_exposure", "3 X entry 100"]


@pytest.mark.parametrize(
    ("most", "told"),
    [
        (0, ["4 Y entry 100"]),
        (1, ["3 Y refused throttled", "5 Y refused throttled", "7 Y entry 100"]),
        (2, ["4 Y entry 100"]),
    ],
)
def test_kernel_throttle_counts_the_orders_of_the_last_hour(most, told):
    """X is ordered at row 2, an hour before row 6; zero is no limit."""
    engine = _engine({"X": _flat(9), "Y": _flat(9)}, "15m", max_entries_per_hour=most)
    _order(engine, "X", [2])
    _order(engine, "Y", [3, 5, 6])
    assert [line for line in story(engine, _rest(engine)) if " Y " in line] == told


@pytest.mark.parametrize(
    ("cap", "told"),
    [
        (0.0002, ["2 X clamped symbol_exposure", "3 X entry 100"]),
        (0.0001, ["2 X clamped symbol_exposure", "3 X entry 100"]),
        (0.00005, ["2 X refused no_capacity"]),
    ],
)
def test_kernel_room_for_less_than_a_hundredth_is_no_room(cap, told):
    """Ten units are wanted, 1,000 in money; there is room for 20, 10 or 5 in money."""
    engine = _engine({"X": _flat(5)}, max_symbol_exposure=cap)
    _order(engine, "X", [2])
    assert story(engine, _rest(engine)) == told
