"""What is read off a curve over time: time under water, months, rolling Sharpe, and buy and hold by bar."""

import math
import tracemalloc
from datetime import datetime

import numpy as np
import pytest

from schemas.canonical import datetime_to_ns
from tests.each_case import check_each
from tests.trading_core.market import random_series
from trading_core.accounting import (
    FloatArray,
    drawdown_days,
    exposed_curve,
    hold_curve,
    max_drawdown,
    monthly_returns,
    rolling_sharpe,
    sharpe,
    worst_drawdowns,
    yearly_returns,
)

DAY = 86_400 * 10**9


def _days(count):
    return np.arange(count, dtype=np.int64) * DAY


def _wandering(seed: int, count: int) -> FloatArray:
    return np.asarray(np.cumprod(1.0 + 0.01 * np.random.default_rng(seed).normal(size=count)), np.float64)


def _at(*dates):
    return np.array(
        [datetime_to_ns(datetime.fromisoformat(f"{date}+00:00")) for date in dates], dtype=np.int64
    )


@pytest.mark.parametrize(
    ("equity", "days"),
    [
        ([100, 101, 102], 0.0),
        ([100, 90, 100, 110], 2.0),
        ([100, 90, 95, 99, 101, 100, 102], 4.0),
        ([100, 120, 110, 119, 118], 3.0),
        ([100, 99, 100, 99, 100], 2.0),
        ([100], 0.0),
        ([], 0.0),
    ],
)
def test_drawdown_days_are_from_a_peak_until_it_is_reached_again_or_the_end(equity, days):
    assert drawdown_days(np.array(equity, dtype=float), _days(len(equity))) == days


def test_months_and_years_of_a_curve_are_those_reckoned_by_hand():
    times = _at(
        "2011-12-30T00:00", "2011-12-31T12:00", "2012-01-01T00:00", "2012-01-20T00:00", "2012-03-05T00:00"
    )  # fmt: skip
    equity = np.array([100.0, 105.0, 110.0, 121.0, 60.5])
    months, years = monthly_returns(equity, times), yearly_returns(equity, times)
    assert [month[:2] for month in months] == [(2011, 12), (2012, 1), (2012, 3)]
    assert [gain for _, _, gain in months] == pytest.approx([0.10, 0.10, -0.5])
    assert [year for year, _ in years] == [2011, 2012]
    assert [gain for _, gain in years] == pytest.approx([0.10, -0.45])
    assert monthly_returns(equity[:1], times[:1]) == []


def test_months_multiply_to_the_whole_return():
    curve = _wandering(2, 900)
    grown = math.prod(1 + gain for _, _, gain in monthly_returns(curve, _days(900)))
    assert grown == pytest.approx(curve[-1] / curve[0])


def test_rolling_sharpe_is_the_sharpe_of_each_window():
    curve, times = _wandering(4, 60), _days(60)
    found = rolling_sharpe(curve, times, 20)
    assert np.isnan(found[:20]).all()
    assert found[20:] == pytest.approx(
        [sharpe(curve[row - 20 : row + 1], times[row - 20 : row + 1]) for row in range(20, 60)]
    )
    assert np.isnan(rolling_sharpe(curve, times, 60)).all()
    assert np.isnan(rolling_sharpe(np.full(60, 5.0), times, 20)).all()


NOISE = np.random.default_rng(1).normal(size=1_203)
CURVES = {
    "plain": 100.0 * np.cumprod(1.0 + 0.01 * NOISE),
    "of_a_large_account": 1e15 + 1e3 * np.cumsum(NOISE),
    "nearly_constant": 1.0 + 1e-9 * np.cumsum(NOISE),
    "growing_nearly_evenly": np.cumprod(1.001 + 1e-9 * NOISE),
    "after_a_jump": np.cumprod(1.0 + np.where(np.arange(NOISE.size) == 400, 1e6, 1e-7 * NOISE)),
    "wild_before_quiet": np.cumprod(1.0 + np.where(np.arange(NOISE.size) < 600, 0.05, 1e-9) * NOISE),
}


@check_each("window", [2, 3, 20, 300, 1_202])
@check_each("curve", CURVES.values(), ids=CURVES)
def test_rolling_sharpe_by_growing_sums_has_the_digits_of_the_plain_computation(curve, window):
    times = _days(curve.size)
    returns = (np.diff(curve) / curve[:-1]).astype(np.longdouble)
    views = np.lib.stride_tricks.sliding_window_view(returns, window)
    spreads, year = views.std(axis=1, ddof=1), np.sqrt(np.longdouble(365.25))
    found = rolling_sharpe(curve, times, window)
    assert np.isnan(found[:window]).all()
    # A mean near zero has the digits of the largest value that it is of, not of itself.
    room = 8.0 * np.finfo(np.float64).eps * np.abs(views).max(axis=1) / spreads * year
    expected = views.mean(axis=1) / spreads * year
    assert (np.abs(found[window:] - expected) <= 1e-13 * np.abs(expected) + room).all()


def test_rolling_sharpe_of_returns_that_are_all_the_same_is_undefined_beside_others():
    curve = np.concatenate([2.0 ** np.arange(41), 2.0 ** np.arange(40, 80)])
    found = rolling_sharpe(curve, _days(curve.size), 10)
    assert np.flatnonzero(np.isfinite(found)).tolist() == list(range(41, 51))


def _peak_bytes(work):
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_rolling_sharpe_memory_grows_no_faster_than_the_curve():
    peaks = [
        _peak_bytes(lambda count=count: rolling_sharpe(_wandering(1, count), _days(count), count // 4))
        for count in (4_000, 8_000, 16_000)
    ]
    assert peaks[1] < 2.2 * peaks[0]
    assert peaks[2] < 2.2 * peaks[1]


def test_hold_curve_begins_with_the_cash_and_ends_where_buy_and_hold_does():
    bars = random_series(3, 90, 3, missing=0.1)
    curve = hold_curve(bars, 1_000.0, 0.002)
    assert curve.shape == (bars.shape[0] + 1,)
    assert curve[0] == 1_000.0
    row = bars.shape[0] // 2
    worth = []
    for s in range(bars.shape[1]):
        rows = np.flatnonzero(bars.present[:, s])
        until = rows[rows <= row]
        price = bars.close[until[-1], s] / bars.open[rows[0], s] if until.size else None
        worth.append(1.0 if price is None else price * 0.998 / 1.002)
    assert curve[row + 1] == pytest.approx(1_000.0 * np.mean(worth))


def test_exposed_curve_earns_the_share_of_every_move_of_buy_and_hold():
    hold = np.array([100.0, 110.0, 99.0, 198.0])
    assert exposed_curve(hold, 1.0) == pytest.approx(hold)
    assert exposed_curve(hold, 0.0).tolist() == [100.0] * 4
    assert exposed_curve(hold, 0.5) == pytest.approx([100.0, 105.0, 99.75, 149.625])


def test_worst_drawdowns_are_each_fall_from_a_peak_deepest_first_and_the_last_may_go_on():
    curve, times = np.array([10.0, 9.0, 10.0, 12.0, 6.0, 8.0, 12.0, 12.0, 11.0]), np.arange(9) * 7
    found = worst_drawdowns(curve, times)
    assert [fall.depth for fall in found] == pytest.approx([0.5, 0.1, 1 / 12])
    assert [fall[1:] for fall in found] == [(21, 28, 42), (0, 7, 14), (49, 56, None)]
    assert worst_drawdowns(curve, times, most=1) == found[:1]
    assert worst_drawdowns(np.array([1.0, 2.0, 3.0]), times[:3]) == []
    wander = _wandering(3, 400)
    assert worst_drawdowns(wander, _days(400))[0].depth == pytest.approx(max_drawdown(wander))
