"""Performance figures of an equity curve: plain functions of arrays, shared by every runner.

Sharpe is taken on per-bar equity returns and annualised by the observed bars per year; drawdown is
positive; an undefined figure is None, never NaN.
"""

import numpy as np
import numpy.typing as npt

from trading_core.bars import BarSeries

YEAR_NS = 365.25 * 86_400 * 1e9


def sharpe(equity: npt.NDArray[np.float64], times: npt.NDArray[np.int64]) -> float | None:
    """Mean over standard deviation (ddof 1) of per-bar returns, times sqrt(bars per year).

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
    """
    if equity.size < 3 or times[-1] <= times[0]:
        return None
    returns = np.diff(equity) / equity[:-1]
    deviation = float(np.std(returns, ddof=1))
    if deviation == 0.0:
        return None
    per_year = (equity.size - 1) / ((int(times[-1]) - int(times[0])) / YEAR_NS)
    return float(np.mean(returns)) / deviation * float(np.sqrt(per_year))


def max_drawdown(equity: npt.NDArray[np.float64]) -> float:
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


def exposure_share(gross: npt.NDArray[np.float64]) -> float | None:
    """Share of bars with any position."""
    return float(np.mean(gross > 0.0)) if gross.size else None
