"""The limit: one rule with its bracket as a single hand-written compiled pass, everything general left out.

No rule language, no features, no second symbol, no portfolio, no events. It trades exactly what `simulate`
trades for `close > highest_20`, long, so its time is what this rule costs when nothing else is asked for.
"""

from typing import Any

import numpy as np
from numba import njit

RULE = "close > highest_20"
WINDOW = 20
STOP, TARGET, TIME_STOP, FEE = 0.02, 0.04, 50, 5e-4


@njit(cache=True)
def scan(o: Any, h: Any, low: Any, c: Any, pnl: Any) -> int:
    """Trade one symbol; net profit of each trade goes to `pnl`, the number of trades comes back."""
    trades = 0
    inside = ordered = False
    entry = 0
    price = stop = target = 0.0
    queue = np.zeros(WINDOW + 1, dtype=np.int64)
    first = last = 0
    for t in range(o.size):
        out = np.nan
        if inside and t - entry >= TIME_STOP:
            out = o[t]
        elif ordered:
            inside, ordered, entry, price = True, False, t, o[t]
            stop, target = price * (1.0 - STOP), price * (1.0 + TARGET)
        if inside and np.isnan(out):
            if o[t] <= stop or o[t] >= target:
                out = o[t]
            elif low[t] <= stop:
                out = stop
            elif h[t] >= target:
                out = target
        if not np.isnan(out):
            pnl[trades] = out - price - (price + out) * FEE
            trades += 1
            inside = False
        if last > first and queue[first % (WINDOW + 1)] < t - WINDOW:
            first += 1
        if not inside and t >= WINDOW and c[t] > h[queue[first % (WINDOW + 1)]]:
            ordered = True
        while last > first and h[queue[(last - 1) % (WINDOW + 1)]] <= h[t]:
            last -= 1
        queue[last % (WINDOW + 1)] = t
        last += 1
    return trades
