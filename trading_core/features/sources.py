"""What programs of a bar series read and write: its bars, the columns made of its times, and the bank.

Called by `symbol_columns`; the one place that knows the arguments of the compiled walk.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from trading_core.bars import COLUMNS, BarSeries
from trading_core.features.bank import ColumnBank, FloatArray, TruthArray
from trading_core.features.calendar import raw_column
from trading_core.features.graph import BAR, CALENDAR, Place, Program

_AHEAD = 256  # rows whose times are foreseen, so that a bar on time costs its calendar columns nothing


class Sources:
    """Columns of one bar series by name and place.

    Attributes:
        bars: the series; rows may have been added to it since `rows` was set.
        rows: rows that finished columns have.
        bank: finished columns.
    """

    def __init__(self, bars: BarSeries) -> None:
        self.bars = bars
        self.rows = bars.shape[0]
        self.bank = ColumnBank(self.rows)
        self._calendar = CalendarColumns(bars)
        # Imported on use, so that parsing rules and printing help never load the compiler.
        from trading_core.features.blocks import advance

        self._advance = advance

    def places(self, names: Iterable[str]) -> dict[str, Place]:
        """Place of every raw column.

        Raises:
            RuleError: a higher timeframe that is not above that of the bars.
        """
        return {
            name: Place(BAR, COLUMNS.index(name))
            if name in COLUMNS
            else self._calendar.place(name, self.rows)
            for name in names
        }

    def grow(self) -> None:
        """Make room for the rows that the series has gained; `rows` changes when they are computed."""
        rows = self.bars.shape[0]
        self.bank.make_room(rows)
        self._calendar.extend(self.bars, rows)

    def run(
        self,
        program: Program,
        state: FloatArray,
        scratch: tuple[FloatArray, npt.NDArray[np.int64]],
        s: int,
        start: int,
        stop: int,
        written: tuple[FloatArray, TruthArray] | None = None,
        offset: int = 0,
    ) -> None:
        """Compute the rows start..stop of symbol `s`; see `blocks.advance`. None writes to the bank."""
        b, read = self.bars, (self.bank.numbers, self.bank.truths)
        self._advance(
            program.code, program.factors, state, program.inputs, program.outputs, *scratch,
            (b.open, b.high, b.low, b.close, b.volume), self._calendar.table, read,
            read if written is None else written, b.present, s, start, stop, offset,
        )  # fmt: skip


class CalendarColumns:
    """Columns made of the times of the rows, shared by all symbols, computed some rows ahead.

    Attributes:
        table: float64 (C, R).
    """

    def __init__(self, bars: BarSeries) -> None:
        self.table: FloatArray = np.empty((0, 1))
        self._bars = bars
        self._names: dict[str, int] = {}
        self._labels = np.empty(0, dtype=np.int64)  # of the rows that the columns have
        self._rows = bars.shape[0]

    def place(self, name: str, rows: int) -> Place:
        """Place of a column, computed on first use for the rows there are."""
        if name not in self._names:
            labels = self._labels if self._names else self._foreseen(0, rows)
            column = self._computed(name, labels)
            grown = np.empty((len(self._names) + 1, max(self.table.shape[1], 2 * labels.size)))
            grown[:-1, : labels.size] = self.table[:, : labels.size]
            grown[-1, : labels.size] = column
            self.table, self._labels = grown, labels
            self._names[name] = len(self._names)
        return Place(CALENDAR, self._names[name])

    def extend(self, bars: BarSeries, rows: int) -> None:
        """Follow the series to so many rows."""
        start, self._bars, self._rows = self._rows, bars, rows
        if not self._names or self._as_foreseen(start, rows):
            return
        labels = self._foreseen(start, rows)
        end = start + labels.size
        if end > self.table.shape[1]:
            grown = np.empty((self.table.shape[0], 2 * end))
            grown[:, :start] = self.table[:, :start]
            self.table = grown
        for name, index in self._names.items():
            self.table[index, start:end] = self._computed(name, labels)
        self._labels = np.concatenate([self._labels[:start], labels])

    def _as_foreseen(self, start: int, rows: int) -> bool:
        if rows > self._labels.size:
            return False
        if rows == start + 1:
            return int(self._bars.times[start]) == int(self._labels[start])
        return bool(np.array_equal(self._bars.times[start:rows], self._labels[start:rows]))

    def _foreseen(self, start: int, rows: int) -> npt.NDArray[np.int64]:
        known = self._bars.times[start:rows]
        ahead = int(known[-1]) + self._bars.bar_ns * np.arange(1, _AHEAD + 1, dtype=np.int64)
        return np.concatenate([known, ahead])

    def _computed(self, name: str, labels: npt.NDArray[np.int64]) -> FloatArray:
        closes = labels if self._bars.label == "close" else labels + self._bars.bar_ns
        return np.asarray(raw_column(name, labels, closes, self._bars.timeframe), dtype=np.float64)
