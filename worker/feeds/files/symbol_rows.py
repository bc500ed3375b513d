"""Rows of a table by symbol: times in UTC and numbers, in order of time, with notes on how they were read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from schemas.errors import DataError
from worker.feeds.files.bar_table import BarTable
from worker.feeds.files.columns import FIELDS, PRICES, Fields, Layout, recognise
from worker.feeds.files.dates import read_times
from worker.feeds.files.decimals import Decimal, plain_table
from worker.feeds.files.names import FINISHED
from worker.feeds.files.times import utc_labels, zone_named
from worker.feeds.time_range import Moment

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
RowArray = npt.NDArray[np.intp]
Values = dict[str, FloatArray]


@dataclass(frozen=True)
class Selection:
    """How tables are read and which of their bars are kept."""

    symbols: tuple[str, ...] = ()  # keep these; none: all
    timeframe: str | None = None  # must match the usual spacing of the bars; None infers it
    tz: str | None = None  # zone of times that carry none; times with a zone and epoch integers ignore it
    label: Literal["open", "close"] = "open"  # of its bar a time names
    start: Moment | None = None  # first label kept, UTC, inclusive; a date means its first instant
    end: Moment | None = None  # last label kept, UTC, inclusive; a date means the whole day
    zone: str = "UTC"  # whose calendar says how long days, weeks and months are
    longer: str | None = None  # timeframe of bars that are made of these; None: they are taken as they are
    adjusted: bool = False  # multiply the four prices by adjusted close / close
    date_format: str | None = None  # how times are written, as `strptime` has it; None: as they look
    decimal: Decimal | None = None  # what marks decimals; None: what most of the prices say
    columns: str | None = None  # which is what, as `time=Fecha,open=Apertura`; None: as their names say
    tell: Callable[[str], None] = lambda note: None  # takes what a trader should know of how they were read


ALL = Selection()


@dataclass(frozen=True)
class SymbolRows:
    """The rows of one symbol in order of time, or as the file has them where that is neither order."""

    symbol: str
    table: BarTable  # the file the rows come from
    rows: RowArray  # int (n,), their positions in that file
    times: IntArray  # int64 (n,), UTC ns labels
    values: Values  # float64 (n,) for each field and further column
    # int64 (m,), labels of rows that stood twice and were left out
    repeated: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def place(self, k: int) -> str:
        """Where the k-th row of this symbol stands."""
        return self.table.place(int(self.rows[k]))


def rows_of(table: BarTable, name: str, selection: Selection) -> Iterator[SymbolRows]:
    """The rows of each symbol of a table; `name` is that of the symbol where no column has it.

    Raises:
        DataError: as `load_bar_file`.
    """
    layout, tell = recognise(table.names, table.path.name), selection.tell
    for note in table.notes:
        tell(note)
    column, zone = read_times(table, layout, zone_named(selection.tz), selection.date_format, tell)
    times = utc_labels(column, table.place, zone)
    prices = [place for fields in layout.groups for field, place in fields.items() if field != "volume"]
    volumes = [fields["volume"] for fields in layout.groups if "volume" in fields]
    table = plain_table(table, prices, volumes, selection.decimal, tell)
    if selection.adjusted and not all("adjusted" in fields for fields in layout.groups):
        raise DataError(f"{table.path.name} has no column of adjusted closes: leave out data.adjusted")
    if layout.single is None:
        yield from _wide_rows(table, layout.wide, times, selection)
        return
    of_symbol = dict(_rows_by_symbol(table, layout, name))
    there = np.ones(times.size, dtype=np.bool_)
    values = _field_values(table, layout.single)
    empty = np.all([np.isnan(values[field]) for field in PRICES], axis=0)
    for rows in of_symbol.values():
        _leave_out_last(rows, times, empty, there, tell)
    further = _further_values(table, layout, tell)
    for mark in (name for name in FINISHED if name in further):
        for rows in of_symbol.values():
            _leave_out_last(rows, times, further[mark] == 0.0, there, tell, f"is marked {mark} = 0")
    _check_finite(table, layout.single, values, there)
    _adjust(table, layout.single, values, there, selection)
    values |= further
    for symbol, rows in of_symbol.items():
        yield _in_order(SymbolRows(symbol, table, rows[there[rows]], times, values), tell)


def _in_order(part: SymbolRows, tell: Callable[[str], None]) -> SymbolRows:
    """The rows that a part names, the oldest first, without those that repeat the one before."""
    rows = part.rows
    steps = np.diff(part.times[rows])
    if (steps < 0).any() and (steps <= 0).all():
        tell("rows are sorted by time: the file has the newest first")
        rows = rows[::-1]
    same = np.diff(part.times[rows], prepend=-1) == 0
    if same.any():
        for each in part.values.values():
            here, before = each[rows], np.roll(each[rows], 1)
            same &= (here == before) | (np.isnan(here) & np.isnan(before))
    kept = rows[~same]
    values = {field: each[kept] for field, each in part.values.items()}
    return SymbolRows(part.symbol, part.table, kept, part.times[kept], values, part.times[rows[same]])


def _leave_out_last(
    rows: RowArray,
    times: IntArray,
    unfinished: npt.NDArray[np.bool_],
    there: npt.NDArray[np.bool_],
    tell: Callable[[str], None],
    sign: str = "has no prices",
) -> None:
    """Take the newest of some rows out of `there` where it is among the unfinished."""
    if rows.size > 1 and unfinished[last := rows[-1] if times[rows[-1]] >= times[rows[0]] else rows[0]]:
        there[last] = False
        tell(f"the newest row {sign}: its bar is not finished, and is left out")


def _field_values(table: BarTable, fields: Fields) -> Values:
    """The numbers of the fields of bars; a volume is NaN where there is none."""
    values = {field: table.numbers(column) for field, column in fields.items()}
    values.setdefault("volume", np.full_like(values["close"], np.nan))
    return values


def _adjust(
    table: BarTable, fields: Fields, values: Values, there: npt.NDArray[np.bool_], selection: Selection
) -> None:
    """Multiply prices by adjusted close / close where it is asked for; say what was done if they differ."""
    adjusted = values.pop("adjusted", values["close"])
    if np.allclose(adjusted[there], values["close"][there], rtol=1e-6):
        return
    if not selection.adjusted:
        selection.tell(
            "prices are not adjusted for splits and dividends: the file has adjusted closes that differ; "
            "data.adjusted = true adjusts all four"
        )
        return
    _check_finite(table, {"close": fields["adjusted"]}, {"close": adjusted}, there)
    selection.tell("all four prices are adjusted by adjusted close / close; data.adjusted = false does not")
    factor = adjusted / values["close"]
    values |= {field: values[field] * factor for field in PRICES}


def _further_values(table: BarTable, layout: Layout, tell: Callable[[str], None]) -> Values:
    """Further columns of numbers; in a file, those that nothing reads are named."""
    found = {}
    for name, column in layout.extra.items():
        try:
            found[name] = table.numbers(column)
        except DataError:
            continue
    if table.first_row:
        left = [table.names[column] for name, column in layout.extra.items() if name not in found]
        words = [f"{', '.join(map(repr, [*table.left, *left]))} not read"] if table.left or left else []
        words += [f"rules read {', '.join(f'x.{name}' for name in found)}"] if found else []
        if words:
            tell(f"of further columns: {'; '.join(words)}")
    return found


def _rows_by_symbol(table: BarTable, layout: Layout, name: str) -> Iterator[tuple[str, RowArray]]:
    if layout.symbol is None:
        yield name, np.arange(len(table.columns[layout.time]))
        return
    symbols, codes = np.unique(table.texts(layout.symbol), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    for symbol, rows in zip(symbols, np.split(order, ends[:-1]), strict=True):
        yield str(symbol), rows


def _wide_rows(
    table: BarTable, wide: dict[str, Fields], times: IntArray, selection: Selection
) -> Iterator[SymbolRows]:
    tell = selection.tell
    of_symbol = {symbol: _field_values(table, fields) for symbol, fields in sorted(wide.items())}
    empty = np.all([np.isnan(each[field]) for each in of_symbol.values() for field in PRICES], axis=0)
    kept = np.ones(times.size, dtype=np.bool_)
    _leave_out_last(np.arange(times.size), times, empty, kept, tell)
    anywhere = ~kept
    for symbol, values in of_symbol.items():
        own = wide[symbol]
        there = kept & ~np.all([np.isnan(values[field]) for field in own], axis=0)
        anywhere |= there
        _check_finite(table, own, values, there)
        _adjust(table, own, values, there, selection)
        rows = np.flatnonzero(there)
        if rows.size:
            yield _in_order(SymbolRows(symbol, table, rows, times, values), tell)
    if not anywhere.all():
        row = int(np.flatnonzero(~anywhere)[0])
        raise DataError(f"{table.place(row)}: no symbol has a bar here: remove the row")


def _check_finite(table: BarTable, fields: Fields, values: Values, there: npt.NDArray[np.bool_]) -> None:
    for name in (name for name in FIELDS if name in fields):
        column, array = fields[name], values[name]
        bad = np.flatnonzero(there & (np.isinf(array) if name == "volume" else ~np.isfinite(array)))
        if bad.size:
            row = int(bad[0])
            problem = "is empty or NaN" if np.isnan(array[row]) else "is infinite"
            raise DataError(
                f"{table.place(row)}: {table.names[column]!r} {problem}: "
                "correct it, or remove the whole row (a missing bar is an absent row)"
            )
