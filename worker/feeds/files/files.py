"""Bars from the operator's own files: CSV, Parquet, Feather or JSON, or a folder of such files.

Nothing is shifted or filled, and nothing is resampled unasked: a file is taken as it stands, with a note
where a reader might not expect how, or refused with the value, its row and the next step. Called for `--data`
and by the embedded sample; `BarSeries` itself judges the prices.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from schemas.errors import DataError
from schemas.timeframes import timeframe_problem
from services.model_calls.quoting import count_noun, visible
from services.text.given_files import MAX_BYTES
from trading_core.bars import BarSeries, infer_timeframe
from trading_core.resampling import resample
from trading_core.spacing import DAY_NS, NS, show_label
from worker.feeds.files.bar_table import BarTable
from worker.feeds.files.columns import bar_columns
from worker.feeds.files.symbol_rows import ALL, Selection, SymbolRows, rows_of
from worker.feeds.files.tables import CSV_SUFFIXES, PARQUET_SUFFIXES, read_table, symbol_of_name
from worker.feeds.files.times import zone_named
from worker.feeds.time_range import range_ns

MOST_NAMED = 3  # symbols in a note


def load_bar_file(path: str | Path, selection: Selection = ALL, most: int = MAX_BYTES) -> BarSeries:
    """The bars of a CSV, Parquet, Feather or JSON file, or of a folder of CSV and Parquet files.

    Columns are recognised by name, in any case and order: time, symbol (long format), open, high, low, close,
    volume; those of other programs and languages by `names.FURTHER`. Wide files have columns like
    `AAPL_open`; there an all-empty bar of one symbol is a missing bar. A file without a symbol column takes
    its symbol from the selection if exactly one is given, else from its own name.

    Unpacked, the file may hold `most` bytes, or all files of the folder.

    Raises:
        DataError: the file or the request cannot be used; it names the value, its place and the next step.
    """
    return bars_of_tables(_tables(Path(path), selection, most), selection)


def bars_of_tables(tables: Iterable[tuple[BarTable, str]], selection: Selection) -> BarSeries:
    """The bars of tables, each with the name of its symbol where it has no column of symbols.

    Raises:
        DataError: as `load_bar_file`.
    """
    start_ns, end_ns = range_ns(selection.start, selection.end)
    zone_named(selection.tz)
    check_timeframe_name(selection.timeframe)
    notes: list[str] = []
    parts = [
        part for table, name in tables for part in rows_of(table, name, replace(selection, tell=notes.append))
    ]
    series = _series(parts, selection)
    if selection.longer is not None:
        series = resample(series, selection.longer, notes.append)
    series = series.select(selection.symbols or None, start_ns, end_ns)
    repeated = tuple((part.symbol, label) for part in parts for label in part.repeated.tolist())
    found = tuple(dict.fromkeys([*notes, *_remarks(series)]))
    for note in found:
        selection.tell(note)
    return replace(series, notes=found, repeated=repeated) if found or repeated else series


def _remarks(series: BarSeries) -> Iterator[str]:
    """Notes on labels that look like ends of bars, symbols without a volume and those that lack some."""
    step = min(series.bar_ns, DAY_NS)
    if series.label == "open" and (step - series.times % step <= NS).all():
        yield "times lie at the end of their bars: --label close, or --columns time=NAME of their begin"
    bars = series.present.sum(axis=0)
    counts = (series.present & np.isnan(series.volume)).sum(axis=0)
    names = [visible(symbol) for symbol in series.symbols]
    without = [names[s] for s in np.flatnonzero(counts == bars)]
    if without:
        more = f" and {len(without) - MOST_NAMED} more" if len(without) > MOST_NAMED else ""
        named = f"{', '.join(without[:MOST_NAMED])}{more}"
        yield f"no volume of {named}: it is unknown, and rules that read it are never true"
    for s in np.flatnonzero((counts > 0) & (counts < bars)):
        share = f"{counts[s]:,} of {count_noun(int(bars[s]), 'bar')}"
        yield f"no volume at {share} of {names[s]}: rules that read it are not true there"


def _tables(path: Path, selection: Selection, most: int) -> Iterator[tuple[BarTable, str]]:
    wanted, columns = selection.symbols, selection.columns
    if not path.is_dir():
        table = read_table(path, most=most, pick=bar_columns, columns=columns)
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
            table = read_table(file, most=left, pick=bar_columns, columns=columns)
        except DataError as error:
            if "most" not in error.context:
                raise
            raise DataError(
                f"folder {str(path)!r} up to its file {file.name!r} holds more than the {most:,} bytes that "
                "runtime.max_bytes allows a folder in all: raise it, or give fewer files"
            ) from error
        left -= sum(column.nbytes for column in table.columns)
        yield table, symbol_of_name(file)


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
