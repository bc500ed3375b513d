"""The arithmetic of groups of bars: sessions so far, and higher bars that close before they are seen.

A group is a run of bars with one key. The rules of `recurrences.run` hold: an unknown input gives an unknown
output and leaves the state as it was, and a block of any size gives the bits of single steps.
"""

import math

import numpy as np
import numpy.typing as npt

from trading_core.compiled import compiled
from trading_core.features.nodes import RunningOp

FloatArray = npt.NDArray[np.float64]
_FIRST, _HIGHEST, _LOWEST, _TOTAL = (
    int(RunningOp.FIRST),
    int(RunningOp.HIGHEST),
    int(RunningOp.LOWEST),
    int(RunningOp.TOTAL),
)
_NOTHING, _OPEN, _WAITING = 0.0, 1.0, 2.0


@compiled
def so_far(x: FloatArray, key: FloatArray, out: FloatArray, state: FloatArray, kind: int) -> None:
    """First, highest, lowest, sum or number of the values of the group so far, this one included.

    State: whether a group began, -, its key, the value.
    """
    begun, group, value = state[0], state[2], state[3]
    for i in range(out.size):
        new = x[i]
        if new != new:
            out[i] = np.nan
            continue
        now = math.floor(key[i])
        if begun == 0.0 or now != group:
            begun, group = 1.0, now
            value = new if kind <= _TOTAL else 0.0
        elif kind == _HIGHEST:
            value = max(value, new)
        elif kind == _LOWEST:
            value = min(value, new)
        elif kind == _TOTAL:
            value += new
        elif kind != _FIRST:
            value += 1.0
        out[i] = value
    state[0], state[2], state[3] = begun, group, value


@compiled
def last_of_previous(x: FloatArray, key: FloatArray, out: FloatArray, state: FloatArray) -> None:
    """The last value of the group before the current one.

    State: groups begun, at most two; the value given out; the current key; the last value.
    """
    begun, given, group, last = state[0], state[1], state[2], state[3]
    for i in range(out.size):
        new = x[i]
        if new != new:
            out[i] = np.nan
            continue
        now = math.floor(key[i])
        if begun == 0.0 or now != group:
            begun, given, group = min(begun + 1.0, 2.0), last, now
        last = new
        out[i] = given if begun == 2.0 else np.nan
    state[0], state[1], state[2], state[3] = begun, given, group, last


@compiled
def publish(x: FloatArray, bucket: FloatArray, out: FloatArray, state: FloatArray) -> None:
    """The last value of each higher bar, on the one bar on which that higher bar is seen first; else unknown.

    That is the bar that completes it, or the first one after its end. Where a bar finds an incomplete higher
    bar behind it and completes another, the second is seen with the next bar. Nothing can queue beyond that:
    a bar finds an incomplete one behind it only if the bar before completed none.

    State: whether a higher bar is open, or a finished one waits; -; the number of the open one; the value.
    """
    phase, number, value = state[0], state[2], state[3]
    for i in range(out.size):
        new = x[i]
        if new != new:
            out[i] = np.nan
            continue
        now = math.floor(bucket[i])
        completes = bucket[i] > now
        if phase == _WAITING or (phase == _OPEN and now != number):
            out[i] = value
            phase = _WAITING if completes else _OPEN
        else:
            out[i] = new if completes else np.nan
            phase = _NOTHING if completes else _OPEN
        number, value = now, new
    state[0], state[2], state[3] = phase, number, value


@compiled
def hold(x: FloatArray, clock: FloatArray, out: FloatArray, state: FloatArray) -> None:
    """The value of x, known or not, at the last bar on which the clock was known.

    State: whether it ever was, -, the value.
    """
    begun, value = state[0], state[2]
    for i in range(out.size):
        if clock[i] == clock[i]:
            begun, value = 1.0, x[i]
        out[i] = value if begun != 0.0 else np.nan
    state[0], state[2] = begun, value
