import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from services.statistics.confidence_sequence import confidence_edges, confidence_intervals
from services.statistics.eprocess import log_e_above, log_e_below
from services.statistics.expectancy import Trades, observe

VALUES = arrays(np.float64, st.integers(1, 80), elements=st.floats(-3.0, 4.0))


def edges(values, alpha):
    low, high = np.full_like(values, -3.0), np.full_like(values, 4.0)
    return confidence_edges(values, low, high, alpha, -3.0, 4.0)


@given(VALUES, st.floats(-2.5, 3.5), st.sampled_from([0.05, 0.1, 0.004]))
def test_interval_excludes_a_mean_exactly_when_the_e_process_refutes_it(values, mean, alpha):
    lower, upper = edges(values, alpha)
    low, high = np.full_like(values, -3.0), np.full_like(values, 4.0)
    limit, near = np.log(2 / alpha), 1e-3
    if abs(mean - lower) > near:
        assert (mean < lower) == (log_e_above(values, low, high, mean) >= limit)
    if abs(mean - upper) > near:
        assert (mean > upper) == (log_e_below(values, low, high, mean) >= limit)


@given(VALUES)
def test_interval_at_a_smaller_alpha_is_wider(values):
    (lower, upper), (lower_strict, upper_strict) = edges(values, 0.1), edges(values, 0.01)
    assert lower_strict <= lower <= upper <= upper_strict


def test_interval_covers_the_true_mean_at_every_look():
    draw = np.random.default_rng(3)
    values = np.where(draw.random((400, 200)) < 0.4, 2.0, -1.0)
    truth = 0.2
    missed = np.zeros(400, dtype=bool)
    for look in range(10, 201, 10):
        lower, upper = edges(values[:, :look], 0.1)
        missed |= (lower > truth) | (truth > upper)
    assert missed.mean() <= 0.10


def test_intervals_of_many_clusters_are_those_of_each_alone():
    draw = np.random.default_rng(6)
    batches = [draw.standard_normal(n) for n in (3, 0, 40, 17)]
    seen = [
        observe(Trades.of([(k, k, float(r)) for k, r in enumerate(batch)]), "trade", -3.0, 4.0)
        for batch in batches
    ]
    alphas = [0.1, 0.1, 0.004, 0.05]
    together = confidence_intervals(seen, alphas)
    alone = [confidence_intervals([item], [alpha])[0] for item, alpha in zip(seen, alphas, strict=True)]
    np.testing.assert_allclose(together, alone, atol=1e-9)
    assert together[1] == (-3.0, 4.0)


def test_interval_of_a_hundred_outcomes_has_the_width_that_was_simulated():
    draw = np.random.default_rng(11)
    values = np.clip(draw.standard_t(3, (200, 100)) / np.sqrt(3), -3.0, 4.0)
    lower, upper = edges(values, 0.05)
    assert 0.2 < np.median(upper - lower) / 2 < 0.4


@settings(max_examples=25)
@given(arrays(np.float64, st.integers(1, 24), elements=st.floats(-3.0, 4.0)), st.sampled_from([0.1, 0.01]))
def test_running_interval_is_the_intersection_of_the_looks_after_each_block(values, alpha):
    looks = [edges(values[:k], alpha) for k in range(1, len(values) + 1)]
    low, high = np.full_like(values, -3.0), np.full_like(values, 4.0)
    lower, upper = confidence_edges(values, low, high, alpha, -3.0, 4.0, running=True)
    assert lower == pytest.approx(max(look[0] for look in looks), abs=1e-4)
    assert upper == pytest.approx(min(look[1] for look in looks), abs=1e-4)


def test_running_interval_covers_a_constant_mean_and_never_widens():
    draw = np.random.default_rng(3)
    values = np.where(draw.random((300, 200)) < 0.4, 2.0, -1.0)
    low, high = np.full_like(values, -3.0), np.full_like(values, 4.0)
    at_half = confidence_edges(values[:, :100], low[:, :100], high[:, :100], 0.1, -3.0, 4.0, running=True)
    at_end = confidence_edges(values, low, high, 0.1, -3.0, 4.0, running=True)
    assert np.mean((at_end[0] > 0.2) | (at_end[1] < 0.2)) <= 0.10
    assert np.all(at_end[0] >= at_half[0] - 1e-4)
    assert np.all(at_end[1] <= at_half[1] + 1e-4)


def test_running_interval_of_a_mean_that_moved_is_empty():
    values = np.concatenate((np.full(60, 0.8), np.full(60, -0.8)))
    low, high = np.full_like(values, -3.0), np.full_like(values, 4.0)
    lower, upper = confidence_edges(values, low, high, 0.1, -3.0, 4.0, running=True)
    assert lower > upper
