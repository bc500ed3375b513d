"""What `data fetch` has so far, in a file beside its target: a line a page, so that a crash costs one.

The first line says what was asked for; only the same request goes on with it. A line that was cut off is cut
away.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from schemas.errors import ConfigError, DataError
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.exchange import Candle
from worker.feeds.ccxt.history import Page

VERSION = 1


class PartialFile:
    """The pages of one request; use as a context manager.

    Attributes:
        path: the file.
        bars: of each symbol, in the order in which they came.
        future: of each symbol, labels beyond the present of their answer.
        next_label: of each symbol, where its next page begins, ns.
        resumed: bars that an earlier run left.
    """

    def __init__(self, target: Path, request: Mapping[str, Any]) -> None:
        """Begin, or go on with what the same request left.

        Args:
            target: the file that is to be.
            request: plain data that tells this request from others.

        Raises:
            ConfigError: the file belongs to another request.
            DataError: it cannot be read or written.
        """
        self.path = target.with_name(target.name + ".part")
        self.bars: dict[str, list[Candle]] = {}
        self.future: dict[str, list[int]] = {}
        self.next_label: dict[str, int] = {}
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
        self.resumed = sum(map(len, self.bars.values()))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def add(self, symbol: str, page: Page) -> None:
        """Keep one page; it is on the disk when this returns.

        Raises:
            DataError: the disk does not take it.
        """
        rows = [[one.label, *one.bar] for one in page.bars]
        future = [one.label for one in page.future]
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

    def _keep(self, symbol: str, next_label: int, bars: list[Candle], future: list[int]) -> None:
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
                    rows = [Candle(label, Bar(*values)) for label, *values in document["bars"]]
                    self._keep(document["symbol"], document["next"], rows, document.get("future", []))
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
