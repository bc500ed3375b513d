"""From columns to columns, compiled: gather one symbol's present bars, walk the program, scatter the outputs.

One call serves the whole history and one new bar alike.
"""

import numpy as np
import numpy.typing as npt

from trading_core.compiled import compiled, entry_point
from trading_core.features.graph import BAR, CALENDAR, NUMBER
from trading_core.features.recurrences import run

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
TruthArray = npt.NDArray[np.int8]
BoolArray = npt.NDArray[np.bool_]
Tables = tuple[FloatArray, TruthArray]
_NUMBER, _BAR, _CALENDAR = NUMBER, BAR, CALENDAR


@compiled
def _all_present(present: BoolArray) -> bool:
    absent = 0
    for i in range(present.size):
        absent += not present[i]
    return absent == 0


@compiled
def _own_rows(present: BoolArray, first: int, stop: int, own: IntArray) -> tuple[int, int]:
    # Rows of the next present bars, as many as fit, and the row behind the last one looked at.
    size, row = 0, first
    while row < stop and size < own.size:
        own[size] = row
        size += present[row]
        row += 1
    return size, row


@compiled
def _gather(source: FloatArray, own: IntArray, whole: bool, first: int, out: FloatArray) -> None:
    if whole:
        part = source[first : first + out.size]
        for i in range(out.size):
            out[i] = part[i]
    else:
        for i in range(out.size):
            out[i] = source[own[i]]


@compiled
def _decode(source: TruthArray, own: IntArray, whole: bool, first: int, out: FloatArray) -> None:
    for i in range(out.size):
        code = source[first + i if whole else own[i]]
        out[i] = np.nan if code < 0 else float(code)


@compiled
def _scatter(values: FloatArray, own: IntArray, whole: bool, out: FloatArray, shift: int) -> None:
    if whole:
        for i in range(values.size):
            out[i] = values[i]
        return
    for i in range(out.size):
        out[i] = np.nan
    for i in range(values.size):
        out[own[i] - shift] = values[i]


@compiled
def _code(value: float) -> int:
    return int(value == 1.0) - int(value != value)


@compiled
def _encode(values: FloatArray, own: IntArray, whole: bool, out: TruthArray, shift: int) -> None:
    if whole:
        for i in range(values.size):
            out[i] = _code(values[i])
        return
    for i in range(out.size):
        out[i] = -1
    for i in range(values.size):
        out[own[i] - shift] = _code(values[i])


@compiled
def _read_block(
    inputs: IntArray,
    values: FloatArray,
    bars: tuple[FloatArray, ...],
    calendar: FloatArray,
    read: Tables,
    own: IntArray,
    whole: bool,
    first: int,
    s: int,
) -> None:
    for k in range(inputs.shape[0]):
        table, index, cells = inputs[k, 0], inputs[k, 1], values[k, : own.size]
        if table == _BAR:
            _gather(bars[index][:, s], own, whole, first, cells)
        elif table == _CALENDAR:
            _gather(calendar[index], own, whole, first, cells)
        elif table == _NUMBER:
            _gather(read[0][index], own, whole, first, cells)
        else:
            _decode(read[1][index], own, whole, first, cells)


@compiled
def _read_row(
    inputs: IntArray,
    values: FloatArray,
    bars: tuple[FloatArray, ...],
    calendar: FloatArray,
    numbers: FloatArray,
    truths: TruthArray,
    row: int,
    s: int,
) -> None:
    for k in range(inputs.shape[0]):
        table, index = inputs[k, 0], inputs[k, 1]
        if table == _BAR:
            values[k, 0] = bars[index][row, s]
        elif table == _CALENDAR:
            values[k, 0] = calendar[index, row]
        elif table == _NUMBER:
            values[k, 0] = numbers[index, row]
        else:
            values[k, 0] = np.nan if truths[index, row] < 0 else float(truths[index, row])


@compiled
def _write_block(
    outputs: IntArray,
    values: FloatArray,
    written: Tables,
    own: IntArray,
    whole: bool,
    first: int,
    stop: int,
    offset: int,
) -> None:
    for k in range(outputs.shape[0]):
        cells, index = values[outputs[k, 0], : own.size], outputs[k, 2]
        if outputs[k, 1] == _NUMBER:
            _scatter(cells, own, whole, written[0][index, first - offset : stop - offset], first)
        else:
            _encode(cells, own, whole, written[1][index, first - offset : stop - offset], first)


@compiled
def _write_row(
    outputs: IntArray, values: FloatArray, numbers: FloatArray, truths: TruthArray, row: int
) -> None:
    for k in range(outputs.shape[0]):
        value, index = values[outputs[k, 0], 0], outputs[k, 2]
        if outputs[k, 1] == _NUMBER:
            numbers[index, row] = value
        else:
            truths[index, row] = _code(value)


@entry_point
def advance(
    code: IntArray,
    factors: FloatArray,
    state: FloatArray,
    inputs: IntArray,
    outputs: IntArray,
    values: FloatArray,
    own: IntArray,
    bars: tuple[FloatArray, ...],
    calendar: FloatArray,
    read: Tables,
    written: Tables,
    present: BoolArray,
    s: int,
    start: int,
    stop: int,
    offset: int,
) -> None:
    """Compute the outputs of rows start..stop of symbol `s`; unknown where its bar is absent.

    Args:
        code: int64 (K, 8), see `recurrences.run`, as are `factors`, `state` and `values`.
        factors: float64 (K,).
        state: float64 (N,), as left by the row before `start`; changed in place.
        inputs: int64 (I, 2), table and index of the column of scratch row i, see `graph`.
        outputs: int64 (O, 3), scratch row, table and index.
        values: float64 (R + 1, W), scratch for blocks of W bars.
        own: int64 (W,), scratch.
        bars: float64 (T, S) each: open, high, low, close, volume.
        calendar: float64 (C, >= T).
        read: number and truth columns that inputs may name, (K, >= T) each.
        written: number and truth columns that outputs name; row t stands at t - offset.
        present: bool (T, S).
        s: symbol index.
        start: first row.
        stop: the row behind the last.
        offset: see `written`.
    """
    here, width, row = present[:, s], values.shape[1], start
    while row < stop:
        first, size = row, min(width, stop - row)
        whole = _all_present(here[first : first + size])
        if whole:
            row = first + size
        else:
            size, row = _own_rows(here, first, stop, own)
        if whole and size == 1:  # a live step: a view would cost more than the value
            _read_row(inputs, values, bars, calendar, read[0], read[1], first, s)
            run(code, factors, state, values, size)  # a literal 1 would be compiled apart
            _write_row(outputs, values, written[0], written[1], first - offset)
            continue
        if size > 0:
            _read_block(inputs, values, bars, calendar, read, own[:size], whole, first, s)
            run(code, factors, state, values, size)
        _write_block(outputs, values, written, own[:size], whole, first, row, offset)
