"""The state machine from its one table: every legal step happens in the engine, every other pair is a fault;
and symbols meet only in the portfolio.
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import InvariantViolation
from schemas.vocabulary import PolicyState
from tests.each_case import check_each
from tests.trading_core.engine_bench import FLAT, WIDE, engine_on, install, run_all
from tests.trading_core.market import random_series, series
from trading_core.bars import BarSeries
from trading_core.kernel.events import go
from trading_core.kernel.fresh import fresh_state
from trading_core.kernel.records import EVENT, TRADE, Out
from trading_core.kernel.state_machine import LEGAL, STATES, TRANSITIONS
from trading_core.trigger_engine import TriggerEngine

S = PolicyState
PAIRS = list(itertools.product(STATES, STATES))
ILLEGAL = [pair for pair in PAIRS if pair not in TRANSITIONS]
FALL = (100.0, 101.0, 94.0, 95.0)


def _story(rows: list[Any], **policy: Any) -> Callable[[], TriggerEngine]:
    def played() -> TriggerEngine:
        engine = engine_on(series(rows), envelope=WIDE.model_copy(update={"cooldown_bars": 2}))
        install(engine, **{"setup": [1], "activation": [2], **policy})
        return engine

    return played


FLATS = [FLAT] * 9
# For every legal step a market and a policy in which it happens.
DRIVEN: dict[tuple[PolicyState, PolicyState], Callable[[], TriggerEngine]] = {
    (S.IDLE, S.THESIS_ARMED): _story(FLATS),
    (S.THESIS_ARMED, S.IDLE): _story(FLATS, activation=[], window=1),
    (S.THESIS_ARMED, S.INVALIDATED): _story(FLATS, activation=[], invalidation=[2]),
    (S.THESIS_ARMED, S.POSITION_OPEN): _story(FLATS),
    (S.POSITION_OPEN, S.HOLD_LOCK): _story(FLATS),
    (S.POSITION_OPEN, S.INVALIDATED): _story(FLATS, invalidation=[3]),
    (S.POSITION_OPEN, S.COOLDOWN): _story([FLAT, FLAT, FLAT, FALL, FLAT, FLAT]),
    (S.HOLD_LOCK, S.INVALIDATED): _story(FLATS, invalidation=[5]),
    (S.HOLD_LOCK, S.COOLDOWN): _story([FLAT, FLAT, FLAT, FLAT, FLAT, FALL, FLAT]),
    (S.INVALIDATED, S.COOLDOWN): _story(FLATS, invalidation=[5]),
    (S.INVALIDATED, S.IDLE): _story(FLATS, activation=[], invalidation=[2]),
    (S.COOLDOWN, S.IDLE): _story([FLAT, FLAT, FLAT, FALL, *FLATS]),
}


def _moves(engine: TriggerEngine) -> list[tuple[PolicyState, PolicyState]]:
    return [
        (S(event.detail["from"]), S(event.detail["to"]))
        for step in run_all(engine)
        for event in step.events
        if event.kind == "state_transition"
    ]


def test_kernel_state_machine_has_a_story_for_every_legal_step():
    assert set(DRIVEN) == set(TRANSITIONS)
    assert len(ILLEGAL) == 36 - len(TRANSITIONS)
    assert int(LEGAL.sum()) == len(TRANSITIONS)


@pytest.mark.parametrize("step", DRIVEN, ids=lambda step: f"{step[0]}-{step[1]}")
def test_kernel_state_machine_legal_step_happens_and_the_path_is_unbroken(step):
    moves = _moves(DRIVEN[step]())
    assert step in moves
    assert set(moves) <= set(TRANSITIONS)
    assert moves[0][0] is S.IDLE
    assert all(before[1] is after[0] for before, after in itertools.pairwise(moves))


def _out() -> Out:
    return Out(
        np.zeros(4, dtype=EVENT).view(np.recarray), np.zeros(1, dtype=np.int64), np.zeros(1, dtype=TRADE),
        np.zeros(1, dtype=np.int64), 1,
    )  # fmt: skip


@check_each("pair", PAIRS, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_kernel_state_machine_step_is_taken_or_a_fault_by_the_table(pair):
    state, portfolio = (part.view(np.recarray) for part in fresh_state(1, 100.0))
    source, target = (STATES.index(item) for item in pair)
    state["state"] = source
    out = _out()
    go(state[0], portfolio[0], out, 7, 0, target)
    legal = pair in TRANSITIONS
    assert state["state"][0] == (target if legal else source)
    assert portfolio["fault"][0] == (0 if legal else 1 + 6 * source + target)
    assert out.count[0] == (1 if legal else 0)
    if legal:
        event = out.events[0]
        assert (event["t"], event["a"], event["b"]) == (7, source, target)


def _resting() -> TriggerEngine:
    engine = _story(FLATS)()
    run_all(engine, 3)
    return engine


def _holding() -> TriggerEngine:
    engine = _story(FLATS)()
    run_all(engine, 5)
    engine.set_kill_switch(True)
    run_all(engine, 6)
    return engine


@pytest.mark.parametrize("source", [s for s in STATES if (s, S.POSITION_OPEN) not in TRANSITIONS], ids=str)
def test_kernel_state_machine_fill_in_a_wrong_state_is_a_fault(source):
    engine = _resting()
    engine.state["state"][0] = STATES.index(source)
    with pytest.raises(InvariantViolation, match=f"illegal transition {source} -> POSITION_OPEN at row 3"):
        engine.advance()


@pytest.mark.parametrize("source", [s for s in STATES if (s, S.COOLDOWN) not in TRANSITIONS], ids=str)
def test_kernel_state_machine_exit_in_a_wrong_state_is_a_fault(source):
    engine = _holding()
    engine.state["state"][0] = STATES.index(source)
    with pytest.raises(InvariantViolation, match=f"illegal transition {source} -> COOLDOWN at row 6"):
        engine.advance()


@check_each("pair", ILLEGAL, ids=lambda pair: f"{pair[0]}-{pair[1]}")
def test_kernel_state_machine_doors_of_the_engine_refuse_an_illegal_step(pair):
    engine = engine_on(series(FLATS))
    engine.advance(2)
    engine.state["state"][0] = STATES.index(pair[0])
    with pytest.raises(InvariantViolation, match=f"illegal transition {pair[0]} -> {pair[1]}"):
        engine._transition(0, STATES.index(pair[1]))
    assert engine.state["state"][0] == STATES.index(pair[0])


def _events_of(bars: BarSeries, symbol: int, seed: int, equity_moves: bool) -> list[dict[str, Any]]:
    """Events of one symbol while nothing trades in the others, or while they do."""
    envelope = WIDE.model_copy(update={"cooldown_bars": 2})
    engine = engine_on(bars, envelope=envelope, heartbeat=5)
    rng = np.random.default_rng(seed)
    rows = bars.shape[0]
    for s in range(bars.shape[1]):
        setup = np.flatnonzero(rng.random(rows) < 0.2).tolist()
        close = np.where(bars.present[:, s], bars.close[:, s], np.nan)
        if s == symbol or equity_moves:
            install(
                engine, s=s, setup=setup, immediate=True, never_ends=True, horizon=9, name=f"policy {s}",
                stop=close * 0.98, target=close * 1.03,
            )  # fmt: skip
    return [
        event.payload() for step in run_all(engine) for event in step.events
        if event.symbol == bars.symbols[symbol]
    ]  # fmt: skip


@given(seed=st.integers(0, 10_000), scale=st.floats(0.2, 5.0), missing=st.sampled_from([0.0, 0.3]))
@settings(max_examples=40)
def test_kernel_symbol_never_reacts_to_the_bars_of_another(seed, scale, missing):
    bars, other = random_series(seed, 80, 2, missing=0.1), random_series(seed + 1, 80, 1, missing=missing)
    changed = random_series(seed, 80, 2, missing=0.1)
    for name in ("open", "high", "low", "close"):
        getattr(changed, name)[:, 1] = getattr(other, name)[:, 0] * scale
    changed.present[:, 1] = other.present[:, 0]
    events = _events_of(bars, 0, seed, equity_moves=False)
    assert len(events) > 5
    assert events == _events_of(changed, 0, seed, equity_moves=False)


def test_kernel_symbols_meet_in_the_portfolio():
    """The same change does matter once the other symbol trades: sizes follow the common equity."""
    bars, changed = random_series(4, 80, 2), random_series(4, 80, 2)
    for name in ("open", "high", "low", "close"):
        getattr(changed, name)[:, 1] *= np.linspace(1.0, 1.4, 80)
    changed.high[:, 1] *= 1.4  # the open of a bar is the close before it
    found = [_events_of(entry, 0, 4, equity_moves=True) for entry in (bars, changed)]
    assert found[0] != found[1]
    assert [e["kind"] for e in found[0]] == [e["kind"] for e in found[1]]
