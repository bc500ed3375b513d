import numpy as np
import pytest

from services.statistics.shrinkage import shrunken_means


def cells(draw, means, n, sd=1.0):
    """`n` trades of each playbook x regime, over two years; means (playbooks, regimes)."""
    means = np.asarray(means, dtype=np.float64)
    book, regime = (np.repeat(place.ravel(), n) for place in np.indices(means.shape))
    r = np.repeat(means.ravel(), n) + sd * draw.standard_normal(means.size * n)
    return r, draw.integers(24, size=len(r)), [book, regime]


def test_small_groups_are_drawn_towards_the_others_and_large_ones_keep_their_mean():
    draw = np.random.default_rng(0)
    r, months, keys = cells(draw, np.zeros((4, 3)), 200)
    late = np.full(5, -1.0) + 0.1 * np.arange(5)
    few = (
        np.concatenate((r, late)),
        np.append(months, np.arange(5)),
        [np.append(key, [4] * 5) for key in keys],
    )
    found = shrunken_means(*few)
    assert found[4,].alone == pytest.approx(-0.8)
    assert abs(found[4,].mean) < 0.4
    many = shrunken_means(*cells(draw, [[0.5, 0.5], [-0.5, -0.5]], 2_000))
    assert many[0,].mean == pytest.approx(0.5, abs=0.1)
    assert many[1,].mean == pytest.approx(-0.5, abs=0.1)


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.2, 0.4])
def test_bands_hold_the_truth_and_errors_are_smaller_than_those_of_raw_means(spread):
    inside, raw, pooled = [], [], []
    for seed in range(30):
        draw = np.random.default_rng([seed, 5])
        means = spread * (draw.standard_normal((5, 1)) + draw.standard_normal((5, 4)))
        for group, band in shrunken_means(*cells(draw, means, 8)).items():
            if len(group) == 2:
                inside.append(band.lower <= means[group] <= band.upper)
                raw.append((band.alone - means[group]) ** 2)
                pooled.append((band.mean - means[group]) ** 2)
    assert np.mean(inside) >= 0.86  # 88 % less two standard errors of 600 cells
    assert np.mean(pooled) < np.mean(raw)


def test_months_that_are_one_bet_widen_the_band():
    draw = np.random.default_rng(1)
    months, keys = np.repeat(np.arange(24), 10), [np.zeros(240, dtype=np.int64)] * 2
    own, shared = draw.standard_normal(240), np.repeat(draw.standard_normal(24), 10)
    narrow, wide = (shrunken_means(r, months, keys)[0,] for r in (own, shared))
    assert wide.upper - wide.lower > 2.0 * (narrow.upper - narrow.lower)


@pytest.mark.parametrize("r", [-0.1, -0.3, -0.7, -0.8, -0.9])
def test_rows_that_are_all_alike_are_no_bet_of_months_by_a_bit_of_rounding(r):
    found = shrunken_means(np.full(46, r), np.arange(46), [np.zeros(46, dtype=np.int64)])[0,]
    assert found.mean == pytest.approx(r, abs=0.05)
    assert found.upper - found.lower < 0.2


def test_order_of_rows_reaches_no_bit():
    r, months, keys = cells(np.random.default_rng(2), np.zeros((3, 3)), 7)
    turn = np.random.default_rng(3).permutation(len(r))
    assert shrunken_means(r, months, keys) == shrunken_means(
        r[turn], months[turn], [key[turn] for key in keys]
    )


def test_a_level_that_does_not_branch_changes_nothing():
    r, months, keys = cells(np.random.default_rng(4), np.zeros((3, 3)), 7)
    found = shrunken_means(r, months, keys)
    deeper = shrunken_means(r, months, [*keys, np.zeros(len(r), dtype=np.int64)])
    assert {name: deeper[name] for name in found} == found


def test_no_trades_have_no_means():
    nothing = np.zeros(0, dtype=np.int64)
    assert shrunken_means(np.zeros(0), nothing, [nothing]) == {}
