import numpy as np
import pytest
from scipy import stats

from services.statistics.paired import (
    MINIMUM_BLOCKS,
    autocorrelations,
    diagnose,
    ljung_box,
    without_levels,
)


def autoregressive(seed, n, phi):
    draw = np.random.default_rng(seed).standard_normal(n)
    for t in range(1, n):
        draw[t] += phi * draw[t - 1]
    return draw


def test_ljung_box_is_that_of_the_formula_written_out():
    values = autoregressive(1, 80, 0.3)
    mean, n = values.mean(), len(values)
    q = 0.0
    for lag in range(1, 6):
        top = sum((values[t] - mean) * (values[t - lag] - mean) for t in range(lag, n))
        q += (top / sum((v - mean) ** 2 for v in values)) ** 2 / (n - lag)
    q *= n * (n + 2)
    found, p = ljung_box(values)
    assert found == pytest.approx(q)
    assert p == pytest.approx(stats.chi2.sf(q, 5))


def test_first_autocorrelation_is_that_of_the_correlation_of_neighbours_on_a_long_series():
    values = autoregressive(2, 5_000, 0.5)
    neighbours = np.corrcoef(values[1:], values[:-1])[0, 1]
    assert autocorrelations(values, 1)[0] == pytest.approx(neighbours, abs=2e-3)


def test_rows_are_diagnosed_as_each_alone():
    rows = np.stack([autoregressive(seed, 60, 0.2) for seed in range(4)])
    np.testing.assert_allclose(ljung_box(rows)[1], [ljung_box(row)[1] for row in rows])


@pytest.mark.parametrize(("phi", "low", "high"), [(0.0, 0.0, 0.04), (-0.5, 0.0, 0.01), (0.6, 0.85, 1.0)])
def test_blocks_are_flagged_when_neighbours_are_alike_and_only_then(phi, low, high):
    flagged = [diagnose(autoregressive(seed, 52, phi)).flagged for seed in range(300)]
    assert low <= np.mean(flagged) <= high


def test_too_few_or_constant_blocks_are_not_flagged():
    assert diagnose(np.arange(MINIMUM_BLOCKS - 1.0)).ljung_box_p is None
    assert not diagnose(np.arange(MINIMUM_BLOCKS - 1.0)).flagged
    assert not diagnose(np.full(50, -1.0)).flagged


@pytest.mark.parametrize("at", [13, 26, 40])
def test_mean_that_moved_once_is_no_dependence(at):
    moved = np.where(np.arange(52) < at, 0.4, -1.6)
    flagged = [
        diagnose(np.random.default_rng(seed).standard_normal(52) + moved).flagged for seed in range(200)
    ]
    assert np.mean(flagged) <= 0.06


def test_levels_are_those_of_the_best_split():
    values = np.array([1.0] * 15 + [-2.0] * 9)
    np.testing.assert_allclose(without_levels(values), 0.0, atol=1e-12)
