"""The arithmetic of features: one compiled function walks a program of operations over a block of bars.

Every operation is a recurrence with its state in an array, so a block of any size and a single step run the
same code and give the same bits. An unknown input gives an unknown output and leaves the state as it was; a
division by zero and a result that is not finite are unknown. No fastmath: the order of every sum is fixed.

Sums of a moving mean are carried with the rounding error of every addition (Neumaier 1974), so they neither
drift nor depend on what left the window. A standard deviation is summed anew over its window around the
newest value: exact on a flat price, and as the newest value lies within sqrt(n - 1) deviations of the mean,
the cancellation is bounded.
"""

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from trading_core.features.nodes import Op

_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = int(Op.ADD), int(Op.SUBTRACT), int(Op.MULTIPLY), int(Op.DIVIDE)
_SCALE, _ABSOLUTE, _POSITIVE, _DOMINANT = int(Op.SCALE), int(Op.ABSOLUTE), int(Op.POSITIVE), int(Op.DOMINANT)
_LOG, _LAG, _MEAN, _STDEV, _EMA = int(Op.LOG), int(Op.LAG), int(Op.MEAN), int(Op.STDEV), int(Op.EMA)
_WILDER, _WILDER_SUM, _TRUE_RANGE = int(Op.WILDER), int(Op.WILDER_SUM), int(Op.TRUE_RANGE)
_EXTREME, _RANK = int(Op.EXTREME), int(Op.RANK)
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
        else:
            y = b[i]
            value = x if x > 0.0 and x > y else x * 0.0 + y * 0.0
        out[i] = value if abs(value) < np.inf else np.nan


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
def _mean(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    count, position, total, lost = int(state[0]), int(state[1]), state[2], state[3]
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        if count == n:
            old = -state[HEADER + position]
            summed = total + old
            part = summed - total
            lost += (total - (summed - part)) + (old - part)
            total = summed
        else:
            count += 1
        summed = total + value
        part = summed - total
        lost += (total - (summed - part)) + (value - part)
        total = summed
        state[HEADER + position] = value
        position = position + 1 if position + 1 < n else 0
        out[i] = (total + lost) / n if count == n else np.nan
    state[0], state[1], state[2], state[3] = count, position, total, lost


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
def run(code: IntArray, factors: FloatArray, state: FloatArray, values: FloatArray) -> None:
    """Walk a program over one block of bars; nothing is allocated.

    Args:
        code: int64 (K, 8); per operation: op, rows of its three inputs, row of its output, length, second,
            offset of its state.
        factors: float64 (K,); the scale of each operation.
        state: float64 (N,); saved state of all operations, zeros at the start; changed in place.
        values: float64 (R, B); input rows filled by the caller, output rows written here.
    """
    for k in range(code.shape[0]):
        op, n, second = code[k, 0], code[k, 5], code[k, 6]
        a, b, c, out = values[code[k, 1]], values[code[k, 2]], values[code[k, 3]], values[code[k, 4]]
        own = state[code[k, 7] :]
        if op == _LAG:
            _lag(a, out, own, n)
        elif op == _MEAN:
            _mean(a, out, own, n)
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
        else:
            _pointwise(op, factors[k], a, b, out)
