"""Performance figures against recorded values of an independent library, a slow reading of their
definitions, and what has to hold for any curve.
"""

import json
import math
import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.statistics_cases import FIGURES, FILE, SEEDS, figures
from trading_core.accounting import YEAR_NS, cagr, calmar, max_drawdown, sharpe, sortino, volatility

DAY = 86_400 * 10**9
RECORDED = json.loads(FILE.read_text("utf-8"))["figures"]
OF_TIMES = (sharpe, sortino, volatility, cagr, calmar)
moves = st.lists(st.floats(-0.2, 0.25).filter(lambda move: abs(move) > 1e-6), min_size=3, max_size=40)


def _curve(steps, start=1_000.0):
    equity = start * np.cumprod([1.0, *(1.0 + step for step in steps)])
    return equity, np.arange(equity.size, dtype=np.int64) * DAY


def _near(value):
    return pytest.approx(value, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_accounting_of_a_seeded_curve_equals_the_independent_library(seed):
    ours, theirs = figures(seed), RECORDED[str(seed)]
    assert set(theirs) == set(FIGURES)
    for name in FIGURES:
        assert ours[name] == pytest.approx(theirs[name], rel=1e-9), name


@given(steps=moves)
def test_accounting_of_any_curve_equals_the_definitions(steps):
    equity, times = _curve(steps)
    values = equity.tolist()
    returns = [after / before - 1.0 for before, after in zip(values, values[1:], strict=False)]
    years = (len(values) - 1) * DAY / YEAR_NS
    per_year = (len(values) - 1) / years
    spread = statistics.stdev(returns)
    downside = math.sqrt(math.fsum(min(r, 0.0) ** 2 for r in returns) / len(returns))
    growth = (values[-1] / values[0]) ** (1.0 / years) - 1.0 if values[-1] > 0 else -1.0
    fall = max(1.0 - low / max(values[: k + 1]) for k, low in enumerate(values))
    assert volatility(equity, times) == _near(spread * math.sqrt(per_year))
    assert max_drawdown(equity) == _near(fall)
    assert cagr(equity, times) == _near(growth)
    if spread > 1e-6:
        expected = statistics.fmean(returns) / spread * math.sqrt(per_year)
        assert sharpe(equity, times) == _near(expected)
    if downside > 1e-6:
        expected = statistics.fmean(returns) / downside * math.sqrt(per_year)
        assert sortino(equity, times) == _near(expected)
    if fall > 1e-6:
        assert calmar(equity, times) == _near(growth / fall)


@given(steps=moves, scale=st.sampled_from([0.5, 2.0, 1_024.0]))
def test_accounting_of_a_curve_in_another_currency_is_the_same(steps, scale):
    equity, times = _curve(steps)
    for figure in OF_TIMES:
        assert figure(equity * scale, times) == figure(equity, times), figure.__name__
    assert max_drawdown(equity * scale) == max_drawdown(equity)


@given(steps=moves)
def test_accounting_sortino_is_at_least_as_far_from_zero_as_the_mean_over_all_deviation(steps):
    """The downside is a part of the second moment, so it cannot be larger than it."""
    equity, times = _curve(steps)
    found = sortino(equity, times)
    if found is None:
        assert min(steps) >= 0.0
        return
    returns = np.diff(equity) / equity[:-1]
    whole = float(np.sqrt(np.mean(returns**2)))
    floor = abs(float(np.mean(returns))) / whole * math.sqrt(YEAR_NS / DAY)
    assert abs(found) >= floor * (1.0 - 1e-9)


def test_accounting_of_a_curve_that_never_moves_is_undefined():
    equity, times = np.full(10, 100.0), np.arange(10, dtype=np.int64) * DAY
    assert (sharpe(equity, times), sortino(equity, times), calmar(equity, times)) == (None, None, None)
    assert (volatility(equity, times), cagr(equity, times), max_drawdown(equity)) == (0.0, 0.0, 0.0)


def test_accounting_of_a_curve_that_only_rises_has_no_downside():
    equity, times = _curve([0.01, 0.02, 0.03])
    assert sortino(equity, times) is None
    assert calmar(equity, times) is None
    found = sharpe(equity, times)
    assert found is not None
    assert found > 0.0


@pytest.mark.parametrize("count", [0, 1])
def test_accounting_of_too_short_a_curve_is_undefined(count):
    equity, times = np.full(count, 100.0), np.arange(count, dtype=np.int64) * DAY
    assert [figure(equity, times) for figure in OF_TIMES] == [None] * len(OF_TIMES)
    assert max_drawdown(equity) == 0.0


def test_accounting_without_time_between_the_bars_is_undefined():
    equity, times = np.array([100.0, 101.0, 99.0]), np.zeros(3, dtype=np.int64)
    assert [figure(equity, times) for figure in OF_TIMES] == [None] * len(OF_TIMES)


def test_accounting_cagr_of_a_lost_account_is_minus_one():
    equity, times = np.array([100.0, 50.0, 0.0]), np.arange(3, dtype=np.int64) * DAY
    assert cagr(equity, times) == -1.0


def test_accounting_cagr_beyond_every_float_is_undefined():
    equity, times = np.array([100.0, 150.0, 200.0]), np.arange(3, dtype=np.int64) * 10**9
    assert cagr(equity, times) is None
    assert calmar(np.array([100.0, 90.0, 200.0]), times) is None
