"""The moving mean, in one pass: each bar adds what is new and takes what leaves the window.

The sum is carried with the rounding error of every operation (Knuth's two-sum), so it neither drifts nor
depends on what left the window.

The window of a recurrence is the last n known values as a ring inside the saved state. A state begins with
HEADER cells, how many values are known and where the next one goes, then two of its own; the ring
follows. One step for every recurrence with a window, in blocks and single bars.
"""

import numpy as np
import numpy.typing as npt

from trading_core.compiled import compiled

FloatArray = npt.NDArray[np.float64]


@compiled
def moving_mean(x: FloatArray, out: FloatArray, lost: FloatArray, state: FloatArray, n: int) -> None:
    """Means over the last n known values; `lost` is scratch of the block's size."""
    if out.size > 1 and int(state[0]) == n and _all_known(x):
        _leaving(x, out, state, n)
        _changes(x, out, lost)
        _sums(out, lost, state, n)
        return
    for i in range(out.size):
        out[i] = mean_step(x[i], state, 0, n)


@compiled
def mean_step(value: float, state: FloatArray, own: int, n: int) -> float:
    """Mean with one more value; the operation's cells of `state` begin at `own`."""
    # While the window fills, the value that leaves it is the zero that the state starts with.
    if value != value:
        return np.nan
    count, position, total = int(state[own]), int(state[own + 1]), state[own + 2]
    old = state[own + HEADER + position]
    change = value - old
    part = change - value
    rounded = (value - (change - part)) - (old + part)
    summed = total + change
    part = summed - total
    error = state[own + 3] + (rounded + ((total - (summed - part)) + (change - part)))
    state[own + HEADER + position] = value
    count = min(count + 1, n)
    state[own], state[own + 1] = count, position + 1 if position + 1 < n else 0
    state[own + 2], state[own + 3] = summed, error
    return (summed + error) / n if count == n else np.nan


@compiled
def _all_known(x: FloatArray) -> bool:
    unknown = 0
    for i in range(x.size):
        unknown += x[i] != x[i]
    return unknown == 0


@compiled
def _leaving(x: FloatArray, out: FloatArray, state: FloatArray, n: int) -> None:
    # Writes the value that leaves a full window at each bar, and puts the block's last values in the window.
    position, size = int(state[1]), out.size
    for i in range(min(n, size)):
        out[i] = state[HEADER + position + i - (n if position + i >= n else 0)]
    for i in range(n, size):
        out[i] = x[i - n]
    first = max(0, size - n)
    slot = (position + first) % n
    for i in range(first, size):
        state[HEADER + slot] = x[i]
        slot = slot + 1 if slot + 1 < n else 0
    state[1] = slot


@compiled
def _changes(x: FloatArray, out: FloatArray, lost: FloatArray) -> None:
    # From leaving values in `out` to new - leaving, with the rounding error of each difference in `lost`.
    for i in range(out.size):
        value, old = x[i], out[i]
        change = value - old
        part = change - value
        lost[i] = (value - (change - part)) - (old + part)
        out[i] = change


@compiled
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


HEADER = 4


@compiled
def push(state: FloatArray, count: int, position: int, n: int, value: float) -> tuple[int, int]:
    """Put a value in place of the oldest of n; the known values, at most n, and where the next one goes."""
    state[HEADER + position] = value
    return min(count + 1, n), position + 1 if position + 1 < n else 0
