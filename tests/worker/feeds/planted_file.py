"""A growing file whose lines come as a plan says, in virtual time, and the real feed that follows it."""

import asyncio
import os
from collections import Counter, deque
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import numpy as np

from schemas.settings.live import FeedSettings
from services.feeds.port import BarRow, FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from tests.worker.feeds.planted import NS, Fault, Key, Offset, Plan, right
from trading_core.live.growing_bars import Bar
from worker.feeds.csv.tail import CsvShape, CsvTailFeed

HEADER = "time,symbol,open,high,low,close,volume\n"
SETTINGS = FeedSettings(continuous=True, grace_s=10.0, poll_s=4.0, gone_s=600.0, history_bars=100_000)
DISORDER_S = 5.5  # with a look every 4 s a line is read before the grace is over
OUTAGE_S = 60.0


class PlannedFile:
    """A feed on a file; virtual time 0 is the close of the last row of its history.

    Args:
        path: of the file.
        plan: how its lines come.
        settings: of the feed.
        offset: by how much our wall clock is wrong.
    """

    lock_step = False
    name = "csv"

    def __init__(
        self, path: Path, plan: Plan, settings: FeedSettings = SETTINGS, offset: Offset = right
    ) -> None:
        self._path, self._plan, self._offset = path, plan, offset
        self.settings = settings
        series = plan.series
        self._closes: list[int] = series.close_times.tolist()
        self._begin: int = self._closes[plan.history - 1]
        self._lines = deque(sorted(self._sent(), key=lambda pair: pair[:2]))
        self._away = deque(sorted(self._closes[row] + 20 * NS for row in plan.outages))
        self._back: int | None = None
        self._aside = path.with_suffix(".aside")
        shape = CsvShape(path, series.symbols, series.timeframe, series.label, None, series.symbols[0])
        self._write(HEADER + "".join(self._history()), "w", self._begin)
        self.feed = CsvTailFeed(shape, settings, wall=self._wall, steady=self._steady, sleep=self._sleep)

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.feed.symbols

    @property
    def timeframe(self) -> str:
        return self.feed.timeframe

    @property
    def label(self) -> Literal["open", "close"]:
        return self.feed.label

    def shown(self) -> Counter[Key]:
        """The anomalies that have to come."""
        found = self._plan.shown(self.settings)
        if self._plan.outages:
            for kind in (Kind.DISCONNECTED, Kind.RECONNECTED):
                found[kind, None, None] = len(self._plan.outages)
        return found

    def items(self, after: int | None) -> AsyncIterator[BarRow | FeedAnomaly]:
        """Those of the feed; it ends a minute after the last line."""
        return self.feed.items(after)

    def last_labels(self) -> dict[str, int]:
        return self.feed.last_labels()

    async def close(self) -> None:
        await self.feed.close()

    @property
    def now(self) -> int:
        """True time, ns."""
        passed: int = round(asyncio.get_running_loop().time() * NS)
        return self._begin + passed

    def _wall(self) -> int:
        ahead: int = round(self._offset(self._steady() / NS) * NS)
        return self.now + ahead

    def _steady(self) -> int:
        return self.now - self._begin

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        now = self.now
        self._outage(now)
        text = []
        while self._lines and self._lines[0][0] <= now:
            text.append(self._lines.popleft()[2])
        if text:
            self._write("".join(text), "a", self._wall())
        if not self._lines and now > self._closes[-1] + 60 * NS:
            await self.feed.close()

    def _outage(self, now: int) -> None:
        """The file is moved away; after a minute another one comes in its place, with what came meanwhile."""
        if self._away and self._away[0] <= now and self._back is None:
            self._back = self._away.popleft() + round(OUTAGE_S * NS)
            os.rename(self._path, self._path.with_suffix(".old"))
            self._aside.write_text(HEADER, "utf-8")
        elif self._back is not None and now >= self._back:
            self._back = None
            os.rename(self._aside, self._path)

    def _write(self, text: str, mode: str, when: int) -> None:
        path = self._path if self._back is None else self._aside
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
        os.utime(path, ns=(when, when))

    def _history(self) -> list[str]:
        columns = range(self._plan.series.shape[1])
        return [self._line(row, column) for row in range(self._plan.history) for column in columns]

    def _line(self, row: int, column: int, wrong: float = 1.0) -> str:
        series = self._plan.series
        bar = Bar(*(float(getattr(series, name)[row, column]) * wrong for name in Bar._fields))
        values = ",".join(map(repr, bar))
        return f"{int(series.times[row]) // NS},{series.symbols[column]},{values}\n"

    def _sent(self) -> list[tuple[int, int, str]]:
        """When each line is appended."""
        rng = np.random.default_rng(len(self._closes))
        bar_ns, found = self._plan.series.bar_ns, []
        for row in range(self._plan.history, len(self._closes)):
            for column in range(self._plan.series.shape[1]):
                fault, close = self._plan.at(row, column), self._closes[row]
                line, later = self._line(row, column), float(rng.random())
                if fault is Fault.LOST:
                    continue
                delay = 0.0
                if fault is Fault.DISORDERED:
                    delay = later * DISORDER_S * NS
                if fault is Fault.LATE:
                    delay = (0.3 + 2.5 * later) * bar_ns
                found.append((close + round(delay), column, line))
                if fault is Fault.TWICE:
                    again = 1 + int(3 * later)
                    found += [(close + round((n + 2.5 * later) * bar_ns), 9, line) for n in range(again)]
                if fault in (Fault.CONTRADICTED, Fault.DISPUTED):
                    at = close + round((0.1 + 0.8 * later) * bar_ns) * (fault is Fault.CONTRADICTED)
                    found.append((at, 9, self._line(row, column, 1.01)))
        return found
