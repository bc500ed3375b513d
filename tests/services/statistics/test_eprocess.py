from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from services.statistics.eprocess import (
    e_value,
    log_e_above,
    log_e_below,
    log_e_path,
    log_e_two_sided,
    pad,
)

LOW, HIGH = -3.0, 4.0
VALUES = arrays(np.float64, st.integers(0, 60), elements=st.floats(LOW, HIGH))


def sides(values, mean):
    bounds = np.full_like(values, LOW), np.full_like(values, HIGH)
    return log_e_above(values, *bounds, mean), log_e_below(values, *bounds, mean)


@pytest.mark.parametrize(("bad", "good"), [(-1.0, 2.0), (-3.0, 4.0), (-1.0, 0.2)])
@pytest.mark.parametrize("mean", [-0.3, 0.0, 0.1])
def test_mean_of_e_over_every_null_world_is_one(bad, good, mean):
    # Every sequence of a two-point outcome with exactly this mean, weighted by its probability.
    chance = (mean - bad) / (good - bad)
    worlds = np.array(list(product([0, 1], repeat=10)))
    weight = (chance**worlds * (1 - chance) ** (1 - worlds)).prod(axis=1)
    values = np.where(worlds == 1, good, bad).astype(float)
    e = np.exp(
        log_e_two_sided(
            values, np.full_like(values, LOW), np.full_like(values, HIGH), np.full(len(values), mean)
        )
    )
    assert weight @ e == pytest.approx(1.0, abs=1e-9)


@given(VALUES, st.floats(-2.9, 3.9), st.floats(0.0, 1.0))
def test_evidence_above_falls_and_below_rises_with_the_mean(values, mean, step):
    higher = min(mean + step, 3.95)
    (above, below), (above_later, below_later) = sides(values, mean), sides(values, higher)
    assert above_later <= above + 1e-9
    assert below_later >= below - 1e-9


@given(VALUES, st.randoms(use_true_random=False))
def test_e_value_of_reordered_outcomes_is_the_same(values, random):
    shuffled = values.copy()
    random.shuffle(shuffled)
    np.testing.assert_allclose(sides(values, 0.0), sides(shuffled, 0.0), rtol=1e-9, atol=1e-9)


@given(VALUES)
def test_mirrored_outcomes_swap_the_sides(values):
    values = np.clip(values, -3.0, 3.0)
    low, high = np.full_like(values, -3.0), np.full_like(values, 3.0)
    np.testing.assert_allclose(
        log_e_above(values, low, high, 0.0), log_e_below(-values, low, high, 0.0), atol=1e-9
    )


@given(VALUES)
def test_path_ends_at_the_e_value_and_starts_from_its_prefix(values):
    low, high = np.full_like(values, LOW), np.full_like(values, HIGH)
    path = log_e_path(values, low, high, 0.0)
    prefixes = [log_e_two_sided(values[:k], low[:k], high[:k], 0.0) for k in range(1, len(values) + 1)]
    np.testing.assert_allclose(path, prefixes, atol=1e-9)


@given(st.lists(VALUES.filter(len), min_size=1, max_size=6))
def test_padded_rows_have_the_values_of_their_own_length(rows):
    table = pad(rows)
    bounds = np.where(np.isnan(table), np.nan, LOW), np.where(np.isnan(table), np.nan, HIGH)
    together = log_e_two_sided(table, *bounds, np.zeros(len(rows)))
    alone = [log_e_two_sided(row, np.full_like(row, LOW), np.full_like(row, HIGH), 0.0) for row in rows]
    np.testing.assert_allclose(together, alone, atol=1e-9)


def test_formula_by_hand_for_two_outcomes():
    values, low, high = np.array([1.0, -1.0]), np.array([-3.0, -2.0]), np.array([4.0, 2.0])
    gains = [((1 + 3) / 3, (-1 + 2) / 2), ((4 - 1) / 4, (2 + 1) / 2)]
    by_hand = [np.mean([(1 - f + f * a) * (1 - f + f * b) for f in (0.1, 0.25, 0.5, 0.8)]) for a, b in gains]
    assert np.exp(log_e_two_sided(values, low, high, 0.0)) == pytest.approx(np.mean(by_hand))


@pytest.mark.parametrize("tail", ["t3", "bracket"])
def test_ville_rate_at_any_look_stays_below_alpha(tail):
    draw = np.random.default_rng(7)
    shape = (2_000, 400)
    if tail == "t3":
        values = draw.standard_t(3, shape) / np.sqrt(3)
    else:
        values = np.where(draw.random(shape) < 1 / 3, 2.0, -1.0)
    values = np.clip(values, -3.0, 3.0)
    path = log_e_path(values, np.full(shape, -3.0), np.full(shape, 3.0), np.zeros(shape[0]))
    assert (path.max(axis=1) >= np.log(20)).mean() <= 0.05


def test_e_value_of_a_huge_log_is_a_finite_number():
    assert np.isfinite(e_value(5_000.0))
    assert e_value(0.0) == 1.0
    assert e_value(np.log(12.3456789012)) == pytest.approx(12.3456789)
