"""How orders meet a bar: the fill rules as small compiled functions, one question each.

Called by the kernel only.
"""

from typing import Any

import numpy as np
from numba import njit

BOTH_STOP, BOTH_TARGET, BOTH_OHLC, BOTH_NEAR, BOTH_COLOR = range(5)


@njit(cache=True, error_model="numpy")
def slipped(price: float, side: int, slippage: float) -> float:
    """Price after slippage against an order; `side` +1 buys, -1 sells."""
    return price * (1.0 + side * slippage)


@njit(cache=True, error_model="numpy")
def stop_comes_first(
    direction: int, o: float, h: float, low: float, c: float, stop: float, rule: int
) -> bool:
    """Which of two levels inside one bar was reached first, under the declared assumption about the path."""
    if rule == BOTH_STOP:
        return True
    if rule == BOTH_TARGET:
        return False
    if rule == BOTH_OHLC:
        low_first = False
    elif rule == BOTH_NEAR:
        low_first = o - low < h - o
    else:
        low_first = c >= o
    return low_first == (direction > 0)


@njit(cache=True, error_model="numpy")
def intrabar_exit(
    direction: int,
    o: float,
    h: float,
    low: float,
    c: float,
    stop: float,
    target: float,
    rule: int,
    gap_open: int,
    opened_now: int,
) -> Any:
    """Whether stop or target close the position on this bar, and at which price before slippage.

    Returns:
        (code, price): 0 nothing, 1 stop, 2 target. A bar that opens beyond a level fills at its open
        (`gap_open`) or at the level. A NaN level never triggers. `opened_now`: the position was entered
        at this bar's open.
    """
    if (o - stop) * direction <= 0.0:
        return 1, (o if gap_open or opened_now else stop)
    if (o - target) * direction >= 0.0:
        return 2, (o if gap_open or opened_now else target)
    if direction > 0:
        stop_hit = low <= stop
        target_hit = h >= target
    else:
        stop_hit = h >= stop
        target_hit = low <= target
    if stop_hit and target_hit:
        stop_hit = stop_comes_first(direction, o, h, low, c, stop, rule)
    if stop_hit:
        return 1, stop
    if target_hit:
        return 2, target
    return 0, np.nan
