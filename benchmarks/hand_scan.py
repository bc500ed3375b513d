"""The limit: the state machine of the one strategy as a single hand-written compiled pass.

The crossing comes precomputed; stop, target, time stop, fees and the trade list are left, and everything
general is left out: no rule language, no features, no second symbol, no portfolio, no excursions, no equity,
no events. It makes exactly the trades of `simulate` with levels from the signal close.
"""

from typing import Any

import numpy as np
from numba import njit

from benchmarks.crossing import BRACKET

STOP, TARGET = BRACKET["stop_pct"], BRACKET["target_pct"]
TIME_STOP, FEE = int(BRACKET["time_stop_bars"]), BRACKET["fee_bps"] / 1e4
TRADE = np.dtype(
    [("entry_bar", np.int64), ("exit_bar", np.int64)]
    + [(name, np.float64) for name in ("entry_price", "exit_price", "fees", "pnl")]
)


@njit(cache=True, error_model="numpy")
def scan(o: Any, h: Any, low: Any, c: Any, crossed: Any, trades: Any) -> int:
    """Trade one symbol into `trades`; the number of trades comes back.

    Args:
        o: opens, float64 (T,); `h`, `low` and `c` likewise.
        h: highs.
        low: lows.
        c: closes.
        crossed: bool (T,), whether the averages crossed at each close.
        trades: buffer of `TRADE`, long enough.
    """
    count, entry = 0, -1
    ordered = False
    price = stop = target = 0.0
    for t in range(o.size):
        if ordered:
            entry, price, ordered = t, o[t], False
        if entry >= 0:
            out = 0.0
            if t - entry >= TIME_STOP or o[t] <= stop or o[t] >= target:
                out = o[t]
            elif low[t] <= stop:
                out = stop
            elif h[t] >= target:
                out = target
            if out == 0.0:
                continue
            one = trades[count]
            one.entry_bar, one.exit_bar, one.entry_price, one.exit_price = entry, t, price, out
            one.fees = price * FEE + out * FEE
            one.pnl = out - price - one.fees
            count, entry = count + 1, -1
        if crossed[t]:
            ordered, stop, target = True, c[t] * (1.0 - STOP), c[t] * (1.0 + TARGET)
    return count


def moving_cross(close: Any, fast: int = 10, slow: int = 30) -> Any:
    """Where numpy's running sums cross: the cheapest way to have the crossing, and not exact.

    A difference of running sums rounds away the last digits, so a few crossings in a thousand move.
    """
    total = np.cumsum(close)
    crossed = np.zeros(close.size, dtype=np.bool_)
    means = []
    for window in (fast, slow):
        mean = np.full(close.size, np.nan)
        mean[window:] = (total[window:] - total[:-window]) / window
        mean[window - 1] = total[window - 1] / window
        means.append(mean)
    above = means[0] > means[1]
    crossed[1:] = above[1:] & (means[0][:-1] <= means[1][:-1])
    return crossed
