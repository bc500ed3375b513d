"""The arithmetic of less usual windows and sums: weighted means, deviations, recency, streaks, totals.

The rules of `recurrences.run` hold: an unknown input gives an unknown output and leaves the state as it was,
and a block of any size gives the bits of single steps. Windows are summed anew at every bar, as distances
from the newest value, so nothing drifts.
"""

import numpy as np
import numpy.typing as npt

from trading_core.compiled import compiled
from trading_core.features.moving_mean import HEADER, push

FloatArray = npt.NDArray[np.float64]
# Kaufman (1995): the smoothing constant lies between those of exponential means of 2 and of 30 bars.
FAST, SLOW = 2.0 / (2.0 + 1.0), 2.0 / (30.0 + 1.0)


@compiled
def mean_deviation(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    """Mean absolute distance of the last n values from their mean."""
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
        total = 0.0
        for j in range(HEADER, HEADER + n):
            total += state[j] - value
        centre, distance = total / n, 0.0
        for j in range(HEADER, HEADER + n):
            distance += abs(state[j] - value - centre)
        out[i] = distance / n
    state[0], state[1] = count, position


@compiled
def weighted_mean(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    """Mean of the last n values with weights 1 for the oldest to n for the newest."""
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
        total, weight = 0.0, 1.0
        for j in range(HEADER + position, HEADER + n):
            total += weight * (state[j] - value)
            weight += 1.0
        for j in range(HEADER, HEADER + position):
            total += weight * (state[j] - value)
            weight += 1.0
        out[i] = value + total / (0.5 * n * (n + 1.0))
    state[0], state[1] = count, position


@compiled
def recency(x: FloatArray, out: FloatArray, state: FloatArray, n: int, sign: float) -> None:
    """How recent the extreme of the last n values is: 1 on this bar, 0 n - 1 bars ago; the later of equals.

    State: values seen, at most n; where the next goes; the extreme times the sign; bars since it; the window.
    """
    count, position, best, since = int(state[0]), int(state[1]), state[2], state[3]
    for i in range(out.size):
        value = sign * x[i]
        if value != value:
            out[i] = np.nan
            continue
        state[HEADER + position] = value
        since += 1.0
        if count == 0 or value >= best:
            best, since = value, 0.0
        elif since >= n:
            best, since = value, 0.0
            for back in range(1, n):
                older = state[HEADER + (position - back) % n]
                if older > best:
                    best, since = older, float(back)
        count = min(count + 1, n)
        position = position + 1 if position + 1 < n else 0
        out[i] = 1.0 - since / (n - 1.0) if count == n else np.nan
    state[0], state[1], state[2], state[3] = count, position, best, since


@compiled
def adaptive_mean(x: FloatArray, efficiency: FloatArray, out: FloatArray, state: FloatArray) -> None:
    """Kaufman's mean: it moves by the squared smoothing constant that the efficiency picks.

    It starts at the last value before the efficiency was known. State: whether it started, -, the value.
    """
    started, mean = state[0], state[2]
    for i in range(out.size):
        value, part = x[i], efficiency[i]
        out[i] = np.nan
        if value != value:
            continue
        if part == part:
            constant = part * (FAST - SLOW) + SLOW
            mean += constant * constant * (value - mean)
            started, out[i] = 1.0, mean
        elif started == 0.0:
            mean = value
    state[0], state[2] = started, mean


@compiled
def streak(x: FloatArray, out: FloatArray, state: FloatArray) -> None:
    """How many values in a row, this one included, were above zero."""
    length = state[2]
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        length = length + 1.0 if value > 0.0 else 0.0
        out[i] = length
    state[2] = length


@compiled
def total(x: FloatArray, out: FloatArray, state: FloatArray) -> None:
    """Sum of all values since the first, carried with the rounding error of every addition."""
    found, lost = state[2], state[3]
    for i in range(out.size):
        value = x[i]
        if value != value:
            out[i] = np.nan
            continue
        summed = found + value
        part = summed - found
        lost += (found - (summed - part)) + (value - part)
        found = summed
        out[i] = found + lost
    state[2], state[3] = found, lost
