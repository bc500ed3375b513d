"""CsvTailFeed: follows a growing CSV file, one look after the other, and makes rows of the bars in it.

What stands in the file when the run begins is history; what is appended is traded. A file that is rotated,
truncated or rewritten is read from its first byte again: only bars that are others than before are told. A
line that cannot be read is told with its number and passed over.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

from schemas.errors import DataError, FeedError
from schemas.settings.live import FeedSettings
from services.feeds.assembler import Item, RowAssembler, SeenOnce
from services.feeds.clock_watch import ClockWatch, SourceTime
from services.feeds.label_grid import NS, LabelGrid
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind, Recalled, news_after_history
from services.feeds.raw_bar import RawBar
from worker.feeds.csv.file import GrowingFile, Piece
from worker.feeds.csv.rows import CsvRows, Unreadable

MOST_UNREADABLE = 100  # lines of one file that are told one by one
_PAGE = 100_000  # bars after which rows are made before the end of a file is reached
_TICK_NS = 10_000_000  # a kernel stamps files with the time of its last tick


@dataclass(frozen=True)
class CsvShape:
    """What a file holds, settled when it is opened."""

    path: Path
    symbols: tuple[str, ...]  # sorted; others in the file are told and passed over
    timeframe: str
    label: Literal["open", "close"]  # what a time names
    zone: ZoneInfo | None  # given to times that carry none
    name: str  # symbol of a file without a symbol column
    read_off: bool = False  # nobody named the symbols, they are those at the file's beginning


class ClosedBars:
    """Which bars of one reading of a file are closed: a program may give the running candle as its last row.

    One is closed when the file was written after its close, or has a bar of its symbol that opened after it.
    """

    def __init__(self, symbols: tuple[str, ...], grid: LabelGrid) -> None:
        self._grid = grid
        self._open: dict[str, dict[int, RawBar]] = {symbol: {} for symbol in symbols}
        self._opened: dict[str, int] = {}  # when the newest bar of a symbol did
        self._unsaid: list[RawBar] = []

    def take(self, raw: RawBar, written: int, latest: int) -> Iterator[RawBar]:
        """The bars that are closed now that this one was read; one that cannot be passes, judged elsewhere.

        The file shows what happened up to `written`, ns; a bar that opens after `latest`, ns, shows nothing.
        """
        close = self._grid.close(raw.label)
        opened, waiting = close - self._grid.bar_ns, self._open.get(raw.symbol)
        if waiting is None or opened > latest or not self._grid.has(raw.label):
            yield raw
            return
        opened = self._opened[raw.symbol] = max(opened, self._opened.get(raw.symbol, opened))
        waiting[raw.label] = raw
        yield from self._pop(waiting, max(written, opened))
        if raw.label in waiting:
            self._unsaid.append(raw)

    def end(self, written: int) -> tuple[list[RawBar], list[RawBar]]:
        """At the end of the file: bars closed by now, as the file was written again, and those newly open."""
        closed = [raw for waiting in self._open.values() for raw in self._pop(waiting, written)]
        unsaid, self._unsaid = self._unsaid, []
        return closed, [raw for raw in unsaid if self._open[raw.symbol].get(raw.label) is raw]

    def _pop(self, waiting: dict[int, RawBar], until: int) -> list[RawBar]:
        return [waiting.pop(label) for label in sorted(waiting) if self._grid.close(label) <= until]


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
        """Nothing is read yet; `wall` and `steady`, which only moves forward, are our clocks, ns."""
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
        self._floor: int | None = None  # bars up to it were taken before the file began anew
        self._half: list[Unreadable] = []  # of the file before
        self._shown = SeenOnce()
        self._recalled: Recalled = (), ()

    @property
    def symbols_found(self) -> tuple[str, ...] | None:
        """Those that the file had when it was opened; None where somebody named them."""
        return self._shape.symbols if self._shape.read_off else None

    def follow(self, symbols: tuple[str, ...]) -> None:
        """Make rows of these symbols, before the first is made: a run that goes on keeps its own."""
        self.symbols = tuple(sorted(symbols))

    def recall(self, rows: Sequence[BarRow], conflicts: Collection[tuple[str, int]]) -> None:
        """See `RowMemory`."""
        self._recalled = rows, conflicts

    async def items(self, after: int | None) -> AsyncIterator[BarRow | FeedAnomaly]:
        """See `MarketFeed`; without `after`, the last `history_bars` rows of the file come first, as history.

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
        assembler.recall(*self._recalled)
        self._assembler = assembler
        self._begin_file()
        present = self._present(assembler, None if after is not None else start)
        async for item in news_after_history(present) if after is None else present:
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
        most, newest, reading = self._settings.history_bars, None, self._rows
        async for found in self._bars(assembler):
            if self._rows is not reading:  # the file was replaced meanwhile
                recent, reading = {}, self._rows
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
        async for found in self._bars(assembler):
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
        """Keep a bar; of one that was read before only a change is told."""
        if self._repeats(assembler, bar):
            return []
        shown = assembler.take(bar, self._clock.now())
        return [*shown, *self._due(assembler)] if assembler.waiting >= _PAGE else [*shown]

    def _repeats(self, assembler: RowAssembler, bar: RawBar) -> bool:
        return self._floor is not None and bar.label <= self._floor and assembler.repeats(bar)

    def _due(self, assembler: RowAssembler) -> list[Item]:
        return assembler.rows(self._clock.now(), blocked=self._clock.blocked)

    async def _bars(self, assembler: RowAssembler) -> AsyncIterator[RawBar | FeedAnomaly]:
        """Every closed bar up to the present end of the file, and what is wrong with the others."""
        while not self._closed:
            piece = self._file.look()
            for news in self._note_change(piece, assembler):
                yield news
            written = self._read_stamp(piece.written)
            latest = self._clock.now() + int(self._settings.clock_jump_s * NS)
            for found in self._read(piece.data):
                for item in (
                    self._closed_bars.take(found, written, latest)
                    if isinstance(found, RawBar)
                    else self._complaint(found)
                ):
                    yield item
            if not piece.data and piece.restart is None:
                for item in self._end_of_file(assembler, written) if piece.gone is None else ():
                    yield item
                return
            await self._sleep(0.0)

    def _read_stamp(self, stamp: int) -> int:
        """Source time up to which the file shows what happened; a stamp ahead of our clock says nothing."""
        age = self._clock.wall() - stamp
        ahead = age < -self._settings.clock_jump_s * NS
        return 0 if ahead else self._clock.now() - max(0, age) + _TICK_NS

    def _end_of_file(self, assembler: RowAssembler, written: int) -> Iterator[RawBar | FeedAnomaly]:
        """What the present end shows; half a line of the file before is told unless this one has its end."""
        closed, opened = self._closed_bars.end(written)
        yield from closed
        for bar in opened:
            if not self._repeats(assembler, bar):
                yield from assembler.take(bar, self._clock.now(), closed=False)
        for line in self._half:
            if line.line > self._rows.reached:
                yield from self._complaint(line)
        self._half = []

    def _read(self, data: bytes) -> list[RawBar | Unreadable]:
        try:
            return self._rows.read(data)
        except DataError as error:
            raise FeedError(f"the file of the feed cannot be followed: {error}", retryable=False) from error

    def _note_change(self, piece: Piece, assembler: RowAssembler) -> list[FeedAnomaly]:
        """A file that goes is told once, and once when it is back; one that is written anew is no news."""
        if piece.gone is not None or piece.restart is not None:
            self._half += self._rows.end()
            self._floor = assembler.newest
            self._begin_file()
        if piece.gone is not None:
            return self._note_gone(piece.gone)
        was_lost, self._is_lost, self._gone_since = self._is_lost, False, None
        return [self._tell(FeedAnomalyKind.RECONNECTED, "read from its beginning")] if was_lost else []

    def _note_gone(self, reason: str) -> list[FeedAnomaly]:
        """The file is away: told at the second look, since a rewrite is no news; too long ends the feed."""
        now = self._clock.steady()
        if self._gone_since is None:
            self._gone_since = now
            return []
        if now - self._gone_since >= self._settings.gone_s * NS:
            raise FeedError(
                f"{str(self._shape.path)!r} has been away for {self._settings.gone_s:g} s ({reason}): put it "
                "back, or name another file with --data",
                retryable=True,
            )
        was_lost, self._is_lost = self._is_lost, True
        return [] if was_lost else [self._tell(FeedAnomalyKind.DISCONNECTED, reason)]

    def _begin_file(self) -> None:
        self._rows = CsvRows(self._shape.path, self._shape.name, self._shape.zone)
        self._closed_bars = ClosedBars(self.symbols, self._grid)
        self._unreadable = 0

    def _complaint(self, found: Unreadable) -> list[FeedAnomaly]:
        self._unreadable += 1
        reason = found.reason if self._unreadable <= MOST_UNREADABLE else "many unreadable lines"
        if self._unreadable > MOST_UNREADABLE + 1 or not self._shown.first((found.line, reason)):
            return []
        detail = {"line": found.line, "reason": reason}
        return [FeedAnomaly(FeedAnomalyKind.INVALID, None, None, detail)]

    def _tell(self, kind: FeedAnomalyKind, reason: str) -> FeedAnomaly:
        return FeedAnomaly(kind, None, None, {"file": self._shape.path.name, "reason": reason})

    def _pause(self, assembler: RowAssembler) -> float:
        """Until the next look: soon, or when a waiting row is due if that is sooner."""
        due, now, poll_s = assembler.next_due(), self._clock.now(), self._settings.poll_s
        return poll_s if due is None or due <= now else min(poll_s, (due - now) / NS)
