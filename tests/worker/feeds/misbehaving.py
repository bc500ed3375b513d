"""MisbehavingReplay: recorded bars as a bad source sends them, by seed, through the assembler of live feeds.

For tests of whatever follows a feed. Time is virtual: nothing sleeps, and the same seed gives the same items.
"""

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from schemas.settings.live import FeedSettings
from services.feeds.assembler import Item, RowAssembler
from services.feeds.label_grid import NS, LabelGrid
from services.feeds.port import FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from services.feeds.raw_bar import RawBar
from trading_core.bars import COLUMNS, BarSeries
from trading_core.live.growing_bars import Bar


@dataclass(frozen=True)
class Faults:
    """Shares of bars, unless said otherwise. The defaults are those of the fault suite."""

    duplicates: float = 0.01
    missing: float = 0.01
    out_of_order: float = 0.01
    conflicts: float = 0.001
    disconnects: float = 0.0  # share of rows at whose close the connection is lost
    disconnect_s: float = 60.0
    silences: float = 0.0  # share of bars with which a symbol falls silent
    silence_bars: int = 6


class MisbehavingReplay:
    """The rows of a series after its bars went through a bad connection."""

    lock_step = True
    name = "replay"

    def __init__(
        self,
        series: BarSeries,
        seed: int,
        faults: Faults = Faults(),
        settings: FeedSettings = FeedSettings(),  # noqa: B008 - frozen
        *,
        continuous: bool = False,
    ) -> None:
        self._series = series
        self._faults = faults
        self._settings = settings
        self._grid = LabelGrid(series.timeframe, series.label, continuous)
        self._closed = False
        self._assembler: RowAssembler | None = None
        self.injected: Counter[Kind] = Counter()
        rng = np.random.default_rng(seed)
        self._dropped = self._drops(rng)
        self._events = sorted(self._sent(rng), key=lambda event: event[:2])
        self._away = [
            (self._grid.close(int(series.times[row])), int(faults.disconnect_s * NS))
            for row in np.flatnonzero(rng.random(series.times.size) < faults.disconnects)
        ]

    @property
    def symbols(self) -> tuple[str, ...]:
        return self._series.symbols

    @property
    def timeframe(self) -> str:
        return self._series.timeframe

    @property
    def label(self) -> Literal["open", "close"]:
        return self._series.label

    @property
    def arrived(self) -> BarSeries:
        """The series without the bars that never came, as a clean feed would have to be to look the same."""
        present = self._series.present & ~self._dropped
        rows = np.flatnonzero(present.any(axis=1))
        arrays = {name: np.where(present, getattr(self._series, name), np.nan)[rows] for name in COLUMNS}
        s = self._series
        return BarSeries(
            s.times[rows], s.symbols, s.timeframe, s.label, present=present[rows], zone=s.zone, **arrays
        )

    async def items(self, after: int | None) -> AsyncIterator[Item]:
        start = int(self._series.times[0])
        assembler = RowAssembler(self.symbols, self._grid, self._settings, start=start, after=after)
        self._assembler = assembler
        away = list(self._away)
        until = 0
        for now, bars in self._moments(after):
            while away and away[0][0] <= now:
                begin, length = away.pop(0)
                if begin >= until:
                    yield FeedAnomaly(Kind.DISCONNECTED, None, None, {"reason": "injected"})
                    until = begin + length
                    self.injected[Kind.DISCONNECTED] += 1
            for raw in bars:
                for anomaly in assembler.take(raw, max(now, until)):
                    yield anomaly
            if now < until:
                continue  # what was sent meanwhile comes at once when the connection is back
            if until:
                until = 0
                yield FeedAnomaly(Kind.RECONNECTED, None, None, {"reason": "injected"})
            for item in assembler.rows(now):
                if self._closed:
                    return
                yield item

    def last_labels(self) -> dict[str, int]:
        return {} if self._assembler is None else self._assembler.last_labels()

    async def close(self) -> None:
        self._closed = True

    def _moments(self, after: int | None) -> list[tuple[int, list[RawBar]]]:
        """What arrives when; also the moments at which an incomplete row is due or a connection is back."""
        found: dict[int, list[RawBar]] = {}
        for at, _, raw in self._events:
            if after is None or raw.label > after:
                found.setdefault(at, []).append(raw)
        for label in self._series.times.tolist():
            if after is None or label > after:
                found.setdefault(self._grid.close(label) + int(self._settings.grace_s * NS), [])
        for begin, length in self._away:
            found.setdefault(begin + length, [])
        return sorted(found.items())

    def _drops(self, rng: np.random.Generator) -> np.ndarray:
        shape = self._series.present.shape
        dropped = rng.random(shape) < self._faults.missing
        for row, s in np.argwhere(rng.random(shape) < self._faults.silences):
            dropped[row : row + self._faults.silence_bars, s] = True
        dropped &= self._series.present
        self.injected[Kind.MISSING] = int(dropped.sum())
        return dropped

    def _sent(self, rng: np.random.Generator) -> list[tuple[int, int, RawBar]]:
        faults, events = self._faults, []
        grace = int(self._settings.grace_s * NS)
        draws = rng.random((*self._series.present.shape, 5))
        tables = [getattr(self._series, name) for name in COLUMNS]
        for row, s in np.argwhere(self._series.present & ~self._dropped).tolist():
            label = int(self._series.times[row])
            duplicate, disorder, conflict, delay, later = draws[row, s].tolist()
            raw = RawBar(self.symbols[s], label, Bar(*(float(table[row, s]) for table in tables)))
            at = self._grid.close(label) + int(delay * 0.9 * grace) * (disorder < faults.out_of_order)
            events.append((at, 0, raw))
            if duplicate < faults.duplicates:
                self.injected[Kind.DUPLICATE] += 1
                events.append((at + int(later * 3 * self._grid.bar_ns), 1, raw))
            if conflict < faults.conflicts:
                self.injected[Kind.CONFLICT] += 1
                wrong = Bar(*(1.01 * (value or 0.0) for value in raw.bar))
                events.append((at + int(later * 3 * self._grid.bar_ns), 1, raw._replace(bar=wrong)))
        return events
