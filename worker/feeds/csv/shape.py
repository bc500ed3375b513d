"""What a growing CSV file holds: settled once, from its header and first bars, before anybody follows it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from schemas.errors import DataError, nearest
from services.feeds.raw_bar import RawBar
from services.text.given_files import open_given
from trading_core.bars import infer_timeframe
from worker.feeds.csv.rows import CsvRows
from worker.feeds.csv.tail import CsvShape
from worker.feeds.files.columns import Layout
from worker.feeds.files.files import check_timeframe_name
from worker.feeds.files.tables import PARQUET_SUFFIXES, symbol_of_name
from worker.feeds.files.times import zone_named

_BEGINNING = 1_048_576  # bytes in which symbols and spacing are looked for


def settled_shape(
    path: str | Path,
    *,
    symbols: Sequence[str] = (),
    timeframe: str | None = None,
    tz: str | None = None,
    label: Literal["open", "close"] = "open",
) -> CsvShape:
    """The shape of a file that will grow: a header, to which bars may follow later.

    Without `symbols` they are those of the file's beginning, and so is the spacing without a `timeframe`.

    Raises:
        DataError: the file or the request cannot be used.
    """
    path, zone = Path(path), zone_named(tz)
    wanted = tuple(sorted(set(symbols)))
    name = wanted[0] if len(wanted) == 1 else symbol_of_name(path)
    rows = CsvRows(path, name, zone)
    found = rows.read(_beginning(path))
    bars = [bar for bar in found if isinstance(bar, RawBar)]
    if rows.layout is None:
        raise DataError(f"{path.name} has no header yet: its first line must name the columns")
    there = _symbols(path, rows.layout, bars, wanted)
    spacing = _timeframe(path, timeframe, [bar for bar in bars if bar.symbol in there])
    return CsvShape(path, there, spacing, label, zone, name, read_off=not wanted)


def _beginning(path: Path) -> bytes:
    if path.name.lower().endswith((*PARQUET_SUFFIXES, ".gz")) or path.is_dir():
        raise DataError(f"{path.name} cannot be followed: the feed csv reads one plain CSV file that grows")
    try:
        with open_given(path, sys.maxsize) as file:
            return file.read(_BEGINNING)
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"no such file: {str(path)!r}; give a CSV file with its header") from error
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {str(path)!r}: {error}") from error


def _symbols(path: Path, layout: Layout, bars: Sequence[RawBar], wanted: tuple[str, ...]) -> tuple[str, ...]:
    if layout.single is not None and layout.symbol is None and len(wanted) > 1:
        raise DataError(
            f"{path.name} has no symbol column, but {len(wanted)} symbols are asked for: name one"
        )
    for name in wanted:
        if layout.wide and name not in layout.wide:
            raise DataError(
                f"unknown symbol {name!r}: {path.name} has {', '.join(sorted(layout.wide))}."
                f"{nearest(name, layout.wide)}"
            )
    found = wanted or tuple(sorted(layout.wide or {bar.symbol for bar in bars}))
    if not found and layout.symbol is None:
        found = (symbol_of_name(path),)
    if not found:
        raise DataError(f"{path.name} has no bars yet: name its symbols with --symbols")
    return found


def _timeframe(path: Path, given: str | None, bars: Sequence[RawBar]) -> str:
    labels = {
        symbol: np.array(sorted({bar.label for bar in bars if bar.symbol == symbol}), dtype=np.int64)
        for symbol in {bar.symbol for bar in bars}
    }
    check_timeframe_name(given)
    if all(times.size < 2 for times in labels.values()):
        if given is None:
            raise DataError(f"{path.name} has no two bars yet to be spaced: give --timeframe, for example 1m")
        return given
    usual = infer_timeframe(labels)
    if given not in (None, usual):
        raise DataError(f"--timeframe {given} does not match {path.name}, whose usual spacing is {usual}")
    return usual
