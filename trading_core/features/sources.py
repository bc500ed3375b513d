"""What programs of a bar series read and write: its bars, the columns made of its times, and the bank.

The one place that knows the arguments of the compiled walk.
"""

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from trading_core.bars import COLUMNS, BarSeries
from trading_core.features.bank import ColumnBank, FloatArray, TruthArray
from trading_core.features.calendar import raw_column
from trading_core.features.crossing import ColumnOf, CrossingColumns, PlaceOf, is_crossing
from trading_core.features.further import FURTHER, FurtherColumns
from trading_core.features.graph import BAR, CALENDAR, Place, Program
from trading_core.features.nodes import Node
from trading_core.features.own import OWN

Made = tuple[int, tuple[tuple[Node, bool], ...]]
_AHEAD = 256  # rows whose times are foreseen, so that a bar on time costs its calendar columns nothing


class Sources:
    """Columns of one bar series by name and place.

    Attributes:
        bars: the series; rows may have been added to it since `rows` was set.
        rows: rows that finished columns have.
        bank: finished columns.
        made: symbols and nodes for which columns were made, in order; asked for again in this order, they
            stand in the same places of another bank.
        whole_of: the same for a symbol with a bank of all rows, where this one keeps the last alone.
    """

    def __init__(
        self,
        bars: BarSeries,
        place_of: PlaceOf,
        column_of: ColumnOf,
        whole_of: "Callable[[int], Sources]",
        *,
        grows: bool = False,
    ) -> None:
        self.bars = bars
        self.rows = bars.shape[0]
        self.whole_of = whole_of
        self.made: list[Made] = []
        self.bank = ColumnBank(self.rows, grows=grows)
        self.crossing = CrossingColumns(self.bank, place_of, column_of)
        self._further = FurtherColumns(self.bank)
        self._calendar = CalendarColumns(bars)
        # Imported on use, so that parsing rules and printing help never load the compiler.
        from trading_core.features.blocks import advance

        self._advance = advance

    def places(self, names: Iterable[str], s: int) -> dict[str, Place]:
        """Place of every raw column of symbol `s`.

        Raises:
            RuleError: a higher timeframe that is not above that of the bars, or a symbol they do not hold.
        """
        found = tuple(names)
        of_others = self.crossing.places(filter(is_crossing, found), s, self.bars, self.rows)
        return of_others | {name: self._own_place(name, s) for name in found if name not in of_others}

    def _own_place(self, name: str, s: int) -> Place:
        if name.startswith((FURTHER, OWN)):
            return self._further.place(name, s, self.bars, self.rows)
        return Place(BAR, COLUMNS.index(name)) if name in COLUMNS else self._calendar.place(name)

    def grow(self) -> None:
        """Make room for the rows that the series has gained, and have what is given; `rows` changes later."""
        rows = self.bars.shape[0]
        self.bank.make_room(rows)
        self._calendar.extend(self.bars, rows)
        self._further.extend(self.bars, self.rows, rows)

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
        self.table: FloatArray = np.empty((0, 0))
        self._bars = bars
        self._names: dict[str, int] = {}
        self._labels = np.empty(0, dtype=np.int64)  # of the rows that the columns have, foreseen ones too
        self._rows = bars.shape[0]
        self._known = 0

    def place(self, name: str) -> Place:
        """Place of a column, computed on first use for the rows there are."""
        if name not in self._names:
            if not self._names:
                self._foresee(0)
            column = self._compute(name, self._labels[: self._known])
            grown = np.empty((len(self._names) + 1, self._labels.size))
            grown[:-1, : self._known] = self.table[:, : self._known]
            grown[-1, : self._known] = column
            self.table = grown
            self._names[name] = len(self._names)
        return Place(CALENDAR, self._names[name])

    def extend(self, bars: BarSeries, rows: int) -> None:
        """Follow the series to so many rows."""
        start, self._bars, self._rows = self._rows, bars, rows
        if self._names and not self._as_foreseen(start, rows):
            self._foresee(start)
            for name, index in self._names.items():
                labels = self._labels[start : self._known]
                self.table[index, start : self._known] = self._compute(name, labels)

    def _as_foreseen(self, start: int, rows: int) -> bool:
        if rows > self._known:
            return False
        if rows == start + 1:
            return int(self._bars.times[start]) == int(self._labels[start])
        return bool(np.array_equal(self._bars.times[start:rows], self._labels[start:rows]))

    def _foresee(self, start: int) -> None:
        """Labels from a row on: those of the series, then those of bars on time."""
        self._known = self._rows + _AHEAD
        if self._known > self._labels.size:
            labels = np.empty(2 * self._known, dtype=np.int64)
            labels[:start] = self._labels[:start]
            table = np.empty((self.table.shape[0], labels.size))
            table[:, :start] = self.table[:, :start]
            self._labels, self.table = labels, table
        self._labels[start : self._rows] = self._bars.times[start : self._rows]
        ahead = self._bars.bar_ns * np.arange(1, _AHEAD + 1, dtype=np.int64)
        self._labels[self._rows : self._known] = int(self._bars.times[self._rows - 1]) + ahead

    def _compute(self, name: str, labels: npt.NDArray[np.int64]) -> FloatArray:
        bars = self._bars
        column = raw_column(name, labels, bars.closes_of(labels), bars.timeframe, bars.zone)
        return np.asarray(column, dtype=np.float64)
