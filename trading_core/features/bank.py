"""The bank: finished columns of all symbols in two tables, numbers and truths, with room for rows to come.

The kernel reads the tables by index, the columns module writes them. There is room for twice the rows, so
that rows which come one by one seldom move a table.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from trading_core.features.graph import NUMBER, TRUTH, Place

FloatArray = npt.NDArray[np.float64]
TruthArray = npt.NDArray[np.int8]
_FIRST_COLUMNS = 8
_FIRST_ROWS = 512  # and no more: the system clears large tables whole, in pages of 2 MB
_LINE = 72  # cells: columns that start on the same cell of a page would crowd the same lines of the cache


class ColumnBank:
    """Columns by place, grown by doubling; a table that has grown is another array with the same values.

    Attributes:
        numbers: float64 (K, R), NaN where unknown; rows that are not yet written hold anything.
        truths: int8 (L, R): 1 true, 0 false, -1 unknown.
    """

    def __init__(self, rows: int) -> None:
        self._capacity = _room(rows)
        self.numbers: FloatArray = np.empty((_FIRST_COLUMNS, self._capacity))
        self.truths: TruthArray = np.empty((_FIRST_COLUMNS, self._capacity), dtype=np.int8)
        self._used = [0, 0]
        self._rows = rows

    def new(self, truth: bool) -> Place:
        """Place of a new column."""
        table = TRUTH if truth else NUMBER
        index = self._used[table]
        self._used[table] += 1
        if truth and index == self.truths.shape[0]:
            self.truths = _grown(self.truths[:index, : self._rows], 2 * index, self._capacity)
        if not truth and index == self.numbers.shape[0]:
            self.numbers = _grown(self.numbers[:index, : self._rows], 2 * index, self._capacity)
        return Place(table, index)

    def make_room(self, rows: int) -> None:
        """Hold so many rows from now on."""
        if rows > self._capacity:
            self._capacity = _room(rows)
            numbers, truths = self.numbers.shape[0], self.truths.shape[0]
            self.numbers = _grown(self.numbers[: self._used[NUMBER], : self._rows], numbers, self._capacity)
            self.truths = _grown(self.truths[: self._used[TRUTH], : self._rows], truths, self._capacity)
        self._rows = rows

    def column(self, place: Place, rows: int) -> npt.NDArray[Any]:
        """The first rows of a column, a view."""
        table: npt.NDArray[Any] = self.truths if place.table == TRUTH else self.numbers
        return table[place.index, :rows]


def _room(rows: int) -> int:
    return (2 * max(rows, _FIRST_ROWS) + 63) // 64 * 64 + _LINE


def _grown(written: npt.NDArray[Any], columns: int, capacity: int) -> npt.NDArray[Any]:
    grown = np.empty((columns, capacity), dtype=written.dtype)
    grown[: written.shape[0], : written.shape[1]] = written
    return grown
