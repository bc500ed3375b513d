"""How sure figures of dependent, skewed returns are: robust standard errors of Sharpe ratio, alpha and beta.

An estimate is written as the mean of its influence on each bar. The long-run variance of that sequence comes
from a Bartlett kernel (Newey and West 1987) over what an autoregression of order one leaves, recoloured
(Andrews and Monahan 1992), with the bandwidth of Andrews (1991). The influence on the Sharpe ratio is that of
Lo, "The statistics of Sharpe ratios" (2002): it takes skewness, kurtosis and autocorrelation in. Nothing is
drawn, so equal returns give equal figures.
"""

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from trading_core.accounting import FloatArray, IntArray, bar_returns, bars_per_year

FEWEST_RETURNS = 30  # below, an error that is itself estimated says nothing
NORMAL_95 = 1.959963984540054
LARGEST_ROOT = 0.97  # Andrews and Monahan: a root near one would recolour without bound
BARTLETT = 1.1447


@dataclass(frozen=True)
class MarketLine:
    """Returns of one curve on those of another: `alpha` a year, `beta`, and t of alpha against zero."""

    alpha: float
    beta: float
    alpha_t: float | None


def sharpe_interval(equity: FloatArray, times: IntArray) -> tuple[float, float] | None:
    """The 95 % interval of `accounting.sharpe`; None with fewer than 30 returns or without variation.

    Args:
        equity: (T,) at the bar closes.
        times: (T,) ns.
    """
    returns = bar_returns(equity, times)
    if returns is None or returns.size < FEWEST_RETURNS or not np.isfinite(returns).all():
        return None
    deviation = float(np.std(returns, ddof=1))
    if deviation == 0.0 or not np.isfinite(deviation):
        return None
    scored = (returns - returns.mean()) / deviation
    ratio = float(returns.mean()) / deviation
    influence = scored - ratio / 2.0 * (scored**2 - 1.0)
    wide = NORMAL_95 * sqrt(long_run_variance(influence) / returns.size)
    year = sqrt(bars_per_year(times))
    return (ratio - wide) * year, (ratio + wide) * year


def market_line(equity: FloatArray, market: FloatArray, times: IntArray) -> MarketLine | None:
    """Least squares of the per-bar returns of a curve on those of a market.

    Args:
        equity: (T,) at the bar closes.
        market: (T,) of what it is held against.
        times: (T,) ns.

    Returns:
        None with fewer than 30 returns, or where the market never moves but at the first of them, which pays
        the entry of buy and hold. Alpha is that of a bar times the bars per year; its t is None where nothing
        is left over to measure it by.
    """
    returns, others = bar_returns(equity, times), bar_returns(market, times)
    if returns is None or others is None or returns.size < FEWEST_RETURNS:
        return None
    moved = others - others.mean()
    variance = float(np.mean(moved**2))
    if not (0.0 < variance < np.inf) or np.ptp(others[1:]) == 0.0 or not np.isfinite(returns).all():
        return None
    beta = float(np.mean(moved * (returns - returns.mean()))) / variance
    alpha = float(returns.mean()) - beta * float(others.mean())
    left = returns - alpha - beta * others
    influence = left * (1.0 - float(others.mean()) * moved / variance)
    error = sqrt(long_run_variance(influence) / (returns.size - 2))
    shown = alpha / error if error > 1e-12 * float(np.std(returns)) else None
    return MarketLine(alpha * bars_per_year(times), beta, shown)


def long_run_variance(values: FloatArray) -> float:
    """Variance of the mean of a dependent sequence (n,), times n."""
    centred = values - values.mean()
    root = _root(centred)
    left = centred[1:] - root * centred[:-1]
    left = left - left.mean()
    lean, n = _root(left), left.size
    width = BARTLETT * (4.0 * lean**2 / (1.0 - lean**2) ** 2 * n) ** (1.0 / 3.0)
    lags = min(ceil(width) - 1, n - 1) if width > 0.0 else 0
    total = float(left @ left)
    for lag in range(1, lags + 1):
        total += 2.0 * (1.0 - lag / width) * float(left[lag:] @ left[:-lag])
    found: float = max(0.0, total) / n / (1.0 - root) ** 2
    return found


def _root(centred: FloatArray) -> float:
    """Coefficient of an autoregression of order one, held away from one; 0 of a constant sequence."""
    before = float(centred[:-1] @ centred[:-1])
    if before == 0.0:
        return 0.0
    return float(np.clip(float(centred[1:] @ centred[:-1]) / before, -LARGEST_ROOT, LARGEST_ROOT))
