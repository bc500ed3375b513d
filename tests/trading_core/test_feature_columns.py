import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import RuleError
from tests.trading_core.price_paths import columns_of, one_symbol, series, walk
from trading_core.bars import COLUMNS
from trading_core.features import FeatureColumns, compute, feature_names, resolve
from trading_core.features.blocks import advance
from trading_core.features.calendar import raw_column
from trading_core.features.program import NodeProgram

NAMES = feature_names()
N = 400
PROGRAM = NodeProgram([resolve(name).node for name in NAMES])
BARS = one_symbol(walk(7, N))
INPUTS = np.stack([
    getattr(BARS, name)[:, 0]
    if name in COLUMNS
    else raw_column(name, BARS.times, BARS.close_times, BARS.timeframe)
    for name in PROGRAM.inputs
])  # fmt: skip
WHOLE = PROGRAM.advance(INPUTS, PROGRAM.initial_state())


@given(st.lists(st.integers(0, N), max_size=8))
def test_program_over_any_block_split_gives_the_same_bits(cuts):
    state, parts = PROGRAM.initial_state(), []
    edges = [0, *sorted(cuts), N]
    for start, stop in zip(edges, edges[1:], strict=False):
        parts.append(PROGRAM.advance(INPUTS[:, start:stop], state))
    assert np.concatenate(parts, axis=1).tobytes() == WHOLE.tobytes()


def test_program_one_bar_at_a_time_and_from_a_copied_state_gives_the_same_bits():
    state = PROGRAM.initial_state()
    steps = [PROGRAM.advance(INPUTS[:, t : t + 1], state) for t in range(300)]
    restored = state.copy()
    rest = PROGRAM.advance(INPUTS[:, 300:], restored)
    assert np.concatenate([*steps, rest], axis=1).tobytes() == WHOLE.tobytes()


def test_program_longer_than_one_internal_block_equals_single_steps():
    close = walk(9, 5_000)
    program = NodeProgram([resolve(name).node for name in ("sma_20", "rsi_14", "bandwidth_20_rank")])
    inputs = close[np.newaxis]
    whole = program.advance(inputs, program.initial_state())
    state = program.initial_state()
    steps = [program.advance(inputs[:, t : t + 1], state) for t in range(close.size)]
    assert np.concatenate(steps, axis=1).tobytes() == whole.tobytes()


def test_recurrences_have_one_compiled_signature():
    assert len(advance.signatures) == 1


def test_compute_features_together_or_alone_gives_the_same_bits():
    bars = one_symbol(walk(4, N))
    together = compute(bars, NAMES)
    for name in NAMES:
        assert compute(bars, [name])[name].tobytes() == together[name].tobytes()


def test_compute_symbol_with_missing_bars_equals_the_symbol_alone():
    rng = np.random.default_rng(0)
    present = np.column_stack([rng.random(N) > 0.3, np.ones(N, dtype=bool)])
    shapes = {"AAA": columns_of(walk(1, N)), "BBB": columns_of(walk(2, N), seed=5)}
    bars = series(shapes, present=present)
    both = compute(bars, NAMES)
    for s, symbol in enumerate(bars.symbols):
        alone = compute(bars.select((symbol,)), NAMES)
        for name in NAMES:
            assert both[name][present[:, s], s].tobytes() == alone[name][:, 0].tobytes()
            assert np.isnan(both[name][~present[:, s], s]).all()


@pytest.mark.parametrize("t", [0, 60, 250, 398])
def test_compute_changed_future_leaves_the_past_byte_equal(t):
    past, future = walk(1, N), walk(2, N, start=500.0)
    changed = columns_of(np.concatenate([past[: t + 1], future[t + 1 :]]))
    original = columns_of(past)
    for name, values in changed.items():
        values[: t + 1] = original[name][: t + 1]
    before, after = compute(series({"AAA": original}), NAMES), compute(series({"AAA": changed}), NAMES)
    for name in NAMES:
        assert before[name][: t + 1].tobytes() == after[name][: t + 1].tobytes()


def test_compute_shorter_history_is_a_prefix_of_the_longer():
    bars = one_symbol(walk(1, N))
    short = bars.select(end_ns=int(bars.times[199]))
    longer, shorter = compute(bars, NAMES), compute(short, NAMES)
    for name in NAMES:
        assert longer[name][:200].tobytes() == shorter[name].tobytes()


def test_compute_scaled_prices_leave_every_rank_unchanged():
    bars = one_symbol(walk(1, N))
    scaled = dataclasses.replace(
        bars, **{name: getattr(bars, name) * 100 for name in ("open", "high", "low", "close")}
    )
    ranks = [name for name in NAMES if name.endswith("_rank")]
    before, after = compute(bars, ranks), compute(scaled, ranks)
    for name in ranks:
        assert before[name].tobytes() == after[name].tobytes()


def test_compute_unknown_feature_is_refused():
    with pytest.raises(RuleError, match="Did you mean 'sma_20'"):
        compute(one_symbol(walk(1, 30)), ["close", "sna_20"])


def test_feature_columns_own_is_cached_and_compressed():
    present = np.ones((N, 1), dtype=bool)
    present[::3] = False
    columns = FeatureColumns(series({"AAA": columns_of(walk(1, N))}, present=present))
    assert columns.own("sma_20", 0).size == columns.rows(0).size == present.sum()
    assert columns.own("sma_20", 0) is columns.own("sma_20", 0)
