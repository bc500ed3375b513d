"""Bars from the operator's own files: CSV or Parquet; long, single-symbol or wide; or a folder of such files.

Nothing is shifted, filled or dropped, and nothing is resampled unasked: a file is taken as it stands, or
refused with the value, its row and the next step. Called for `--data` and by the embedded sample; `BarSeries`
itself judges the prices.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pandas as pd

from schemas.errors import DataError
from schemas.timeframes import timeframe_problem
from services.text.given_files import MAX_BYTES
from trading_core.bars import BarSeries, infer_timeframe
from trading_core.resampling import resample
from trading_core.spacing import show_label
from worker.feeds.files.columns import FIELDS, Fields, Layout, bar_columns, recognise
from worker.feeds.files.tables import CSV_SUFFIXES, PARQUET_SUFFIXES, BarTable, read_table, symbol_of_name
from worker.feeds.files.times import utc_labels, zone_named
from worker.feeds.time_range import Moment, range_ns


@dataclass(frozen=True)
class SymbolRows:
    """The rows of one symbol in file order.

    Attributes:
        symbol: its name.
        table: the file the rows come from.
        rows: int (n,), their positions in that file.
        times: int64 (n,), UTC ns labels.
        values: float64 (n,) for each field and further column.
    """

    symbol: str
    table: BarTable
    rows: npt.NDArray[np.intp]
    times: npt.NDArray[np.int64]
    values: dict[str, npt.NDArray[np.float64]]

    def place(self, k: int) -> str:
        """Where the k-th row of this symbol stands."""
        return self.table.place(int(self.rows[k]))


def load_bar_file(
    path: str | Path,
    *,
    symbols: Sequence[str] | None = None,
    timeframe: str | None = None,
    tz: str | None = None,
    label: Literal["open", "close"] = "open",
    start: Moment | None = None,
    end: Moment | None = None,
    most: int = MAX_BYTES,
    zone: str = "UTC",
    longer: str | None = None,
    tell: Callable[[str], None] = lambda note: None,
) -> BarSeries:
    """The bars of a CSV or Parquet file, or of a folder of such files.

    Columns are recognised by name, in any case and order: time, symbol (long format), open, high, low, close,
    volume. Wide files have columns like `AAPL_open`; there an all-empty bar of one symbol is a missing bar.

    Args:
        path: the file or folder.
        symbols: keep these. A file without a symbol column takes its symbol from here if exactly one is
            given, else from its own name.
        timeframe: must match the usual spacing of the bars; None infers it.
        tz: zone of times that carry none; times with a zone and epoch integers ignore it.
        label: whether a time names the open or the close of its bar.
        start: first label kept, UTC, inclusive; a date means its first instant.
        end: last label kept, UTC, inclusive; a date means the whole day.
        most: bytes that the file may hold, or all files of the folder, unpacked.
        zone: whose calendar says how long days, weeks and months are.
        longer: timeframe of the bars that are made of those of the file; None: they are taken as they are.
        tell: takes what a trader should know of the longer bars.

    Raises:
        DataError: the file or the request cannot be used; it names the value, its place and the next step.
    """
    wanted = tuple(symbols or ())
    selection = Selection(wanted, timeframe, tz, label, start, end, zone, longer, tell)
    return bars_of_tables(_tables(Path(path), wanted, most), selection)


@dataclass(frozen=True)
class Selection:
    """How tables are read and which of their bars are kept; as in `load_bar_file`."""

    symbols: tuple[str, ...] = ()
    timeframe: str | None = None
    tz: str | None = None
    label: Literal["open", "close"] = "open"
    start: Moment | None = None
    end: Moment | None = None
    zone: str = "UTC"
    longer: str | None = None
    tell: Callable[[str], None] = lambda note: None


def bars_of_tables(tables: Iterable[tuple[BarTable, str]], selection: Selection) -> BarSeries:
    """The bars of tables, each with the name of its symbol where it has no column of symbols.

    Raises:
        DataError: as `load_bar_file`.
    """
    start_ns, end_ns = range_ns(selection.start, selection.end)
    zone = zone_named(selection.tz)
    check_timeframe_name(selection.timeframe)
    parts = [part for table, name in tables for part in _parts(table, name, zone)]
    series = _series(parts, selection)
    if selection.longer is not None:
        series = resample(series, selection.longer, selection.tell)
    return series.select(selection.symbols or None, start_ns, end_ns)


def _tables(path: Path, wanted: tuple[str, ...], most: int) -> Iterator[tuple[BarTable, str]]:
    if not path.is_dir():
        table = read_table(path, most=most, pick=bar_columns)
        yield table, wanted[0] if len(wanted) == 1 else symbol_of_name(path)
        return
    suffixes = CSV_SUFFIXES + PARQUET_SUFFIXES
    files = sorted(file for file in path.iterdir() if file.name.lower().endswith(suffixes) and file.is_file())
    if not files:
        raise DataError(
            f"folder {str(path)!r} holds no file ending in {', '.join(suffixes)}: one file a symbol is read"
        )
    left = most
    for file in files:
        try:
            table = read_table(file, most=left, pick=bar_columns)
        except DataError as error:
            if "most" not in error.context:
                raise
            raise DataError(
                f"folder {str(path)!r} up to its file {file.name!r} holds more than the {most:,} bytes that "
                "runtime.max_bytes allows a folder in all: raise it, or give fewer files"
            ) from error
        left -= sum(column.nbytes for column in table.columns)
        yield table, symbol_of_name(file)


def _parts(table: BarTable, name: str, zone: ZoneInfo | None) -> Iterator[SymbolRows]:
    layout = recognise(table.names, table.path.name)
    times = utc_labels(table.columns[layout.time], table.place, zone)
    if layout.single is None:
        yield from _wide_parts(table, layout.wide, times)
        return
    values = {field: table.numbers(column) for field, column in layout.single.items()}
    _check_finite(table, layout.single, values, np.ones(times.size, dtype=np.bool_))
    values |= {
        extra: numbers
        for extra, column in layout.extra.items()
        if (numbers := _numbers(table, column)) is not None
    }
    for symbol, rows in _rows_by_symbol(table, layout, name):
        yield SymbolRows(
            symbol, table, rows, times[rows], {field: each[rows] for field, each in values.items()}
        )


def _numbers(table: BarTable, column: int) -> npt.NDArray[np.float64] | None:
    """A further column; None where it holds something else than numbers."""
    try:
        return table.numbers(column)
    except DataError:
        return None


def _rows_by_symbol(table: BarTable, layout: Layout, name: str) -> Iterator[tuple[str, npt.NDArray[np.intp]]]:
    if layout.symbol is None:
        yield name, np.arange(len(table.columns[layout.time]))
        return
    symbols, codes = np.unique(table.texts(layout.symbol), return_inverse=True)
    order = np.argsort(codes, kind="stable")
    ends = np.cumsum(np.bincount(codes))
    for symbol, rows in zip(symbols, np.split(order, ends[:-1]), strict=True):
        yield str(symbol), rows


def _wide_parts(
    table: BarTable, wide: dict[str, Fields], times: npt.NDArray[np.int64]
) -> Iterator[SymbolRows]:
    anywhere = np.zeros(times.size, dtype=np.bool_)
    for symbol, fields in sorted(wide.items()):
        values = {field: table.numbers(column) for field, column in fields.items()}
        there = ~np.all([np.isnan(array) for array in values.values()], axis=0)
        anywhere |= there
        _check_finite(table, fields, values, there)
        rows = np.flatnonzero(there)
        if rows.size:
            yield SymbolRows(
                symbol, table, rows, times[rows], {field: values[field][rows] for field in FIELDS}
            )
    if not anywhere.all():
        row = int(np.flatnonzero(~anywhere)[0])
        raise DataError(f"{table.place(row)}: no symbol has a bar here: remove the row")


def _check_finite(
    table: BarTable, fields: Fields, values: dict[str, npt.NDArray[np.float64]], there: npt.NDArray[np.bool_]
) -> None:
    for field, array in values.items():
        bad = np.flatnonzero(there & ~np.isfinite(array))
        if bad.size:
            row = int(bad[0])
            problem = "is empty or NaN" if np.isnan(array[row]) else "is infinite"
            raise DataError(
                f"{table.place(row)}: {table.names[fields[field]]!r} {problem}: "
                "correct it, or remove the whole row (a missing bar is an absent row)"
            )


def _series(parts: list[SymbolRows], selection: Selection) -> BarSeries:
    by_symbol: dict[str, SymbolRows] = {}
    for part in parts:
        if part.symbol in by_symbol:
            files = f"{by_symbol[part.symbol].table.path.name} and {part.table.path.name}"
            raise DataError(f"symbol {part.symbol!r} stands in both {files}: keep it in one of them")
        _check_order(part)
        by_symbol[part.symbol] = part
    _check_spacing(by_symbol, selection.timeframe)
    frames = {symbol: _frame(part) for symbol, part in by_symbol.items()}
    try:
        return BarSeries.from_frame(
            frames, timeframe=selection.timeframe, label=selection.label, zone=selection.zone
        )
    except DataError as error:
        raise _add_place(error, by_symbol) from error


def _frame(part: SymbolRows) -> pd.DataFrame:
    return pd.DataFrame(part.values, index=pd.DatetimeIndex(part.times.astype("datetime64[ns]"), tz="UTC"))


def _add_place(error: DataError, parts: dict[str, SymbolRows]) -> DataError:
    """The same error with the places of the bars that the engine's door refused."""
    part = parts.get(str(error.context.get("symbol")))
    labels = [error.context[name] for name in ("before", "label") if name in error.context]
    if part is None or not labels:
        return error
    places = " and ".join(map(part.place, np.searchsorted(part.times, labels).tolist()))
    return DataError(f"{places}: {error}", **error.context)


def _check_order(part: SymbolRows) -> None:
    steps = np.flatnonzero(np.diff(part.times) <= 0)
    if steps.size == 0:
        return
    k = int(steps[0]) + 1
    shown = show_label(int(part.times[k]))
    word = "repeats" if part.times[k] == part.times[k - 1] else "comes before"
    cure = "remove one of the two rows" if word == "repeats" else "sort the file by time"
    raise DataError(f"{part.place(k)}: {part.symbol} time {shown} {word} that of {part.place(k - 1)}: {cure}")


def check_timeframe_name(timeframe: str | None) -> None:
    """Refuse a name that no timeframe has.

    Raises:
        DataError: it is none.
    """
    if timeframe is not None and (problem := timeframe_problem(timeframe)) is not None:
        raise DataError(f"--timeframe {problem}")


def _check_spacing(parts: dict[str, SymbolRows], timeframe: str | None) -> None:
    labels = {symbol: part.times for symbol, part in parts.items()}
    if timeframe is None or all(times.size < 2 for times in labels.values()):
        return
    found = infer_timeframe(labels)
    if found != timeframe:
        raise DataError(
            f"--timeframe {timeframe} does not match the bars, whose usual spacing is {found}: "
            f"leave the option out, or make such bars with --resample {timeframe}"
        )
