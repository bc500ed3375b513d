"""One engine: in blocks, row by row over growing bars, and after a snapshot, always to the same bits."""

import copy
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataError, InvariantViolation
from schemas.settings import EnvelopeSettings, ExecutionSettings
from tests.trading_core.market import random_series
from tests.trading_core.scripted_loop import (
    Script,
    World,
    bits,
    drive,
    drive_live,
    row_of,
    with_future,
    worlds,
)
from trading_core.kernel.loop import advance
from trading_core.live.growing_bars import Bar
from trading_core.research.simulation import simulate


@given(world=worlds(), blocks=st.lists(st.integers(1, 9), min_size=1, max_size=5))
@settings(max_examples=40)
def test_live_engine_in_blocks_of_any_size_gives_the_same_bits(world, blocks):
    whole, cut = world.engine(), world.engine()
    expected = drive(whole, Script(world.seed))
    assert drive(cut, Script(world.seed), itertools.cycle(blocks)) == expected
    assert bits(cut) == bits(whole)


@given(world=worlds(), history=st.integers(1, 69))
@settings(max_examples=30)
def test_live_step_row_by_row_gives_the_bits_of_a_backtest(world, history):
    whole, step = world.engine(), world.live(history)
    expected = drive(whole, Script(world.seed))
    assert drive_live(world, step, Script(world.seed)) == expected
    assert bits(step.engine) == bits(whole)


@given(world=worlds(), row=st.integers(1, 69))
@settings(max_examples=30)
def test_live_engine_restored_at_any_bar_has_the_same_future(world, row):
    engine, script = world.engine(), Script(world.seed)
    while engine.t < row:
        script(engine, engine.advance(row))
    saved, twin = engine.snapshot(), world.engine()
    again = copy.deepcopy(script)
    expected, after = drive(engine, script), bits(engine)
    engine.restore(saved)
    third = copy.deepcopy(again)
    assert drive(engine, again) == expected
    assert bits(engine) == after
    # Columns are shared with the bars, so a fresh engine has to know the same rules by the same index.
    twin.columns = engine.columns
    twin.restore(saved)
    assert drive(twin, third) == expected
    assert bits(twin)[:2] == after[:2]
    assert twin.equity[row:].tobytes() == engine.equity[row:].tobytes()


@given(world=worlds(), history=st.integers(5, 40), row=st.integers(0, 20))
@settings(max_examples=15)
def test_live_step_restored_has_the_same_future(world, history, row):
    def upto(step, script, end):
        events = drive(step.engine, script)[0]
        for t in range(step.bars.shape[0], end):
            for done in step(*row_of(world.bars, t)):
                events += [event.payload() for event in (*done.events, *script(step.engine, done))]
        return events

    rows = world.bars.shape[0]
    script, step = Script(world.seed), world.live(history)
    upto(step, script, history + row)
    saved, kept = step.engine.snapshot(), copy.deepcopy(script)
    expected = upto(step, script, rows)
    after = bits(step.engine)
    step.engine.restore(saved)
    again = drive(step.engine, kept)[0]
    assert again == expected
    assert bits(step.engine) == after


@given(world=worlds(), row=st.integers(5, 65), factor=st.sampled_from([0.7, 1.6]))
@settings(max_examples=25)
def test_live_engine_decides_nothing_by_a_later_bar(world, row, factor):
    other = World(world.seed, with_future(world.bars, row, factor), world.execution, world.envelope)
    known = int(world.bars.close_times[row - 1])
    engines = world.engine(), other.engine()
    past = [
        [event for event in drive(engine, Script(world.seed))[0] if event["known_at"] <= known]
        for engine in engines
    ]
    assert past[0] == past[1]
    assert engines[0].equity[:row].tobytes() == engines[1].equity[:row].tobytes()


def test_live_engine_worlds_of_the_script_are_not_quiet():
    """Guards the tests above: their worlds hold fills of every kind, clamps, breaches and stops moved."""
    seen: Counter[str] = Counter()

    @given(world=worlds())
    @settings(max_examples=40, database=None)
    def look(world):
        seen.update(event["kind"] for event in drive(world.engine(), Script(world.seed))[0])

    look()
    for kind in (
        "entry_filled", "exit_filled", "scale_out_filled", "stop_tightened", "order_refused", "order_clamped",
        "envelope_breach", "envelope_released", "entry_refined", "invalidation_hit", "thesis_expired",
        "policy_expired", "time_stop", "stop_breach", "target_breach",
    ):  # fmt: skip
        assert seen[kind] >= 1, (kind, seen)


def test_live_kernel_has_one_compiled_signature_after_every_kind_of_use():
    world = _world()
    drive(world.engine(), Script(1))
    step = world.live(20)
    drive_live(world, step, Script(1))
    step.engine.restore(step.engine.snapshot())
    for symbols in (1, 3):
        simulate(random_series(1, 40, symbols), "close > open")
    assert len(advance.signatures) == 1


def _world():
    return World(3, random_series(3, 60, 2, missing=0.1), ExecutionSettings(), EnvelopeSettings())


def test_live_step_refused_row_changes_nothing():
    world = _world()
    step, script = world.live(30), Script(world.seed)
    drive(step.engine, script)
    before, rows = bits(step.engine), step.bars.shape[0]
    label, bars = row_of(world.bars, 30)
    with pytest.raises(DataError, match="cannot be a bar"):
        step(label, {"S00": Bar(1.0, 0.5, 0.4, 1.0, 1.0)})
    with pytest.raises(DataError, match="not after"):
        step(int(world.bars.times[29]), bars)
    assert (bits(step.engine), step.bars.shape[0]) == (before, rows)
    assert step(label, bars)[-1].t == 31


def test_live_engine_takes_flags_of_exactly_the_new_rows():
    world = _world()
    step = world.live(30)
    step.bars.append(*row_of(world.bars, 30))
    step.bars.append(*row_of(world.bars, 31))
    for rows in (1, 3):
        with pytest.raises(InvariantViolation, match="rows of flags"):
            step.engine.extend(np.zeros((rows, 2), dtype=np.uint8))
    step.engine.extend(np.zeros((2, 2), dtype=np.uint8))
