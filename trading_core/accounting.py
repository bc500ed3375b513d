"""Performance figures of an equity curve: plain functions of arrays, shared by every runner.

Ratios are taken on per-bar equity returns, without a risk-free rate, and annualised by the observed bars per
year; drawdown is positive; an undefined figure is None, never NaN. A year has 365.25 days.
"""

import numpy as np
import numpy.typing as npt

from trading_core.bars import BarSeries

YEAR_NS = 365.25 * 86_400 * 1e9
LARGEST_LOG = 700.0  # exp() of more overflows a float


FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def sharpe(equity: FloatArray, times: IntArray) -> float | None:
    """Mean over standard deviation (ddof 1) of per-bar returns, times sqrt(bars per year).

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
    """
    returns = _returns(equity, times)
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
    returns = _returns(equity, times)
    if returns is None:
        return None
    return _annual_ratio(returns, float(np.sqrt(np.mean(np.minimum(returns, 0.0) ** 2))), times)


def volatility(equity: FloatArray, times: IntArray) -> float | None:
    """Standard deviation (ddof 1) of per-bar returns, times sqrt(bars per year), as a fraction.

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
    """
    returns = _returns(equity, times)
    if returns is None:
        return None
    return float(np.std(returns, ddof=1)) * float(np.sqrt(_bars_per_year(times)))


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
    peaks = np.maximum.accumulate(equity)
    return float(np.max((peaks - equity) / peaks)) if equity.size else 0.0


def buy_and_hold_return(bars: BarSeries, cost: float) -> float:
    """Equal money in each symbol at its first bar's open, sold at its last close.

    Args:
        bars: the bars; a symbol without any bar takes no part.
        cost: fee and slippage per side, as a fraction.
    """
    growth = []
    for s in np.flatnonzero(bars.present.any(axis=0)):
        rows = np.flatnonzero(bars.present[:, s])
        bought = float(bars.open[rows[0], s]) * (1.0 + cost)
        sold = float(bars.close[rows[-1], s]) * (1.0 - cost)
        growth.append(sold / bought)
    return float(np.mean(growth)) - 1.0


def exposure_share(gross: FloatArray) -> float | None:
    """Share of bars with any position."""
    return float(np.mean(gross > 0.0)) if gross.size else None


def _returns(equity: FloatArray, times: IntArray) -> FloatArray | None:
    """Per-bar returns; None with fewer than two of them or without time between them."""
    if equity.size < 3 or times[-1] <= times[0]:
        return None
    return np.diff(equity) / equity[:-1]


def _years(times: IntArray) -> float:
    return (int(times[-1]) - int(times[0])) / YEAR_NS


def _bars_per_year(times: IntArray) -> float:
    return (times.size - 1) / _years(times)


def _annual_ratio(returns: FloatArray, deviation: float, times: IntArray) -> float | None:
    if deviation == 0.0:
        return None
    return float(np.mean(returns)) / deviation * float(np.sqrt(_bars_per_year(times)))
