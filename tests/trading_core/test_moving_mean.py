import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trading_core.features.nodes import CLOSE, mean
from trading_core.features.program import NodeProgram


def _mean(values, n, size=None):
    program = NodeProgram([mean(CLOSE, n)])
    state, parts = program.initial_state(), []
    for start in range(0, len(values), size or len(values)):
        block = np.asarray(values[start : start + (size or len(values))], dtype=float)
        parts.append(program.advance(block[np.newaxis], state)[0])
    return np.concatenate(parts)


def _hostile(seed, rows):
    """Values over twelve orders of magnitude, of both signs."""
    rng = np.random.default_rng(seed)
    return rng.normal(0, 1, rows) * 10.0 ** rng.integers(-6, 7, rows)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 30, 257, 3_000])
def test_mean_after_large_values_left_its_window_is_exact_to_the_last_bits(n):
    values = np.concatenate([np.full(n + 50, 1e12), _hostile(n, 9_000)])
    found = _mean(values, n)
    for t in (n - 1, n + 60, 2 * n + 100, values.size - 1):
        window = values[t - n + 1 : t + 1]
        scale = math.fsum(np.abs(window)) / n
        assert abs(found[t] - math.fsum(window) / n) <= 4e-16 * scale
    assert np.isnan(found[: n - 1]).all()


@pytest.mark.parametrize("n", [10, 20, 30])
def test_mean_of_a_million_prices_does_not_drift(n):
    rng = np.random.default_rng(n)
    values = np.round(100 * np.exp(np.cumsum(rng.normal(0, 0.002, 1_000_000))), 4)
    found = _mean(values, n)
    for t in range(values.size - 2_000, values.size):
        assert found[t] == math.fsum(values[t - n + 1 : t + 1]) / n


@pytest.mark.parametrize("price", [0.1, 3.3, 99.99, 1e-7])
def test_mean_of_a_flat_price_after_a_move_stands_still(price):
    values = np.concatenate([_hostile(1, 500), np.full(400, price)])
    settled = _mean(values, 30)[530:]
    assert np.unique(settled).size == 1
    assert settled[0] == math.fsum([price] * 30) / 30


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70), st.integers(1, 300), st.integers(0, 99), st.sampled_from([0.0, 0.02, 0.5]))
def test_mean_in_blocks_of_any_size_and_with_unknowns_gives_the_same_bits(n, size, seed, share):
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(300) < share, np.nan, rng.normal(100, 5, 300))
    assert _mean(values, n).tobytes() == _mean(values, n, size).tobytes()
    known = values[~np.isnan(values)]
    if known.size:
        alone = _mean(known, n)
        assert _mean(values, n)[~np.isnan(values)].tobytes() == alone.tobytes()
