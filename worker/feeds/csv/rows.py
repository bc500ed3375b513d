"""CsvRows: bytes of a growing CSV file become bars; an unreadable line becomes a complaint with its number.

Columns are recognised as in any bar file. A line counts when its end has come, because half a number is a
number too. Pure: bytes in, bars out.
"""

import csv
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from zoneinfo import ZoneInfo

import pyarrow as pa

from schemas.errors import DataError
from services.feeds.raw_bar import RawBar
from services.model_calls.quoting import from_spreadsheet_text
from trading_core.live.growing_bars import Bar, bar_of
from worker.feeds.files.bar_table import EMPTY_WORDS
from worker.feeds.files.columns import FIELDS, Fields, Layout, recognise
from worker.feeds.files.tables import csv_header
from worker.feeds.files.times import utc_labels

LONGEST_LINE = 65_536
_LONGEST_REASON = 200


class Unreadable(NamedTuple):
    """A line that is no row."""

    line: int  # its number in the file, from 1
    reason: str


class _Row(NamedTuple):
    line: int
    cells: list[str]


class CsvRows:
    """The rows of one file, from its first byte on."""

    def __init__(self, path: Path, symbol: str, zone: ZoneInfo | None) -> None:
        """Nothing is read yet; `symbol` is that of a file without a column of them."""
        self._path = path
        self._symbol = symbol
        self._zone = zone
        self._rest = b""
        self._overlong = False
        self._line = 0
        self._layout: Layout | None = None
        self._separator = ","
        self._width = 0

    @property
    def reached(self) -> int:
        """The number of the line whose end has not come yet."""
        return self._line + 1

    @property
    def layout(self) -> Layout | None:
        """What the columns are; None before the header has come."""
        return self._layout

    def read(self, data: bytes) -> list[RawBar | Unreadable]:
        """Bars of the lines that these bytes end, in file order.

        Raises:
            DataError: the header names no usable columns.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        found: list[RawBar | Unreadable] = []
        rows: list[_Row] = []
        for line in lines:
            self._line += 1
            row = self._row(line)
            if isinstance(row, Unreadable):
                found.append(row)
            elif row is not None:
                rows.append(row)
        if len(self._rest) > LONGEST_LINE:
            self._rest, self._overlong = b"", True
            self._check_header()
        return found + list(self._bars(rows))

    def end(self) -> list[Unreadable]:
        """The file ends here: half a line is none."""
        half = bool(self._rest.strip()) or self._overlong
        return [Unreadable(self.reached, "the line was never finished")] if half else []

    def _row(self, data: bytes) -> _Row | Unreadable | None:
        """The cells of a line; None for the header and for a blank line."""
        overlong, self._overlong = self._overlong or len(data) > LONGEST_LINE, False
        if overlong:
            self._check_header()
            return Unreadable(self._line, f"the line is longer than {LONGEST_LINE} bytes")
        if self._layout is None:
            names, self._separator = csv_header(self._path, data)
            layout = recognise(names, self._path.name)
            if layout.clock is not None:
                raise DataError(
                    f"{self._path.name} has its times in two columns: the feed csv reads "
                    "one, --feed replay both"
                )
            self._layout, self._width = layout, len(names)
            return None
        if not data.strip():
            return None
        try:
            cells = next(csv.reader([data.decode().rstrip("\r")], delimiter=self._separator, strict=True), [])
        except (UnicodeDecodeError, csv.Error) as error:
            return Unreadable(self._line, f"no CSV text: {error}"[:_LONGEST_REASON])
        if len(cells) != self._width:
            return Unreadable(self._line, f"{len(cells)} cells, where the header has {self._width}")
        return _Row(self._line, cells)

    def _check_header(self) -> None:
        if self._layout is None:
            raise DataError(
                f"{self._path.name} line 1 is longer than {LONGEST_LINE} bytes: the first line must name the "
                "columns, and lines must end with a line feed"
            )

    def _bars(self, rows: Sequence[_Row]) -> Iterator[RawBar | Unreadable]:
        if self._layout is None:
            return
        labels = self._labels(rows, self._layout.time)
        for row, label in zip(rows, labels, strict=True):
            if isinstance(label, str):
                yield Unreadable(row.line, label[:_LONGEST_REASON])
                continue
            try:
                extra = {name: _number_or_none(row.cells[at]) for name, at in self._layout.extra.items()}
                values = self._values(row.cells, self._layout)
                yield from [RawBar(name, label, bar, extra) for name, bar in values]
            except ValueError as error:
                yield Unreadable(row.line, str(error)[:_LONGEST_REASON])

    def _labels(self, rows: Sequence[_Row], column: int) -> list[int | str]:
        """UTC ns of each row, or why it has none; one bad time does not spoil the others."""
        if not rows:
            return []
        texts = pa.array([row.cells[column] for row in rows], pa.string())
        try:
            return list(utc_labels(texts, lambda k: f"line {rows[k].line}", self._zone).tolist())
        except DataError as error:
            if len(rows) == 1:
                return [str(error)]
        middle = len(rows) // 2
        return self._labels(rows[:middle], column) + self._labels(rows[middle:], column)

    def _values(self, cells: list[str], layout: Layout) -> list[tuple[str, Bar]]:
        if layout.single is not None:
            column = layout.symbol
            symbol = self._symbol if column is None else from_spreadsheet_text(cells[column].strip())
            if not symbol:
                raise ValueError("the symbol is empty")
            return [(symbol, _bar(cells, layout.single))]
        bars = {symbol: _bar(cells, fields) for symbol, fields in layout.wide.items()}
        return [
            (symbol, bar)
            for symbol, bar in bars.items()
            if bar.volume is not None or not all(map(math.isnan, bar[:-1]))
        ]


def _bar(cells: list[str], fields: Fields) -> Bar:
    numbers = (_number(cells[fields[field]], field) if field in fields else math.nan for field in FIELDS)
    return bar_of(*numbers)


def _number_or_none(cell: str) -> float | None:
    try:
        number = _number(cell, "")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _number(cell: str, field: str) -> float:
    text = cell.strip()
    if text.lower() in EMPTY_WORDS:
        return math.nan
    if text.isascii() and "_" not in text:
        try:
            return float(text)
        except ValueError:
            pass
    raise ValueError(f"{field} is {text[:32]!r}, not a number")
