"""The bank: finished columns of all symbols in two tables, numbers and truths, addressed by index and row.

The kernel reads the tables by index, the columns module writes them. Bars that are all there need exactly
their rows. Bars that come one by one would fill any table: there the bank keeps the last rows alone. Rows
keep their numbers, and the pages of those that are gone go back to the system.
"""

import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from trading_core.features.graph import NUMBER, TRUTH, Place

FloatArray = npt.NDArray[np.float64]
TruthArray = npt.NDArray[np.int8]
KEPT_ROWS = 256
_FIRST_COLUMNS = 8
_STEP = 256  # rows that are given back together, as far as they fill pages
_AHEAD = 2_048  # rows for which a growing bank has addresses; a page takes memory when it is written
_LINE = 72  # cells: columns that start on the same cell of a page would crowd the same lines of the cache
_UNCOUNTED = 0x4000 if sys.platform == "linux" else 0  # MAP_NORESERVE, which `mmap` names from 3.13 on
_PAGE = mmap.PAGESIZE


class ColumnBank:
    """Columns by place, grown by doubling; a table that has grown is another array with the same values.

    Args:
        rows: that there are.
        grows: whether rows come one by one; then, from the first new one on, only the last are kept.

    Attributes:
        numbers: float64 (K, R), NaN where unknown; rows that are not yet written, or gone, hold anything.
        truths: int8 (L, R): 1 true, 0 false, -1 unknown.
        first: first row that is kept; the same for every column.
        before_leaving: told the next `first` while the rows before it are still there.
    """

    def __init__(self, rows: int, *, grows: bool = False) -> None:
        self._grows = grows
        self._rows = rows
        self._capacity = _room(rows + _AHEAD if grows else rows)
        self.first = 0
        self.before_leaving: Callable[[int], None] | None = None
        self._pages: dict[str, mmap.mmap] = {}  # of the tables of a bank that grows, by kind of their cells
        self.numbers: FloatArray = self._table(_FIRST_COLUMNS, np.float64)
        self.truths: TruthArray = self._table(_FIRST_COLUMNS, np.int8)
        self._used = [0, 0]

    def new(self, truth: bool) -> Place:
        """Place of a new column."""
        self.expect(int(truth), int(not truth))
        table = TRUTH if truth else NUMBER
        index = self._used[table]
        self._used[table] += 1
        return Place(table, index)

    def expect(self, truths: int, numbers: int) -> None:
        """Make place for so many new columns at once: each doubling copies all that there are."""
        truths, numbers = truths + self._used[TRUTH], numbers + self._used[NUMBER]
        if truths > self.truths.shape[0]:
            columns = max(truths, 2 * self.truths.shape[0])
            self.truths = self._grown(self.truths[: self._used[TRUTH]], columns)
        if numbers > self.numbers.shape[0]:
            columns = max(numbers, 2 * self.numbers.shape[0])
            self.numbers = self._grown(self.numbers[: self._used[NUMBER]], columns)

    def make_room(self, rows: int) -> None:
        """Hold so many rows from now on; of those that there are, a growing bank keeps the last."""
        if self._grows and (first := max(0, self._rows - KEPT_ROWS) // _STEP * _STEP) > self.first:
            if self.before_leaving is not None:
                self.before_leaving(first)
            self._free(self.numbers[: self._used[NUMBER]], first)
            self._free(self.truths[: self._used[TRUTH]], first)
            self.first = first
        if rows > self._capacity:
            self._capacity = _room(rows + _AHEAD if self._grows else 2 * rows)
            numbers, truths = self.numbers.shape[0], self.truths.shape[0]
            self.numbers = self._grown(self.numbers[: self._used[NUMBER]], numbers)
            self.truths = self._grown(self.truths[: self._used[TRUTH]], truths)
        self._rows = rows

    def fill(self, place: Place, column: npt.NDArray[Any]) -> None:
        """Write the rows that are kept, from a column of all rows."""
        self.column(place, self._rows)[self.first :] = column[self.first : self._rows]

    def column(self, place: Place, rows: int) -> npt.NDArray[Any]:
        """The first rows of a column, a view; those before `first` hold anything."""
        table: npt.NDArray[Any] = self.truths if place.table == TRUTH else self.numbers
        return table[place.index, :rows]

    def _table(self, columns: int, kind: Any) -> npt.NDArray[Any]:
        shape = columns, self._capacity
        if not self._grows:
            return np.empty(shape, dtype=kind)
        size = columns * self._capacity * np.dtype(kind).itemsize
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _UNCOUNTED)
        if sys.platform == "linux":
            pages.madvise(mmap.MADV_NOHUGEPAGE)  # one of 2 MB would bring rows that are not there yet
        self._pages[np.dtype(kind).char] = pages
        return np.frombuffer(pages, dtype=kind).reshape(shape)

    def _free(self, table: npt.NDArray[Any], first: int) -> None:
        """Give the whole pages of the rows before `first` back to the system."""
        step, cell = table.strides
        for begin in range(0, table.shape[0] * step, step):
            start, stop = -(-begin // _PAGE) * _PAGE, (begin + first * cell) // _PAGE * _PAGE
            if start < stop:
                self._pages[table.dtype.char].madvise(mmap.MADV_DONTNEED, start, stop - start)

    def _grown(self, written: npt.NDArray[Any], columns: int) -> npt.NDArray[Any]:
        grown = self._table(columns, written.dtype)
        kept = slice(self.first, self._rows)
        grown[: written.shape[0], kept] = written[:, kept]
        return grown


def _room(rows: int) -> int:
    return (rows + 63) // 64 * 64 + _LINE
