"""Which bars open a boundary, one cause at a time."""

import numpy as np
import pytest

from schemas.vocabulary import OverrideReason, PolicyEventKind, PolicyState
from tests.trading_core.engine_bench import FLAT, WIDE, engine_on, install, run_all
from tests.trading_core.market import NS, panel
from trading_core.kernel.fresh import STALE_BARS, STALE_NS
from trading_core.kernel.loop import EVENTS_OF_PORTFOLIO, EVENTS_PER_SYMBOL_BAR
from trading_core.kernel.records import EVENT, FLAG_BAND, FLAG_NO_TRADE, FLAG_REGIME, FLAG_SHOCK, TRADE


def _boundaries(engine):
    return [(b.t, [*b.events, *b.overrides]) for step in run_all(engine) for b in step.boundaries if b.s == 0]


@pytest.mark.parametrize(
    ("flag", "cause"),
    [
        (FLAG_REGIME, PolicyEventKind.REGIME_CHANGE),
        (FLAG_BAND, PolicyEventKind.VOLATILITY_BAND_SHIFT),
        (FLAG_SHOCK, OverrideReason.VOLATILITY_SHOCK),
    ],
)
def test_kernel_boundary_opens_for_a_flag_alone(flag, cause):
    flags = np.zeros((6, 1), dtype=np.uint8)
    flags[3] = flag
    assert _boundaries(engine_on(panel({"X": [FLAT] * 6}), flags=flags)) == [(3, [cause])]


def test_kernel_boundary_opens_for_no_window_and_no_quiet_bar():
    flags = np.full((6, 1), FLAG_NO_TRADE, dtype=np.uint8)
    assert _boundaries(engine_on(panel({"X": [FLAT] * 6}), flags=flags)) == []


@pytest.mark.parametrize("heartbeat", [1, 3])
def test_kernel_boundary_beats_every_so_many_bars(heartbeat):
    found = _boundaries(engine_on(panel({"X": [FLAT] * 9}), heartbeat=heartbeat))
    assert [t for t, _ in found] == list(range(heartbeat - 1, 9, heartbeat))
    assert {tuple(causes) for _, causes in found} == {(PolicyEventKind.HEARTBEAT,)}


@pytest.mark.parametrize("missed", [STALE_BARS - 1, STALE_BARS])
@pytest.mark.parametrize("held", [True, False])
def test_kernel_boundary_opens_for_stale_data_of_a_held_symbol_only(missed, held):
    rows = [FLAT] * 4 + [None] * missed + [FLAT] * 3
    engine = engine_on(panel({"X": rows, "Y": [FLAT] * len(rows)}), envelope=WIDE)
    if held:
        install(engine, setup=[1], immediate=True)
    found = [t for t, causes in _boundaries(engine) if OverrideReason.STALE_DATA in causes]
    assert found == ([4 + missed] if held and missed == STALE_BARS else [])


def test_kernel_boundary_of_a_symbol_that_starts_late_is_not_stale():
    engine = engine_on(panel({"X": [None] * 8 + [FLAT] * 3, "Y": [FLAT] * 11}), heartbeat=0)
    assert _boundaries(engine) == []


@pytest.mark.parametrize("missed", [0, 1])
@pytest.mark.parametrize(("short_of", "found"), [(0, [5]), (1, [])])
def test_kernel_boundary_opens_for_data_that_is_exactly_as_old_as_allowed(missed, short_of, found):
    """Few bars are missing, but the market was closed for long."""
    rows = [FLAT] * (5 - missed) + [None] * missed + [FLAT] * 3
    engine = engine_on(panel({"X": rows, "Y": [FLAT] * 8}), envelope=WIDE)
    engine.bars.times[5:] += STALE_NS - (missed + 1) * 86_400 * NS - short_of
    install(engine, setup=[1], immediate=True)
    assert [t for t, causes in _boundaries(engine) if OverrideReason.STALE_DATA in causes] == found


def test_kernel_counts_the_bars_that_are_there():
    engine = engine_on(panel({"X": [FLAT, None, None, *[FLAT] * 4], "Y": [FLAT] * 7}), heartbeat=2)
    steps = run_all(engine)
    assert len(steps) > 2
    assert sum(step.bars_validated for step in steps) == 12


@pytest.mark.parametrize("room", [1, 2, 3])
def test_kernel_full_trade_buffer_loses_no_trade(room):
    """The smallest buffer holds the trades of one bar; the calls are bounded, a full buffer has to move."""
    found = []
    for size in (1_024, room):
        engine = engine_on(panel({"X": [FLAT] * 20}), envelope=WIDE.model_copy(update={"cooldown_bars": 1}))
        engine._trades = np.zeros(size, dtype=TRADE)
        engine.parameters["boundaries"] = 0
        install(engine, setup=range(20), immediate=True, never_ends=True, horizon=1)
        steps = [engine.advance() for _ in range(100)]
        assert engine.done
        found.append(np.concatenate([step.trades for step in steps]).tolist())
    assert len(found[0]) > 4
    assert found[0] == found[1]


@pytest.mark.parametrize("symbols", [1, 6])
def test_kernel_full_event_buffer_loses_no_event(symbols):
    """The smallest buffer holds the events of one bar."""
    found = []
    for size in (4_096, EVENTS_PER_SYMBOL_BAR * symbols + EVENTS_OF_PORTFOLIO):
        markets = {f"S{s}": [FLAT] * 20 for s in range(symbols)}
        engine = engine_on(panel(markets), envelope=WIDE.model_copy(update={"cooldown_bars": 1}))
        engine._events = np.zeros(size, dtype=EVENT)
        engine.parameters["boundaries"] = 0
        for s in range(symbols):
            install(engine, s=s, setup=range(20), immediate=True, never_ends=True, horizon=1)
        steps = [engine.advance() for _ in range(100)]
        assert engine.done
        found.append([event.payload() for step in steps for event in step.events])
    assert len(found[0]) > 32
    assert found[0] == found[1]


@pytest.mark.parametrize("held", [True, False])
def test_kernel_boundary_opens_for_an_invalidation_of_a_position_or_a_thesis(held):
    engine = engine_on(panel({"X": [FLAT] * 7}), envelope=WIDE)
    install(engine, setup=[1], activation=[2] if held else [], invalidation=[4], window=9)
    assert [t for t, causes in _boundaries(engine) if OverrideReason.INVALIDATION_HIT in causes] == [4]


def test_kernel_boundary_opens_for_a_position_that_opens_or_closes():
    engine = engine_on(panel({"X": [FLAT] * 9}), envelope=WIDE)
    install(engine, setup=[1], immediate=True, horizon=3)
    assert _boundaries(engine) == [
        (2, [PolicyEventKind.POSITION_OPENED]), (5, [PolicyEventKind.POSITION_CLOSED]),
    ]  # fmt: skip


@pytest.mark.parametrize("row", [1, 2])
@pytest.mark.parametrize("years", [0, 100])
def test_kernel_boundary_opens_for_stale_data_from_the_first_bar_on(row, years):
    """A thesis is armed at the first bar, and the whole market pauses before the given row; long ago, too."""
    engine = engine_on(panel({"X": [FLAT] * 5}), envelope=WIDE)
    engine.bars.times[row:] += STALE_NS
    engine.bars.times[:] -= years * 365 * 86_400 * NS
    install(engine, setup=[0], activation=[], window=9)
    assert _boundaries(engine) == [(row, [OverrideReason.STALE_DATA])]


@pytest.mark.parametrize("missed", [1, 4])
@pytest.mark.parametrize(
    ("stale", "found"),
    [({"stale_bars": 1}, [0]), ({"stale_bars": 0, "stale_ns": 1}, []), ({"stale_ns": 1}, [0, 1, 2])],
    ids=["a bar missed", "never", "any time passed"],
)
def test_kernel_boundary_of_stale_data_follows_its_parameters(stale, found, missed):
    """A thesis is armed at the first bar, which misses nothing; then bars are missing before three more."""
    rows = [FLAT, *[None] * missed, *[FLAT] * 3]
    engine = engine_on(panel({"X": rows, "Y": [FLAT] * len(rows)}), envelope=WIDE, heartbeat=1)
    for name, value in stale.items():
        engine.parameters[name] = value
    install(engine, setup=[0], activation=[], window=9)
    seen = [t for t, causes in _boundaries(engine) if OverrideReason.STALE_DATA in causes]
    assert seen == [1 + missed + k for k in found]


@pytest.mark.parametrize(("short_of", "rows"), [(0, 3), (1, 0)])
def test_kernel_with_less_room_than_the_events_of_a_bar_does_not_start(short_of, rows):
    engine = engine_on(panel({"X": [FLAT] * 3}))
    engine._events = np.zeros(EVENTS_PER_SYMBOL_BAR + EVENTS_OF_PORTFOLIO - short_of, dtype=EVENT)
    engine.advance()
    assert engine.t == rows


@pytest.mark.parametrize(
    ("bench", "state"),
    [
        ({}, PolicyState.IDLE),
        ({"setup": [1], "activation": [], "window": 9}, PolicyState.THESIS_ARMED),
        ({"setup": [1], "activation": [2]}, PolicyState.HOLD_LOCK),
    ],
    ids=["idle", "armed", "holding"],
)
@pytest.mark.parametrize("missed", [0, 2])
def test_kernel_boundary_opens_for_conflicting_data_in_every_state_at_the_next_own_bar(bench, state, missed):
    rows = [*[FLAT] * 6, *[None] * missed, *[FLAT] * 3]
    engine = engine_on(panel({"X": rows, "Y": [FLAT] * len(rows)}), envelope=WIDE)
    if bench:
        install(engine, **bench)
    run_all(engine, 6)
    engine.doubt_data(0)
    found = [(b.s, b.t, b.state, b.overrides) for step in run_all(engine) for b in step.boundaries]
    assert found == [(0, 6 + missed, state, (OverrideReason.CONFLICTING_DATA,))], "once, and of this symbol"
