"""Bars into a file that `--data` reads: CSV, gzipped CSV or Parquet, complete or not there at all."""

import gzip
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet as pa_parquet

from schemas.errors import ConfigError, DataError
from services.model_calls.quoting import spreadsheet_text
from trading_core.live.growing_bars import Bar
from worker.feeds.files.tables import CSV_SUFFIXES, PARQUET_SUFFIXES
from worker.feeds.history.fetch_check import shown

COLUMNS = ("time", "symbol", *Bar._fields)


def check_target(path: Path, *, replace: bool) -> None:
    """Refuse a file that cannot be written, before anything is fetched.

    Raises:
        ConfigError: another suffix, no such folder, or a file that is there already.
    """
    suffixes = CSV_SUFFIXES + PARQUET_SUFFIXES
    if not path.name.lower().endswith(suffixes):
        raise ConfigError(f"--out {str(path)!r} must end in one of {', '.join(suffixes)}")
    if not path.parent.is_dir():
        raise ConfigError(f"--out {str(path)!r}: there is no folder {str(path.parent)!r}; make it first")
    if path.exists() and not replace:
        raise ConfigError(f"--out {str(path)!r} is there already: name another file, or add --replace")


def write_bars(path: Path, bars: Mapping[str, Mapping[int, Bar]]) -> None:
    """Write bars ordered by time, then symbol; the file appears whole or not at all.

    Args:
        path: its suffix names the format.
        bars: by symbol and label (ns).

    Raises:
        DataError: the disk does not take it.
    """
    beside = path.with_name(path.name + ".new")
    rows = sorted((label, symbol) for symbol, labels in bars.items() for label in labels)
    try:
        if path.name.lower().endswith(PARQUET_SUFFIXES):
            _write_parquet(beside, rows, bars)
        else:
            _write_csv(beside, rows, bars, packed=path.name.lower().endswith(".gz"))
        _settle(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise DataError(f"cannot write {str(path)!r}: {error.strerror or error}") from error


def _write_csv(
    path: Path, rows: list[tuple[int, str]], bars: Mapping[str, Mapping[int, Bar]], *, packed: bool
) -> None:
    def lines() -> Iterator[str]:
        yield ",".join(COLUMNS) + "\n"
        for label, symbol in rows:
            yield ",".join([shown(label), spreadsheet_text(symbol), *map(repr, bars[symbol][label])]) + "\n"

    with path.open("wb") as raw:
        if packed:
            with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
                file.writelines(line.encode() for line in lines())
        else:
            raw.writelines(line.encode() for line in lines())


def _write_parquet(path: Path, rows: list[tuple[int, str]], bars: Mapping[str, Mapping[int, Bar]]) -> None:
    columns = {
        "time": pa.array([label for label, _ in rows], pa.timestamp("ns", tz="UTC")),
        "symbol": pa.array([symbol for _, symbol in rows], pa.string()),
    }
    for position, name in enumerate(Bar._fields):
        values = [bars[symbol][label][position] for label, symbol in rows]
        columns[name] = pa.array(values, pa.float64())
    pa_parquet.write_table(pa.table(columns), path)


def _settle(beside: Path, path: Path) -> None:
    with beside.open("rb") as file:
        os.fsync(file.fileno())
    beside.replace(path)
