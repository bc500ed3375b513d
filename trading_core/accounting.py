"""Performance figures of an equity curve: plain functions of arrays, shared by every runner.

Ratios are taken on per-bar equity returns, without a risk-free rate, and annualised by the observed bars per
year; drawdown is positive; an undefined figure is None, never NaN. A year has 365.25 days.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from trading_core.bars import BarSeries

DAY_NS = 86_400 * 1e9
YEAR_NS = 365.25 * DAY_NS
LARGEST_LOG = 700.0  # exp() of more overflows a float


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def sharpe(equity: FloatArray, times: IntArray) -> float | None:
    """Mean over standard deviation (ddof 1) of per-bar returns, times sqrt(bars per year).

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
    """
    returns = bar_returns(equity, times)
    if returns is None:
        return None
    return _annual_ratio(returns, float(np.std(returns, ddof=1)), times)


def sortino(equity: FloatArray, times: IntArray) -> float | None:
    """Mean of per-bar returns over their downside deviation, times sqrt(bars per year).

    The downside deviation is the root of the mean of squared negative returns over all bars, with 0 as the
    least acceptable return; None when no bar lost.

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
    """
    returns = bar_returns(equity, times)
    if returns is None:
        return None
    return _annual_ratio(returns, float(np.sqrt(np.mean(np.minimum(returns, 0.0) ** 2))), times)


def volatility(equity: FloatArray, times: IntArray) -> float | None:
    """Standard deviation (ddof 1) of per-bar returns, times sqrt(bars per year), as a fraction.

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
    """
    returns = bar_returns(equity, times)
    if returns is None:
        return None
    return float(np.std(returns, ddof=1)) * float(np.sqrt(bars_per_year(times)))


def cagr(equity: FloatArray, times: IntArray) -> float | None:
    """Compound growth per year from the first value to the last, as a fraction; -1 when all is lost.

    Args:
        equity: (T,) at the bar closes, the first above zero.
        times: (T,) ns.
    """
    if equity.size < 2 or times[-1] <= times[0] or equity[0] <= 0.0:
        return None
    if equity[-1] <= 0.0:
        return -1.0
    # A gain within minutes, taken to the power of a year, may exceed every float: then it says nothing.
    log_growth = float(np.log(equity[-1] / equity[0])) / _years(times)
    return float(np.expm1(log_growth)) if log_growth < LARGEST_LOG else None


def calmar(equity: FloatArray, times: IntArray) -> float | None:
    """Compound growth per year over the largest drawdown; None without a drawdown.

    Args:
        equity: (T,) at the bar closes, the first above zero.
        times: (T,) ns.
    """
    growth, fall = cagr(equity, times), max_drawdown(equity)
    return None if growth is None or fall == 0.0 else growth / fall


def max_drawdown(equity: FloatArray) -> float:
    """Largest fall from a running peak, as a positive fraction of the peak."""
    return float(np.max(drawdowns(equity))) if equity.size else 0.0


def drawdowns(equity: FloatArray) -> FloatArray:
    """Fall from the running peak at every close (T,), as a fraction of the peak; 1 when nothing is left."""
    peaks = np.maximum.accumulate(equity)
    return np.minimum((peaks - equity) / peaks, 1.0)


def drawdown_days(equity: FloatArray, times: IntArray) -> float:
    """Longest time from a peak to the bar that reaches it again, or to the end, in days of 24 hours.

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
    """
    waited = (times[min(end, equity.size - 1)] - times[high] for high, end in _stretches_below(equity))
    return float(max(waited, default=0)) / DAY_NS


class Drawdown(NamedTuple):
    """A fall from a peak; times in ns of the peak, of the lowest close, and of the recovery."""

    depth: float
    start: int
    lowest: int
    end: int | None


def worst_drawdowns(equity: FloatArray, times: IntArray, most: int = 5) -> list[Drawdown]:
    """The deepest falls from a peak, deepest first; `end` is None for one that goes on at the last close.

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
        most: how many.
    """
    found = []
    for high, end in _stretches_below(equity):
        lowest = high + int(np.argmin(equity[high:end]))
        depth = min(float(1.0 - equity[lowest] / equity[high]), 1.0)
        ended = int(times[end]) if end < equity.size else None
        found.append(Drawdown(depth, int(times[high]), int(times[lowest]), ended))
    return sorted(found, key=lambda fall: (-fall.depth, fall.start))[:most]


def _stretches_below(equity: FloatArray) -> list[tuple[int, int]]:
    """Rows of each peak that is not the last value, and of the close that reaches it again, or T."""
    high = np.flatnonzero(equity >= np.maximum.accumulate(equity))
    ends = np.append(high[1:], equity.size)
    below = ends > high + 1
    return list(zip(high[below].tolist(), ends[below].tolist(), strict=True))


def monthly_returns(equity: FloatArray, times: IntArray) -> list[tuple[int, int, float]]:
    """Year, month and return of every calendar month in UTC in which a bar closed.

    A close at midnight belongs to the day before it.

    Args:
        equity: (T,) at the bar closes, the first before any trade.
        times: (T,) ns.
    """
    return [(1970 + int(m) // 12, int(m) % 12 + 1, gain) for m, gain in _by_unit(equity, times, "M")]


def yearly_returns(equity: FloatArray, times: IntArray) -> list[tuple[int, float]]:
    """Year and return of every calendar year, as `monthly_returns`."""
    return [(1970 + int(year), gain) for year, gain in _by_unit(equity, times, "Y")]


def rolling_sharpe(equity: FloatArray, times: IntArray, window: int) -> FloatArray:
    """`sharpe` of the last `window` returns at every close (T,); NaN where there are fewer, or no variation.

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
        window: returns, at least 2.
    """
    found = np.full(equity.size, np.nan)
    returns = bar_returns(equity, times)
    if returns is None or not 2 <= window <= returns.size:
        return found
    means, spread = _window_moments(returns, window)
    years = (times[window:] - times[:-window]) / YEAR_NS
    moving = (spread > 0.0) & (years > 0.0)
    found[window:][moving] = means[moving] / spread[moving] * np.sqrt(window / years[moving])
    return found


def _window_moments(values: FloatArray, window: int) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation (ddof 1) of every window of values (n,), each (n - window + 1,).

    A window is the end of one block and the start of the next, blocks being as long as it. What is summed is
    of the window alone and nothing is taken off again, so that what lies outside of it costs no digits.
    """
    blocks = -(-values.size // window) + 1
    padded = np.zeros(blocks * window)
    padded[: values.size] = values
    rows = padded.reshape(blocks, window)
    # Window i of a block: its last `window - i` values, and the first i of the next block.
    later = np.arange(window)
    means, squares = (tail[:, ::-1] for tail in _growing_moments(rows[:-1, ::-1]))
    next_means, next_squares = _growing_moments(rows[1:])
    apart = np.zeros_like(means)
    apart[:, 1:] = next_means[:, :-1] - means[:, 1:] + (rows[1:, :1] - rows[:-1, -1:])
    squares = squares + apart**2 * (later * (window - later) / window)
    squares[:, 1:] += next_squares[:, :-1]
    means = rows[:-1, -1:] + (means + apart * (later / window))
    count = values.size - window + 1
    return means.ravel()[:count], np.sqrt(squares.ravel()[:count] / (window - 1))


def _growing_moments(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean of the first 1, 2, ... values of each row less the first one, and their squares about it, summed.

    Welford, "Note on a method for calculating corrected sums of squares and products" (1962).
    """
    counts = np.arange(1.0, rows.shape[1] + 1.0)
    centred = rows - rows[:, :1]
    means = np.cumsum(centred, axis=1) / counts
    squares = np.zeros_like(means)
    np.cumsum((centred[:, 1:] - means[:, :-1]) ** 2 * (counts[:-1] / counts[1:]), axis=1, out=squares[:, 1:])
    return means, squares


class Fill(NamedTuple):
    """What one fill did to the position of symbol `s` on bar `row`.

    Attributes:
        side: of the position, 1 or -1.
        quantity: that was bought or sold, in units, as `left` behind it.
        closes: whether it reduced the position.
        after_close: whether it came after the funding and borrow of its bar: an entry at a close.
    """

    row: int
    s: int
    side: int
    price: float
    quantity: float
    fee: float
    left: float
    closes: bool
    after_close: bool


def equity_of_fills(
    bars: BarSeries, cash: float, fills: Sequence[Fill], funding: float, borrow: float
) -> FloatArray:
    """Equity (T,) at every close of an account that did these fills: the engine's own, bit by bit.

    Args:
        bars: those that were traded.
        cash: at the start.
        fills: in order; each adds to its symbol's position or reduces it.
        funding: per bar on notional, as a fraction; longs pay it, shorts receive it.
        borrow: likewise; shorts pay it.
    """
    rows = np.arange(bars.shape[0])
    paid = [_paid(fill) for fill in fills]
    moments = [3 * fill.row + 2 * fill.after_close for fill in fills]  # carry comes between
    marks = []
    for s in sorted({fill.s for fill in fills}):
        own = [number for number, fill in enumerate(fills) if fill.s == s]
        held = np.array([0.0, *(fills[number].side * fills[number].left for number in own)])
        at = np.array([moments[number] for number in own])
        last = np.maximum.accumulate(np.where(bars.present[:, s], rows, 0))
        closes = bars.close[last, s]
        if funding or borrow:
            charged = held[np.searchsorted(at, 3 * rows + 1)]
            due = np.flatnonzero((charged != 0.0) & bars.present[:, s])
            sizes = charged[due]
            costs = np.abs(sizes) * closes[due] * np.where(sizes > 0.0, funding, borrow - funding)
            paid += (-costs).tolist()
            moments += (3 * due + 1).tolist()
        marks.append((held[np.searchsorted(at, 3 * rows + 2, side="right")], closes))
    times = np.array(moments, dtype=np.int64)
    order = np.argsort(times, kind="stable")
    ledger = np.add.accumulate(np.concatenate([[cash], np.array(paid)[order]]))
    worth = ledger[np.searchsorted(times[order], 3 * rows + 2, side="right")]
    for held, closes in marks:
        worth = np.where(held == 0.0, worth, worth + held * closes)
    return worth


def _paid(fill: Fill) -> float:
    """What a fill adds to the cash."""
    value = fill.side * fill.quantity * fill.price
    return value - fill.fee if fill.closes else -(value + fill.fee)


def hold_curve(bars: BarSeries, cash: float, cost: float) -> FloatArray:
    """Equity (T + 1,) of equal money in each symbol at its first bar's open, as if sold at every close.

    The first point is the cash, one bar before the first close. A symbol's money waits for its first bar, and
    its last close stands from there on.

    Args:
        bars: the bars; a symbol without any bar takes no part.
        cash: to begin with.
        cost: fee and slippage per side, as a fraction.
    """
    growth = [_growth(bars, int(s), cost) for s in np.flatnonzero(bars.present.any(axis=0))]
    return cash * np.concatenate([[1.0], np.mean(growth, axis=0)])


def exposed_curve(hold: FloatArray, share: float) -> FloatArray:
    """What `hold` would have been with this share of the money in it at every close, the rest in cash.

    Args:
        hold: (T + 1,) as `hold_curve` gives it.
        share: of the equity.
    """
    growth = np.cumprod(1.0 + share * np.diff(hold) / hold[:-1])
    return np.concatenate([hold[:1], hold[0] * growth])


def exposure_share(gross: FloatArray) -> float | None:
    """Share of bars with any position."""
    return float(np.mean(gross > 0.0)) if gross.size else None


def _by_unit(equity: FloatArray, times: IntArray, unit: str) -> list[tuple[int, float]]:
    """Calendar units since 1970 with the return of each, in order."""
    if equity.size < 2:
        return []
    units = (times[1:] - 1).astype("datetime64[ns]").astype(f"datetime64[{unit}]").astype(np.int64)
    lasts = np.append(np.flatnonzero(np.diff(units)), units.size - 1)
    ends = np.concatenate([equity[:1], equity[1:][lasts]])
    return list(zip(units[lasts].tolist(), (ends[1:] / ends[:-1] - 1.0).tolist(), strict=True))


def _growth(bars: BarSeries, s: int, cost: float) -> FloatArray:
    """What one unit of money is worth at each close (T,) when it buys symbol s at its first open."""
    rows = np.flatnonzero(bars.present[:, s])
    bought = float(bars.open[rows[0], s]) * (1.0 + cost)
    last = np.searchsorted(rows, np.arange(bars.shape[0]), side="right") - 1
    worth = bars.close[rows[np.maximum(last, 0)], s] * (1.0 - cost) / bought
    return np.where(last < 0, 1.0, worth)


def bar_returns(equity: FloatArray, times: IntArray) -> FloatArray | None:
    """Per-bar returns; None with fewer than two of them or without time between them."""
    if equity.size < 3 or times[-1] <= times[0]:
        return None
    return np.diff(equity) / equity[:-1]


def _years(times: IntArray) -> float:
    return (int(times[-1]) - int(times[0])) / YEAR_NS


def bars_per_year(times: IntArray) -> float:
    """As observed; the times (T,) in ns must not all be equal."""
    return (times.size - 1) / _years(times)


def _annual_ratio(returns: FloatArray, deviation: float, times: IntArray) -> float | None:
    if deviation == 0.0:
        return None
    return float(np.mean(returns)) / deviation * float(np.sqrt(bars_per_year(times)))
