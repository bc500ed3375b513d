"""Intervals hold the true figure as often as they say, where returns lean on each other and are skewed."""

import numpy as np
import pytest

from trading_core.accounting import FloatArray, IntArray, bars_per_year, sharpe
from trading_core.robust_errors import MarketLine, long_run_variance, market_line, sharpe_interval

DAY = 86_400 * 10**9
DRAWS = 400


def _times(count):
    return np.arange(count + 1, dtype=np.int64) * DAY


def _curve(returns):
    return np.concatenate([[1.0], np.cumprod(1.0 + returns)])


def _interval(curve: FloatArray, times: IntArray) -> tuple[float, float]:
    found = sharpe_interval(curve, times)
    assert found is not None
    return found


def _line(curve: FloatArray, market: FloatArray, times: IntArray) -> MarketLine:
    found = market_line(curve, market, times)
    assert found is not None
    return found


def _leaning(phi):
    def draw(random, count):
        shocks, found = random.normal(size=count + 200), np.zeros(count + 200)
        for row in range(1, count + 200):
            found[row] = phi * found[row - 1] + shocks[row]
        return 0.01 * (found[200:] * np.sqrt(1.0 - phi**2) + 0.05)

    return draw, 0.05


def _seldom_and_hard():
    """Many small gains and, in three of a hundred bars, a loss of twenty of them."""

    def draw(random, count):
        return np.where(random.random(count) < 0.03, -0.04, 0.002) + random.normal(size=count) * 0.002

    return draw, (0.97 * 0.002 - 0.03 * 0.04) / np.sqrt(0.002**2 + 0.97 * 0.03 * 0.042**2)


WORLDS = {f"autocorrelated_{phi}": _leaning(phi) for phi in (-0.3, 0.0, 0.5, 0.8)}
WORLDS["skewed"] = _seldom_and_hard()


@pytest.mark.parametrize("name", WORLDS)
def test_sharpe_interval_holds_the_true_ratio_in_19_of_20_worlds(name):
    draw, ratio = WORLDS[name]
    times, hits = _times(750), 0
    true = ratio * np.sqrt(bars_per_year(times))
    for seed in range(DRAWS):
        low, high = _interval(_curve(draw(np.random.default_rng(seed), 750)), times)
        hits += low <= true <= high
    assert 0.92 <= hits / DRAWS <= 0.99


def test_sharpe_interval_that_took_returns_as_independent_would_miss():
    """The world is hard enough: the textbook error of independent returns holds far less often."""
    draw, ratio = WORLDS["autocorrelated_0.5"]
    hits = 0
    for seed in range(DRAWS):
        returns = draw(np.random.default_rng(seed), 750)
        found = returns.mean() / returns.std(ddof=1)
        hits += abs(found - ratio) <= 1.96 * np.sqrt((1.0 + found**2 / 2.0) / 750)
    assert hits / DRAWS < 0.80


def test_sharpe_interval_of_independent_normal_returns_is_that_of_the_textbook():
    random, times = np.random.default_rng(5), _times(20_000)
    returns = 0.001 + 0.01 * random.normal(size=20_000)
    low, high = _interval(_curve(returns), times)
    ratio = 0.1
    wide = 2 * 1.96 * np.sqrt((1.0 + ratio**2 / 2.0) / 20_000 * bars_per_year(times))
    assert high - low == pytest.approx(wide, rel=0.05)
    assert (low + high) / 2 == pytest.approx(sharpe(_curve(returns), times))


@pytest.mark.parametrize("phi", [-0.4, 0.3, 0.7])
def test_long_run_variance_of_an_autoregression_is_its_closed_form(phi):
    draw, _ = _leaning(phi)
    returns = draw(np.random.default_rng(1), 100_000)
    assert long_run_variance(returns) == pytest.approx(1e-4 * (1 + phi) / (1 - phi), rel=0.06)


def test_market_line_of_a_curve_made_of_it_gives_its_alpha_and_beta():
    random, times = np.random.default_rng(3), _times(500)
    market = 0.01 * random.normal(size=500)
    found = _line(_curve(0.0002 + 0.4 * market), _curve(market), times)
    assert found.beta == pytest.approx(0.4)
    assert found.alpha == pytest.approx(0.0002 * bars_per_year(times))
    assert found.alpha_t is None, "nothing is left over to measure it by"


@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_t_of_alpha_calls_no_alpha_significant_in_one_of_20_worlds(phi):
    draw, _ = _leaning(phi)
    times, beyond = _times(750), 0
    for seed in range(DRAWS):
        market = 0.0003 + 0.01 * np.random.default_rng(10_000 + seed).normal(size=750)
        own = draw(np.random.default_rng(seed), 750) - 0.0005
        t = _line(_curve(0.7 * market + own), _curve(market), times).alpha_t
        assert t is not None
        beyond += abs(t) > 1.96
    assert 0.02 <= beyond / DRAWS <= 0.085


def test_errors_and_line_of_too_few_or_equal_returns_are_undefined():
    short, times = _curve(np.full(29, 0.01) * np.arange(29)), _times(29)
    assert sharpe_interval(short, times) is None
    assert market_line(short, short, times) is None
    flat, times = np.full(101, 7.0), _times(100)
    assert sharpe_interval(flat, times) is None
    assert market_line(flat, flat, times) is None
    paid = np.concatenate([[7.0], np.full(100, 6.99)])
    assert market_line(flat, paid, times) is None, "only buying moved it, no price"
