from statistics import NormalDist

import numpy as np
import pytest

from services.statistics.sharpe import (
    Moments,
    expected_best_sharpe,
    minimum_track_record,
    moments,
    probabilistic_sharpe,
)


def test_track_record_of_a_published_size():
    # Sharpe 0.2 a trade, normal outcomes: 68 to 71 trades at 95 % one-sided.
    needed = minimum_track_record(Moments(100, 0.2, 0.0, 3.0))
    assert needed is not None
    assert 68 <= needed <= 71


@pytest.mark.parametrize(("skewness", "kurtosis"), [(0.0, 3.0), (-0.8, 6.0), (1.2, 9.0)])
def test_probabilistic_sharpe_reaches_its_level_exactly_at_the_minimum_track_record(skewness, kurtosis):
    found = Moments(100, 0.15, skewness, kurtosis)
    needed = minimum_track_record(found, level=0.9)
    assert needed is not None
    # PSR grows with sqrt(n - 1): from 100 trades to the number needed.
    z = NormalDist().inv_cdf(probabilistic_sharpe(found)) * np.sqrt((needed - 1) / 99)
    assert NormalDist().cdf(z) == pytest.approx(0.9)


def test_probabilistic_sharpe_falls_with_a_long_left_tail():
    assert probabilistic_sharpe(Moments(60, 0.2, -2.0, 9.0)) < probabilistic_sharpe(
        Moments(60, 0.2, 0.0, 3.0)
    )


@pytest.mark.parametrize("trials", [10, 100])
def test_expected_best_sharpe_is_the_mean_of_the_largest_draw(trials):
    draw = np.random.default_rng(1).standard_normal((4_000, trials)) * 0.1
    assert expected_best_sharpe(trials, 0.01) == pytest.approx(draw.max(axis=1).mean(), rel=0.03)


def test_deflated_sharpe_of_more_variants_is_lower_and_of_one_is_the_plain_one():
    found = Moments(200, 0.2, 0.0, 3.0)
    values = [probabilistic_sharpe(found, expected_best_sharpe(trials, 0.01)) for trials in (1, 5, 50)]
    assert values[0] == probabilistic_sharpe(found)
    assert values == sorted(values, reverse=True)


def test_moments_by_hand_and_without_spread():
    found = moments(np.array([1.0, -1.0, 3.0]))
    assert found is not None
    assert found.n == 3
    assert found.sharpe == pytest.approx(1.0 / 2.0)
    assert moments(np.array([1.0, 1.0, 1.0])) is None
    assert moments(np.array([1.0, 2.0])) is None
    assert minimum_track_record(Moments(50, -0.1, 0.0, 3.0)) is None
