"""A CSV file that grows in virtual time, and the feed that follows it."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from schemas.settings.live import FeedSettings
from services.feeds.port import BarRow, FeedAnomaly, Recalled
from worker.feeds.csv.tail import CsvShape, CsvTailFeed

NS = 1_000_000_000
MINUTE = 60 * NS
T0 = 1_700_000_040 * NS
HEADER = "time,symbol,open,high,low,close,volume\n"


def label(number: int) -> int:
    """The label of a bar by its number."""
    return T0 + number * MINUTE


def close(number: int) -> int:
    """When that bar is over."""
    return label(number + 1)


def line(number: int, symbol: str = "A", price: float = 100.0) -> str:
    """One row of the file."""
    return f"{label(number) // NS},{symbol},{price},{price + 2},{price - 2},{price + 1},10\n"


@dataclass
class World:
    """A folder, a clock and what happens in it at which time."""

    path: Path
    now: int = T0
    symbols: tuple[str, ...] = ("A",)
    timeframe: str = "1m"
    labels: Literal["open", "close"] = "open"
    recalled: Recalled = (), ()
    settings: FeedSettings = field(default_factory=lambda: FeedSettings(continuous=True, gone_s=30.0))
    events: list[tuple[int, Callable[[], object]]] = field(default_factory=list)
    jump: int = 0  # of the wall clock against the monotonic one

    def at(self, when: int, action: Callable[[], object]) -> None:
        self.events.append((when, action))

    def append(self, when: int, text: str | bytes) -> None:
        self.at(when, lambda: self.write(text, "ab"))

    def write(self, text: str | bytes, mode: str = "wb") -> None:
        with self.path.open(mode) as file:
            file.write(text.encode() if isinstance(text, str) else text)
        self.stamp(self.now + self.jump)

    def stamp(self, when: int) -> None:
        """The file says that it was written then."""
        os.utime(self.path, ns=(when, when))

    def replace(self, text: str) -> None:
        """Another file takes the name, as whole as it was written."""
        companion = self.path.with_suffix(".new")
        companion.write_text(text, "utf-8")
        os.utime(companion, ns=(self.now + self.jump,) * 2)
        companion.replace(self.path)

    def run(self, until: int, after: int | None = None) -> list[BarRow | FeedAnomaly]:
        """Everything that the feed says until then."""
        return asyncio.run(self._run(until, after))

    async def _run(self, until: int, after: int | None) -> list[BarRow | FeedAnomaly]:
        shape = CsvShape(self.path, self.symbols, self.timeframe, self.labels, None, "A")
        self.feed = CsvTailFeed(
            shape,
            self.settings,
            wall=lambda: self.now + self.jump,
            steady=lambda: self.now,
            sleep=self._sleep,
        )
        self.feed.recall(*self.recalled)
        self.at(until, self._close)
        self.events.sort(key=lambda event: event[0])
        return [item async for item in self.feed.items(after)]

    def _close(self) -> None:
        self.ending = asyncio.ensure_future(self.feed.close())

    async def _sleep(self, seconds: float) -> None:
        self.now += round(seconds * NS)
        while self.events and self.events[0][0] <= self.now:
            self.events.pop(0)[1]()
        await asyncio.sleep(0)


def rows(items: list[BarRow | FeedAnomaly]) -> list[BarRow]:
    return [item for item in items if isinstance(item, BarRow)]


def read_shown(items: list[BarRow | FeedAnomaly]) -> list[FeedAnomaly]:
    return [item for item in items if isinstance(item, FeedAnomaly)]
