"""How orders meet a bar: the fill rules as small compiled functions, one question each."""

from typing import Any

import numpy as np

from trading_core.compiled import compiled, entry_point

BOTH_STOP, BOTH_TARGET, BOTH_OHLC, BOTH_NEAR, BOTH_COLOR = range(5)
NOTHING, STOP, TARGET = range(3)
GRID_TOLERANCE = 1e-9  # of a tick or lot: a value this close to the grid is on it
ROUNDING = 2.0**-51  # of a number of steps: what its division alone may be wrong by
FINEST_SCALE = 1e16  # a step of more decimals than this has is no decimal number to a float


@compiled
def grid_point(steps: float, step: float) -> float:
    """The float nearest to a whole number of steps: three of 0.1 are 0.3, not their product.

    A bar's price is such a float, and a level must be equal to it when both lie on one tick.
    """
    scale = 1.0
    while scale < FINEST_SCALE and np.rint(step * scale) / scale != step:
        scale *= 10.0
    return float(steps * np.rint(step * scale) / scale if scale < FINEST_SCALE else steps * step)


@compiled
def whole_steps(value: float, step: float) -> float:
    """Steps up to the value; one that rounding alone puts beyond it counts."""
    steps = value / step
    nearest = np.rint(steps)
    is_on_grid = abs(nearest - steps) <= GRID_TOLERANCE + ROUNDING * abs(steps)
    return float(nearest if is_on_grid else np.floor(steps))


@entry_point
def on_tick(value: float, tick: float) -> float:
    """The nearest multiple of the tick; the value itself without one; an unknown value stays unknown."""
    return value if tick == 0.0 else float(grid_point(np.floor(value / tick + 0.5), tick))


@compiled
def slip(price: float, side: int, slippage: float, tick: float) -> float:
    """Price after slippage, and rounding to the tick, against an order; `side` +1 buys, -1 sells."""
    worse = price * (1.0 + side * slippage)
    return worse if tick == 0.0 else float(grid_point(-side * whole_steps(-side * worse, tick), tick))


@compiled
def whole_lots(quantity: float, lot: float) -> float:
    """The largest multiple of the lot that is not above the quantity; the quantity itself without a lot."""
    return quantity if lot == 0.0 else float(grid_point(whole_steps(quantity, lot), lot))


@compiled
def fee_of(notional: float, maker: bool, p: Any) -> float:
    """Fee of one fill: rate times notional and the fixed part, rounded to the declared unit, half up."""
    return float(on_tick(notional * (p.maker_fee if maker else p.fee) + p.fee_per_fill, p.fee_rounding))


@compiled
def add_fee(total: float, fee: float, carry: float, p: Any) -> float:
    """Fees with one more, in the unit that each is rounded to; a sum that holds carry is in none."""
    return total + fee if carry != 0.0 else float(on_tick(total + fee, p.fee_rounding))


@compiled
def stop_comes_first(direction: int, o: float, h: float, low: float, c: float, rule: int) -> bool:
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


@compiled
def beyond(move: float, through: int) -> bool:
    """Whether a limit order fills: `move` is how far the bar went past its price, >= 0 a touch."""
    return move > 0.0 or (move == 0.0 and through == 0)


@compiled
def find_touch(
    direction: int, worst: float, best: float, stop: float, target: float, stop_first: bool, through: int
) -> Any:
    """(NOTHING, STOP or TARGET, price) of a path from its worst to its best price; NaN is never reached."""
    target_hit = beyond((best - target) * direction, through)
    if (worst - stop) * direction <= 0.0 and (stop_first or not target_hit):
        return STOP, stop
    if target_hit:
        return TARGET, target
    return NOTHING, np.nan


@compiled
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
    through: int,
) -> Any:
    """Whether stop or target close the position on this bar, and at which price before slippage.

    A bar that opens beyond a level fills at its open (`gap_open`) or at the level; else see `find_touch`.
    """
    if (o - stop) * direction <= 0.0:
        return STOP, (o if gap_open else stop)
    if beyond((o - target) * direction, through):
        return TARGET, (o if gap_open else target)
    worst, best = (low, h) if direction > 0 else (h, low)
    first = stop_comes_first(direction, o, h, low, c, rule)
    return find_touch(direction, worst, best, stop, target, first, through)


@compiled
def entry_fill(
    kind: int, direction: int, level: float, o: float, h: float, low: float, gap_open: int, through: int
) -> Any:
    """Whether a resting limit (`kind` 1) or stop (2) entry fills on this bar, where, and how.

    Returns:
        (inside, price): inside -1 unfilled, 0 filled at the open, else `kind`. A stop entry that the bar
        opens beyond fills at the open or at its level, as `gap_open` says; a limit then fills at the better
        open, or at its price.
    """
    sign = direction if kind == 2 else -direction  # which way the market has to come
    move = (o - level) * sign
    if (move >= 0.0) if kind == 2 else beyond(move, through):
        return 0, (o if gap_open else level)
    reach = h - level if sign > 0 else level - low
    if (reach >= 0.0) if kind == 2 else beyond(reach, through):
        return kind, level
    return -1, np.nan
