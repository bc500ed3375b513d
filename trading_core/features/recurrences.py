"""The arithmetic of features and rules: a compiled walk of a program of operations over a block of bars.

Every operation is a recurrence with its state in an array, so a block of any size and a single step run the
same code and give the same bits. An unknown input gives an unknown output and leaves the state as it was; a
division by zero and a result that is not finite are unknown. No fastmath: the order of every sum is fixed.

A standard deviation is summed anew over its window around the
newest value: exact on a flat price, and as the newest value lies within sqrt(n - 1) deviations of the mean,
the cancellation is bounded.
"""

import math

import numpy as np
import numpy.typing as npt

from trading_core.compiled import compiled, entry_point
from trading_core.features import group_recurrences as groups
from trading_core.features import window_recurrences as windows
from trading_core.features.moving_mean import HEADER, mean_step, moving_mean, push
from trading_core.features.nodes import Op
from trading_core.features.pointwise import is_pointwise, pointwise, pointwise_block

_LAG, _MEAN, _STDEV, _EMA = int(Op.LAG), int(Op.MEAN), int(Op.STDEV), int(Op.EMA)
_WILDER, _WILDER_SUM, _TRUE_RANGE = int(Op.WILDER), int(Op.WILDER_SUM), int(Op.TRUE_RANGE)
_EXTREME, _RANK = int(Op.EXTREME), int(Op.RANK)
_CROSS, _SHIFT = int(Op.CROSS), int(Op.SHIFT)
_SO_FAR, _LAST_OF_PREVIOUS, _PUBLISH, _HOLD = (
    int(Op.SO_FAR),
    int(Op.LAST_OF_PREVIOUS),
    int(Op.PUBLISH),
    int(Op.HOLD),
)
_MEAN_DEVIATION, _WEIGHTED_MEAN, _RECENCY = int(Op.MEAN_DEVIATION), int(Op.WEIGHTED_MEAN), int(Op.RECENCY)
_ADAPTIVE_MEAN, _STREAK, _TOTAL = int(Op.ADAPTIVE_MEAN), int(Op.STREAK), int(Op.TOTAL)
FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
TIE = 1e-9


@compiled
def _cross_step(x: float, y: float, state: FloatArray, own: int) -> float:
    # state: 1 if a <= b held on the bar before, -1 if a > b did, 0 if that is unknown
    before = state[own]
    state[own] = 1.0 if x <= y else (-1.0 if x > y else 0.0)
    if x <= y or before < 0.0:
        return 0.0
    return 1.0 if x > y and before > 0.0 else np.nan


@compiled
def _cross(a: FloatArray, b: FloatArray, out: FloatArray, state: FloatArray) -> None:
    last = out.size - 1
    out[0] = _cross_step(a[0], b[0], state, 0)
    now_a, now_b, then_a, then_b, rest = a[1:], b[1:], a[:last], b[:last], out[1:]
    for i in range(last):
        above, below = now_a[i] > now_b[i], now_a[i] <= now_b[i]
        was_above, was_below = then_a[i] > then_b[i], then_a[i] <= then_b[i]
        rest[i] = 0.0 if below or was_above else (1.0 if above and was_below else np.nan)
    _cross_step(a[last], b[last], state, 0)


@compiled
def _shift_step(value: float, state: FloatArray, own: int, n: int) -> float:
    count, position = int(state[own]), int(state[own + 1])
    before = state[own + HEADER + position] if count == n else np.nan
    state[own + HEADER + position] = value
    state[own], state[own + 1] = min(count + 1, n), position + 1 if position + 1 < n else 0
    return before


@compiled
def _shift(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    size = out.size
    known = min(n, size)
    for i in range(known):
        out[i] = _shift_step(x[i], state, 0, n)
    if size > n:
        for i in range(n, size):
            out[i] = x[i - n]
        for i in range(size - min(n, size - n), size):
            state[HEADER + (int(state[1]) + i - n) % n] = x[i]
        state[1] = (int(state[1]) + size - n) % n


@compiled
def _lag(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    count, position = int(state[0]), int(state[1])
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        out[i] = state[HEADER + position] if count == n else np.nan
        count, position = push(state, count, position, n, value)
    state[0], state[1] = count, position


@compiled
def _stdev(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    count, position = int(state[0]), int(state[1])
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        count, position = push(state, count, position, n, value)
        if count < n:
            out[i] = np.nan
            continue
        deviations, squares = 0.0, 0.0
        for j in range(HEADER, HEADER + n):
            deviation = state[j] - value
            deviations += deviation
            squares += deviation * deviation
        variance = (squares - deviations * deviations / n) / n
        out[i] = math.sqrt(variance) if variance > 0.0 else 0.0
    state[0], state[1] = count, position


@compiled
def _smooth(op: int, x: FloatArray, out: FloatArray, state: FloatArray, n: int, skip: int) -> None:
    # state: known values seen, -, value; before the seed is complete the value is the running seed sum
    seen, value = state[0], state[2]
    seeds = n - 1 if op == _WILDER_SUM else n
    factor = 2.0 / (n + 1.0)
    for i in range(out.size):
        new = x[i]
        if new != new:
            out[i] = np.nan
            continue
        seen += 1.0
        if seen <= skip:
            out[i] = np.nan
        elif seen <= skip + seeds:
            value += new
            out[i] = np.nan
            if op != _WILDER_SUM and seen == skip + seeds:
                value /= n
                out[i] = value
        else:
            if op == _EMA:
                value = (new - value) * factor + value
            elif op == _WILDER:
                value = (value * (n - 1) + new) / n
            else:
                value = value - value / n + new
            out[i] = value
    state[0], state[2] = seen, value


@compiled
def _true_range(
    high: FloatArray, low: FloatArray, close: FloatArray, out: FloatArray, state: FloatArray
) -> None:
    seen, before = state[0], state[2]
    for i in range(out.size):
        if not (high[i] - low[i] + close[i] < np.inf):  # unknown: a bar between two higher ones
            out[i] = np.nan
            continue
        value = max(high[i] - low[i], max(abs(high[i] - before), abs(low[i] - before)))
        out[i] = value if seen > 0.0 and value < np.inf else np.nan
        before = close[i]
        seen = 1.0
    state[0], state[2] = seen, before


@compiled
def _extreme(x: FloatArray, out: FloatArray, state: FloatArray, n: int, before: bool, sign: float) -> None:
    count, position, best = int(state[0]), int(state[1]), state[2]
    for i in range(out.size):
        value = sign * x[i]
        if value != value:
            out[i] = np.nan
            continue
        if before:
            out[i] = sign * best if count == n else np.nan
        leaving = state[HEADER + position]
        full = count == n
        count, position = push(state, count, position, n, value)
        if value >= best or count == 1:
            best = value
        elif full and leaving >= best:
            best = value
            for j in range(HEADER, HEADER + n):
                best = max(best, state[j])
        if not before:
            out[i] = sign * best if count == n else np.nan
    state[0], state[1], state[2] = count, position, best


@compiled
def _rank(x: FloatArray, out: FloatArray, state: FloatArray, n: int, minimum: int, factor: float) -> None:
    count, position = int(state[0]), int(state[1])
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        count, position = push(state, count, position, n, value)
        if count < minimum:
            out[i] = np.nan
            continue
        ranked = factor * value
        low, high = ranked - abs(ranked) * TIE, ranked + abs(ranked) * TIE
        below, up_to = 0, 0
        for j in range(HEADER, HEADER + count):
            below += state[j] < low
            up_to += state[j] <= high
        # The value itself is in the window and no tie of itself; multiplied, it may lie beside the window.
        if low <= value <= high:
            up_to -= 1
        else:
            below, up_to = below - (value < low), up_to - (value < low)
        out[i] = 0.5 * (below + up_to) / (count - 1)
    state[0], state[1] = count, position


@entry_point
def run(code: IntArray, factors: FloatArray, state: FloatArray, values: FloatArray, size: int) -> None:
    """Walk a program over one block of bars; nothing is allocated.

    Args:
        code: int64 (K, 8); per operation: op, rows of its three inputs, row of its output, length, second,
            offset of its state.
        factors: float64 (K,); the scale of each operation.
        state: float64 (N,); saved state of all operations, zeros at the start; changed in place.
        values: float64 (R + 1, W); the first `size` cells of every row are the block: input rows filled by
            the caller, output rows written here; the last row is free for an operation's own use.
        size: bars in the block, from 1 to W.
    """
    spare = values.shape[0] - 1
    for k in range(code.shape[0]):
        op, a, b, c, out = code[k, 0], code[k, 1], code[k, 2], code[k, 3], code[k, 4]
        n, second, own = code[k, 5], code[k, 6], code[k, 7]
        # On a block of one bar, a live step, making a view would cost more than the value.
        if size == 1 and is_pointwise(op):
            values[out, 0] = pointwise(op, factors[k], values[a, 0], values[b, 0])
        elif size == 1 and op == _MEAN:
            values[out, 0] = mean_step(values[a, 0], state, own, n)
        elif size == 1 and op == _CROSS:
            values[out, 0] = _cross_step(values[a, 0], values[b, 0], state, own)
        elif size == 1 and op == _SHIFT:
            values[out, 0] = _shift_step(values[a, 0], state, own, n)
        elif is_pointwise(op):
            pointwise_block(op, factors[k], values[a, :size], values[b, :size], values[out, :size])
        elif op == _LAG:
            _lag(values[a, :size], values[out, :size], state[own:], n)
        elif op == _MEAN:
            moving_mean(values[a, :size], values[out, :size], values[spare, :size], state[own:], n)
        elif op == _STDEV:
            _stdev(values[a, :size], values[out, :size], state[own:], n)
        elif op in (_EMA, _WILDER, _WILDER_SUM):
            _smooth(op, values[a, :size], values[out, :size], state[own:], n, second)
        elif op == _TRUE_RANGE:
            _true_range(values[a, :size], values[b, :size], values[c, :size], values[out, :size], state[own:])
        elif op == _EXTREME:
            _extreme(values[a, :size], values[out, :size], state[own:], n, second == 1, factors[k])
        elif op == _RANK:
            _rank(values[a, :size], values[out, :size], state[own:], n, second, factors[k])
        elif op == _CROSS:
            _cross(values[a, :size], values[b, :size], values[out, :size], state[own:])
        elif op == _SHIFT:
            _shift(values[a, :size], values[out, :size], state[own:], n)
        elif op == _SO_FAR:
            groups.so_far(values[a, :size], values[b, :size], values[out, :size], state[own:], second)
        elif op == _LAST_OF_PREVIOUS:
            groups.last_of_previous(values[a, :size], values[b, :size], values[out, :size], state[own:])
        elif op == _PUBLISH:
            groups.publish(values[a, :size], values[b, :size], values[out, :size], state[own:])
        elif op == _HOLD:
            groups.hold(values[a, :size], values[b, :size], values[out, :size], state[own:])
        elif op == _MEAN_DEVIATION:
            windows.mean_deviation(values[a, :size], values[out, :size], state[own:], n)
        elif op == _WEIGHTED_MEAN:
            windows.weighted_mean(values[a, :size], values[out, :size], state[own:], n)
        elif op == _RECENCY:
            windows.recency(values[a, :size], values[out, :size], state[own:], n, factors[k])
        elif op == _ADAPTIVE_MEAN:
            windows.adaptive_mean(values[a, :size], values[b, :size], values[out, :size], state[own:])
        elif op == _STREAK:
            windows.streak(values[a, :size], values[out, :size], state[own:])
        elif op == _TOTAL:
            windows.total(values[a, :size], values[out, :size], state[own:])
