"""What `data fetch` has so far, in a file beside its target: a line a page, so that a crash costs one.

The first line says what was asked for; only the same request goes on with it. A line that was cut off is cut
away.

Bars into a file that `--data` reads: CSV, gzipped CSV or Parquet, complete or not there at all.
"""

import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import pandas as pd

from schemas.errors import ConfigError, DataError, FeedError
from services.feeds.raw_bar import RawBar
from services.model_calls.quoting import spreadsheet_text
from trading_core.live.growing_bars import Bar
from trading_core.spacing import show_label
from worker.feeds.ccxt.history import Page
from worker.feeds.files.tables import CSV_SUFFIXES, PARQUET_SUFFIXES

VERSION = 1


class PartialFile:
    """The pages of one request; as a context manager it says of an exchange that gives out what is kept."""

    def __init__(self, target: Path, request: Mapping[str, Any]) -> None:
        """Begin, or go on with what the same request left beside its target.

        Raises:
            ConfigError: the file belongs to another request.
            DataError: it cannot be read or written.
        """
        self.path = target.with_name(target.name + ".part")
        self.bars: dict[str, list[RawBar]] = {}  # of each symbol, in the order in which they came
        self.future: dict[str, list[int]] = {}  # of each symbol, labels beyond the present of their answer
        self.next_label: dict[str, int] = {}  # of each symbol, where its next page begins, ns
        self._header = {"thinktwice_fetch": VERSION, **request}
        try:
            whole = self._read()
            self._file = self.path.open("r+b" if whole else "w+b")
            self._file.truncate(whole)
            self._file.seek(whole)
            if not whole:
                self._append(self._header)
        except OSError as error:
            raise DataError(f"cannot use {str(self.path)!r}: {error.strerror or error}") from error
        self.resumed = sum(map(len, self.bars.values()))  # bars that an earlier run left

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._file.close()
        if isinstance(error, FeedError):
            raise FeedError(
                f"{error}; what came so far is kept in {str(self.path)!r}: run the same command again",
                retryable=error.retryable,
                **error.context,
            ) from None

    def add(self, symbol: str, page: Page) -> None:
        """Keep one page; it is on the disk when this returns.

        Raises:
            DataError: the disk does not take it.
        """
        rows = [[candle.label, *candle.bar] for candle in page.bars]
        future = [candle.label for candle in page.future]
        try:
            self._append({"symbol": symbol, "next": page.next_label, "bars": rows, "future": future})
        except OSError as error:
            raise DataError(
                f"cannot write {str(self.path)!r}: {error.strerror or error}; what is in it is kept"
            ) from error
        self._keep(symbol, page.next_label, page.bars, future)

    def remove(self) -> None:
        """It is not needed any more."""
        self._file.close()
        self.path.unlink(missing_ok=True)

    def _append(self, document: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(document, separators=(",", ":")).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _keep(self, symbol: str, next_label: int, bars: list[RawBar], future: list[int]) -> None:
        self.bars.setdefault(symbol, []).extend(bars)
        self.future.setdefault(symbol, []).extend(future)
        self.next_label[symbol] = next_label

    def _read(self) -> int:
        """Take over the whole lines; the number of bytes they have."""
        whole = 0
        if not self.path.exists():
            return whole
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines):
                document = _document(line)
                if document is None:
                    break
                if number == 0:
                    self._check(document)
                else:
                    symbol = document["symbol"]
                    rows = [RawBar(symbol, label, Bar(*values)) for label, *values in document["bars"]]
                    self._keep(symbol, document["next"], rows, document.get("future", []))
                whole += len(line)
        return whole

    def _check(self, header: Mapping[str, Any]) -> None:
        if header != self._header:
            raise ConfigError(
                f"{str(self.path)!r} holds what another request fetched ({_words(header)}): repeat that one, "
                "choose another --out, or delete the file"
            )


def _document(line: bytes) -> dict[str, Any] | None:
    """A whole line; None for one that was cut off."""
    if not line.endswith(b"\n"):
        return None
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _words(header: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in header.items() if name != "thinktwice_fetch")[:200]


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
    """Write bars by symbol and label (ns) in order of time; the file appears whole or not at all.

    Raises:
        DataError: the disk does not take it.
    """
    other, name = path.with_name(path.name + ".new"), path.name.lower()
    rows = sorted((label, symbol) for symbol, labels in bars.items() for label in labels)
    frame = pd.DataFrame(
        [(*row, *bars[row[1]][row[0]]) for row in rows], columns=["time", "symbol", *Bar._fields]
    )
    try:
        if name.endswith(PARQUET_SUFFIXES):
            frame["time"] = pd.to_datetime(frame["time"], utc=True)
            frame.astype({"volume": "float64"}).to_parquet(other, index=False)
        else:
            frame["time"] = frame["time"].map(show_label)
            frame["symbol"] = frame["symbol"].map(spreadsheet_text)
            data = frame.to_csv(index=False, lineterminator="\n").encode()
            other.write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)
        with other.open("rb") as file:
            os.fsync(file.fileno())
        other.replace(path)
    except OSError as error:
        other.unlink(missing_ok=True)
        raise DataError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
