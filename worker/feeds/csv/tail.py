"""CsvTailFeed: follows a growing CSV file, one look after the other, and makes rows of the bars in it.

What stands in the file when the run begins is history; what is appended is traded. A file that is rotated,
truncated or rewritten is read from its first byte again, without repeating what was handed over. A line that
cannot be read is told with its number and passed over.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from schemas.errors import DataError, FeedError
from schemas.settings.live import FeedSettings
from services.feeds.assembler import Item, RowAssembler
from services.feeds.clock_watch import ClockWatch, SourceTime
from services.feeds.label_grid import NS, LabelGrid
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind
from services.feeds.raw_bar import RawBar
from worker.feeds.csv.file import GrowingFile, Piece
from worker.feeds.csv.rows import CsvRows, Unreadable

MOST_UNREADABLE = 100  # lines of one file that are told one by one
_PAGE = 100_000  # bars after which rows are made before the end of a file is reached


@dataclass(frozen=True)
class CsvShape:
    """What a file holds, settled when it is opened.

    Attributes:
        path: the file.
        symbols: sorted; others in the file are told and passed over.
        timeframe: of the bars.
        label: what a time names.
        zone: given to times that carry none.
        name: symbol of a file without a symbol column.
        read_off: nobody named the symbols, they are those at the file's beginning.
    """

    path: Path
    symbols: tuple[str, ...]
    timeframe: str
    label: Literal["open", "close"]
    zone: ZoneInfo | None
    name: str
    read_off: bool = False


class CsvTailFeed:
    """The rows of one growing file."""

    lock_step = False

    def __init__(
        self,
        shape: CsvShape,
        settings: FeedSettings,
        *,
        name: str = "csv",
        wall: Callable[[], int] = time.time_ns,
        steady: Callable[[], int] = time.monotonic_ns,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Nothing is read yet.

        Args:
            shape: of the file.
            settings: waiting and blocking.
            name: of the feed.
            wall: our wall clock, ns.
            steady: our clock that only moves forward, ns.
            sleep: waits for so many seconds.
        """
        self.name, self.symbols = name, shape.symbols
        self.timeframe, self.label = shape.timeframe, shape.label
        self._shape, self._settings = shape, settings
        self._sleep = sleep
        self._grid = LabelGrid(shape.timeframe, shape.label, bool(settings.continuous))
        self._clock = ClockWatch(settings.clock_jump_s, wall, steady)
        self._file = GrowingFile(shape.path)
        self._assembler: RowAssembler | None = None
        self._closed = False
        self._is_lost = False
        self._gone_since: int | None = None
        self._floor: int | None = None  # labels up to it were handed over before the file began anew
        self._begin_file()

    @property
    def symbols_found(self) -> tuple[str, ...] | None:
        """Those that the file had when it was opened; None where somebody named them."""
        return self._shape.symbols if self._shape.read_off else None

    def follow(self, symbols: tuple[str, ...]) -> None:
        """Make rows of these symbols, before the first is made: a run that goes on keeps its own."""
        self.symbols = tuple(sorted(symbols))

    async def items(self, after: int | None) -> AsyncIterator[BarRow | FeedAnomaly]:
        """Rows of bars that are over, and anomalies; ends when the feed is closed.

        Args:
            after: label of the last row that was taken. Without it, the last `history_bars` rows of the file
                come first, as history; with it, all rows after it, too old ones without entries.

        Raises:
            FeedError: the file stays away, or is another kind of file now.
        """
        try:
            async for item in self._follow(after):
                yield item
        finally:
            self._file.close()

    def last_labels(self) -> dict[str, int]:
        """The label of each symbol's last bar that was handed over."""
        return {} if self._assembler is None else self._assembler.last_labels()

    async def close(self) -> None:
        """Let go of the file; a running `items` ends at its next look."""
        self._closed = True
        self._file.close()

    async def _follow(self, after: int | None) -> AsyncIterator[Item]:
        self._clock.observe()
        start = self._clock.now()
        assembler = RowAssembler(self.symbols, self._grid, self._settings, start=start, after=after)
        self._assembler = assembler
        async for item in self._present(assembler, None if after is not None else start):
            yield item
        await self._sleep(self._pause(assembler))
        while not self._closed:
            for item in self._clock.observe():
                yield item
            async for item in self._read_appended(assembler):
                yield item
            for item in self._due(assembler):
                yield item
            await self._sleep(self._pause(assembler))

    async def _present(self, assembler: RowAssembler, start: int | None) -> AsyncIterator[Item]:
        """What the file holds at the beginning; of a first start only the newest rows."""
        recent: dict[int, list[RawBar]] = {}
        most, newest = self._settings.history_bars, None
        async for found in self._bars():
            if isinstance(found, FeedAnomaly):
                yield found
            elif start is not None and self._grid.close(found.label) <= start:
                recent.setdefault(found.label, []).append(found)
                newest = max(newest or found.label, found.label)
                if len(recent) > 2 * most + 1:
                    recent = {label: recent[label] for label in sorted(recent)[len(recent) - most :]}
            else:
                for item in self._take(assembler, found):
                    yield item
        for label in sorted(recent)[max(0, len(recent) - most) :]:
            for bar in recent[label]:
                for item in self._take(assembler, bar):
                    yield item
        assembler.end_history(newest)
        for item in self._due(assembler):
            yield item

    async def _read_appended(self, assembler: RowAssembler) -> AsyncIterator[Item]:
        newest = None
        async for found in self._bars():
            if isinstance(found, FeedAnomaly):
                yield found
                continue
            for item in self._take(assembler, found):
                yield item
            newest = max(newest or found.label, found.label)
        if newest is not None:
            close = self._grid.close(newest)
            source = SourceTime(close, close + self._grid.bar_ns + int(self._settings.grace_s * NS))
            for item in self._clock.confirm(source):
                yield item

    def _take(self, assembler: RowAssembler, bar: RawBar) -> list[Item]:
        """Keep a bar, unless an earlier reading of the file handed it over."""
        if (
            self._floor is not None
            and bar.label <= self._floor
            and not assembler.lacks(bar.symbol, bar.label)
        ):
            return []
        told = assembler.take(bar, self._clock.now())
        return [*told, *self._due(assembler)] if assembler.waiting >= _PAGE else [*told]

    def _due(self, assembler: RowAssembler) -> list[Item]:
        return assembler.rows(self._clock.now(), blocked=self._clock.blocked)

    async def _bars(self) -> AsyncIterator[RawBar | FeedAnomaly]:
        """Everything up to the present end of the file."""
        while not self._closed:
            piece = self._file.look()
            for item in self._note_change(piece):
                yield item
            if not piece.data:
                if piece.restart is None:
                    return
                continue
            for found in self._read(piece.data):
                if isinstance(found, RawBar):
                    yield found
                else:
                    for item in self._complaint(found):
                        yield item
            await self._sleep(0.0)

    def _read(self, data: bytes) -> list[RawBar | Unreadable]:
        try:
            return self._rows.read(data)
        except DataError as error:
            raise FeedError(f"the file of the feed cannot be followed: {error}", retryable=False) from error

    def _note_change(self, piece: Piece) -> list[FeedAnomaly]:
        """What became of the file, told once when it goes and once when it is back."""
        reason = piece.gone or piece.restart
        if reason is None:
            was_lost, self._is_lost, self._gone_since = self._is_lost, False, None
            return [self._tell(FeedAnomalyKind.RECONNECTED, "read from its beginning")] if was_lost else []
        items = [] if self._is_lost else [self._tell(FeedAnomalyKind.DISCONNECTED, reason)]
        self._is_lost = True
        if piece.gone is not None:
            self._give_up(piece.gone)
        return items + self._new_file()

    def _give_up(self, reason: str) -> None:
        """End the feed when the file has been away for too long."""
        now = self._clock.steady()
        if self._gone_since is None:
            self._gone_since = now
        elif now - self._gone_since >= self._settings.gone_s * NS:
            raise FeedError(
                f"{str(self._shape.path)!r} has been away for {self._settings.gone_s:g} s ({reason}): put it "
                "back, or name another file with --data",
                retryable=True,
            )

    def _new_file(self) -> list[FeedAnomaly]:
        """Begin a file anew; the half line at the end of the old one is told."""
        items = [item for line in self._rows.end() for item in self._complaint(line)]
        self._floor = max(self.last_labels().values(), default=None)
        self._begin_file()
        return items

    def _begin_file(self) -> None:
        self._rows = CsvRows(self._shape.path, self._shape.name, self._shape.zone)
        self._unreadable = 0

    def _complaint(self, found: Unreadable) -> list[FeedAnomaly]:
        self._unreadable += 1
        if self._unreadable > MOST_UNREADABLE + 1:
            return []
        reason = found.reason if self._unreadable <= MOST_UNREADABLE else "many unreadable lines"
        detail = {"line": found.line, "reason": reason}
        return [FeedAnomaly(FeedAnomalyKind.INVALID, None, None, detail)]

    def _tell(self, kind: FeedAnomalyKind, reason: str) -> FeedAnomaly:
        return FeedAnomaly(kind, None, None, {"file": self._shape.path.name, "reason": reason})

    def _pause(self, assembler: RowAssembler) -> float:
        """Until the next look: soon, or when a waiting row is due if that is sooner."""
        due, now = assembler.next_due(), self._clock.now()
        return (
            self._settings.poll_s
            if due is None or due <= now
            else min(self._settings.poll_s, (due - now) / NS)
        )
