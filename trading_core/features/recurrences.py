"""The arithmetic of features and rules: a compiled walk of a program of operations over a block of bars.

Every operation is a recurrence with its state in an array, so a block of any size and a single step run the
same code and give the same bits. An unknown input gives an unknown output and leaves the state as it was; a
division by zero and a result that is not finite are unknown. No fastmath: the order of every sum is fixed.

Sums of a moving mean are carried with the rounding error of every addition (Knuth's two-sum), so they neither
drift nor depend on what left the window. A standard deviation is summed anew over its window around the
newest value: exact on a flat price, and as the newest value lies within sqrt(n - 1) deviations of the mean,
the cancellation is bounded.
"""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from trading_core.features import group_recurrences as groups
from trading_core.features import window_recurrences as windows
from trading_core.features.nodes import Op

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = int(Op.ADD), int(Op.SUBTRACT), int(Op.MULTIPLY), int(Op.DIVIDE)
_SCALE, _ABSOLUTE, _POSITIVE, _DOMINANT = int(Op.SCALE), int(Op.ABSOLUTE), int(Op.POSITIVE), int(Op.DOMINANT)
_LOG, _LAG, _MEAN, _STDEV, _EMA = int(Op.LOG), int(Op.LAG), int(Op.MEAN), int(Op.STDEV), int(Op.EMA)
_WILDER, _WILDER_SUM, _TRUE_RANGE = int(Op.WILDER), int(Op.WILDER_SUM), int(Op.TRUE_RANGE)
_EXTREME, _RANK = int(Op.EXTREME), int(Op.RANK)
_CONSTANT, _MINIMUM, _MAXIMUM = int(Op.CONSTANT), int(Op.MINIMUM), int(Op.MAXIMUM)
_GREATER, _AT_LEAST, _EQUAL = int(Op.GREATER), int(Op.AT_LEAST), int(Op.EQUAL)
_NOT, _AND, _OR, _CROSS, _SHIFT = int(Op.NOT), int(Op.AND), int(Op.OR), int(Op.CROSS), int(Op.SHIFT)
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
HEADER = 4  # state cells before a window: count, position, and two of the operation's own
TIE = 1e-9


@njit(error_model="numpy")
def _pointwise(op: int, factor: float, a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    for i in range(out.size):
        x = a[i]
        if op == _ADD:
            value = x + b[i]
        elif op == _SUBTRACT:
            value = x - b[i]
        elif op == _MULTIPLY:
            value = x * b[i]
        elif op == _DIVIDE:
            value = x / b[i]
        elif op == _SCALE:
            value = factor * x
        elif op == _ABSOLUTE:
            value = abs(x)
        elif op == _LOG:
            value = math.log(x) if x > 0.0 else np.nan
        elif op == _POSITIVE:
            value = 0.0 if x <= 0.0 else x
        elif op == _CONSTANT:
            value = factor
        elif op == _MINIMUM:
            value = x if x <= b[i] else b[i] + x * 0.0
        elif op == _MAXIMUM:
            value = x if x >= b[i] else b[i] + x * 0.0
        else:
            y = b[i]
            value = x if x > 0.0 and x > y else x * 0.0 + y * 0.0
        out[i] = value if abs(value) < np.inf else np.nan


@njit(error_model="numpy")
def _logic(op: int, a: FloatArray, b: FloatArray, out: FloatArray) -> None:
    for i in range(out.size):
        x, y = a[i], b[i]
        if op == _GREATER:
            value = 1.0 if x > y else (0.0 if x <= y else np.nan)
        elif op == _AT_LEAST:
            value = 1.0 if x >= y else (0.0 if x < y else np.nan)
        elif op == _EQUAL:
            value = 1.0 if x == y else (0.0 if x < y or x > y else np.nan)
        elif op == _NOT:
            value = 1.0 if x == 0.0 else (0.0 if x == 1.0 else np.nan)
        elif op == _AND:
            value = 0.0 if x == 0.0 or y == 0.0 else (1.0 if x == y else np.nan)
        else:
            value = 1.0 if x == 1.0 or y == 1.0 else (0.0 if x == y else np.nan)
        out[i] = value


@njit(error_model="numpy")
def _cross(a: FloatArray, b: FloatArray, out: FloatArray, state: FloatArray) -> None:
    # state[0]: 1 if a <= b held on the bar before, -1 if a > b did, 0 if that is unknown
    size = out.size
    x, y = a[0], b[0]
    if x <= y or state[0] < 0.0:
        out[0] = 0.0
    else:
        out[0] = 1.0 if x > y and state[0] > 0.0 else np.nan
    now_a, now_b, then_a, then_b, rest = a[1:], b[1:], a[: size - 1], b[: size - 1], out[1:]
    for i in range(size - 1):
        above, below = now_a[i] > now_b[i], now_a[i] <= now_b[i]
        was_above, was_below = then_a[i] > then_b[i], then_a[i] <= then_b[i]
        rest[i] = 0.0 if below or was_above else (1.0 if above and was_below else np.nan)
    x, y = a[size - 1], b[size - 1]
    state[0] = 1.0 if x <= y else (-1.0 if x > y else 0.0)


@njit(error_model="numpy")
def _shift(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    count, position = int(state[0]), int(state[1])
    size = out.size
    for i in range(min(n, size)):
        before = position + i - (n if position + i >= n else 0)
        out[i] = state[HEADER + before] if count + i >= n else np.nan
    for i in range(n, size):
        out[i] = x[i - n]
    for i in range(max(0, size - n), size):
        state[HEADER + (position + i) % n] = x[i]
    state[0], state[1] = min(count + size, n), (position + size) % n


@njit(error_model="numpy")
def _lag(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    count, position = int(state[0]), int(state[1])
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        out[i] = state[HEADER + position] if count == n else np.nan
        state[HEADER + position] = value
        count = min(count + 1, n)
        position = position + 1 if position + 1 < n else 0
    state[0], state[1] = count, position


@njit(error_model="numpy")
def _mean(x: FloatArray, out: FloatArray, lost: FloatArray, state: FloatArray, n: int) -> None:
    # While the window fills, the value that leaves is the zero the state starts with.
    if int(state[0]) == n and _all_known(x):
        _leaving(x, out, state, n)
        _changes(x, out, lost)
        _sums(out, lost, state, n)
        return
    count, position, total, error = int(state[0]), int(state[1]), state[2], state[3]
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        old = state[HEADER + position]
        change = value - old
        part = change - value
        rounded = (value - (change - part)) - (old + part)
        summed = total + change
        part = summed - total
        error += rounded + ((total - (summed - part)) + (change - part))
        total = summed
        state[HEADER + position] = value
        count = min(count + 1, n)
        position = position + 1 if position + 1 < n else 0
        out[i] = (total + error) / n if count == n else np.nan
    state[0], state[1], state[2], state[3] = count, position, total, error


@njit(error_model="numpy")
def _all_known(x: FloatArray) -> bool:
    unknown = 0
    for i in range(x.size):
        unknown += x[i] != x[i]
    return unknown == 0


@njit(error_model="numpy")
def _leaving(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    # Writes the value that leaves a full window at each bar, and puts the block's last values in the window.
    position, size = int(state[1]), out.size
    for i in range(min(n, size)):
        out[i] = state[HEADER + position + i - (n if position + i >= n else 0)]
    if size > n:
        out[n:] = x[: size - n]
    first = max(0, size - n)
    slot = (position + first) % n
    for i in range(first, size):
        state[HEADER + slot] = x[i]
        slot = slot + 1 if slot + 1 < n else 0
    state[1] = slot


@njit(error_model="numpy")
def _changes(x: FloatArray, out: FloatArray, lost: FloatArray) -> None:
    # From leaving values in `out` to new - leaving, with the rounding error of each difference in `lost`.
    for i in range(out.size):
        value, old = x[i], out[i]
        change = value - old
        part = change - value
        lost[i] = (value - (change - part)) - (old + part)
        out[i] = change


@njit(error_model="numpy")
def _sums(out: FloatArray, lost: FloatArray, state: FloatArray, n: int) -> None:
    total, error = state[2], state[3]
    for i in range(out.size):
        change = out[i]
        summed = total + change
        part = summed - total
        error += lost[i] + ((total - (summed - part)) + (change - part))
        total = summed
        out[i] = (total + error) / n
    state[2], state[3] = total, error


@njit(error_model="numpy")
def _stdev(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    count, position = int(state[0]), int(state[1])
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        state[HEADER + position] = value
        count = min(count + 1, n)
        position = position + 1 if position + 1 < n else 0
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


@njit(error_model="numpy")
def _smoothed(op: int, x: FloatArray, out: FloatArray, state: FloatArray, n: int, skip: int) -> None:
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


@njit(error_model="numpy")
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


@njit(error_model="numpy")
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
        state[HEADER + position] = value
        count = min(count + 1, n)
        position = position + 1 if position + 1 < n else 0
        if value >= best or count == 1:
            best = value
        elif full and leaving >= best:
            best = value
            for j in range(HEADER, HEADER + n):
                best = max(best, state[j])
        if not before:
            out[i] = sign * best if count == n else np.nan
    state[0], state[1], state[2] = count, position, best


@njit(error_model="numpy")
def _rank(x: FloatArray, out: FloatArray, state: FloatArray, n: int, minimum: int, factor: float) -> None:
    count, position = int(state[0]), int(state[1])
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        state[HEADER + position] = value
        count = min(count + 1, n)
        position = position + 1 if position + 1 < n else 0
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


@njit(cache=True, error_model="numpy")
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
    spare = values[values.shape[0] - 1][:size]
    for k in range(code.shape[0]):
        op, n, second = code[k, 0], code[k, 5], code[k, 6]
        a, b = values[code[k, 1]][:size], values[code[k, 2]][:size]
        c, out = values[code[k, 3]][:size], values[code[k, 4]][:size]
        own = state[code[k, 7] :]
        if op == _LAG:
            _lag(a, out, own, n)
        elif op == _MEAN:
            _mean(a, out, spare, own, n)
        elif op == _STDEV:
            _stdev(a, out, own, n)
        elif op in (_EMA, _WILDER, _WILDER_SUM):
            _smoothed(op, a, out, own, n, second)
        elif op == _TRUE_RANGE:
            _true_range(a, b, c, out, own)
        elif op == _EXTREME:
            _extreme(a, out, own, n, second == 1, factors[k])
        elif op == _RANK:
            _rank(a, out, own, n, second, factors[k])
        elif op == _CROSS:
            _cross(a, b, out, own)
        elif op == _SHIFT:
            _shift(a, out, own, n)
        elif op in (_GREATER, _AT_LEAST, _EQUAL, _NOT, _AND, _OR):
            _logic(op, a, b, out)
        elif op == _SO_FAR:
            groups.so_far(a, b, out, own, second)
        elif op == _LAST_OF_PREVIOUS:
            groups.last_of_previous(a, b, out, own)
        elif op == _PUBLISH:
            groups.publish(a, b, out, own)
        elif op == _HOLD:
            groups.hold(a, b, out, own)
        elif op == _MEAN_DEVIATION:
            windows.mean_deviation(a, out, own, n)
        elif op == _WEIGHTED_MEAN:
            windows.weighted_mean(a, out, own, n)
        elif op == _RECENCY:
            windows.recency(a, out, own, n, factors[k])
        elif op == _ADAPTIVE_MEAN:
            windows.adaptive_mean(a, b, out, own)
        elif op == _STREAK:
            windows.streak(a, out, own)
        elif op == _TOTAL:
            windows.total(a, out, own)
        else:
            _pointwise(op, factors[k], a, b, out)
