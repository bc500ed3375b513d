"""ReplayFeed: recorded bars as a live feed, at any speed and in lock-step with those who read them.

Rows are handed over exactly as they were recorded: a missing bar is an absent bar and no news, because a
backtest over the same bars sees nothing else.
"""

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable

import numpy as np

from schemas.errors import ConfigError
from services.feeds.port import BarRow, FeedAnomaly
from trading_core.bars import COLUMNS, NS, BarSeries
from trading_core.live.growing_bars import bar_of

LONGEST_WAIT_BARS = 3  # of bar time: nights and weekends are not slept through
_BLOCK = 512  # rows between which others of this process get their turn


class ReplayFeed:
    """The rows of a bar series, in order."""

    lock_step = True

    def __init__(
        self,
        series: BarSeries,
        speed: float | None = None,
        *,
        name: str = "replay",
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Replay these bars at `speed` seconds of bar time in a second; None: as fast as rows are taken.

        Raises:
            ConfigError: a speed that is not a number above zero.
        """
        if speed is not None and not (math.isfinite(speed) and speed > 0.0):
            raise ConfigError(
                f"--speed {speed!r} is not above zero: give seconds of bar time in a second, or max"
            )
        self.name, self.symbols = name, series.symbols
        self.timeframe, self.label = series.timeframe, series.label
        self._series = series
        self._speed = speed
        self._sleep = sleep
        self._last: dict[str, int] = {}
        self._closed = False

    async def items(self, after: int | None) -> AsyncIterator[BarRow | FeedAnomaly]:
        """The rows with labels after `after`; never an anomaly."""
        times = self._series.times
        first = 0 if after is None else int(np.searchsorted(times, after, side="right"))
        for begin in range(first, times.size, _BLOCK):
            await self._sleep(0.0)
            for number, row in enumerate(rows_of(self._series, begin, begin + _BLOCK), begin):
                await self._wait(number, first)
                if self._closed:
                    return
                self._last.update(dict.fromkeys(row.bars, row.label))
                yield row

    def last_labels(self) -> dict[str, int]:
        """The label of each symbol's last bar among the rows that were taken."""
        return dict(sorted(self._last.items()))

    async def close(self) -> None:
        """End a running `items` at its next row."""
        self._closed = True

    async def _wait(self, number: int, first: int) -> None:
        if self._speed is None or number == first:
            return
        passed = int(self._series.times[number] - self._series.times[number - 1])
        await self._sleep(min(passed, LONGEST_WAIT_BARS * self._series.bar_ns) / NS / self._speed)


def rows_of(series: BarSeries, begin: int, end: int) -> list[BarRow]:
    """The rows of a series from `begin` up to, without, `end`."""
    labels = series.times[begin:end].tolist()
    present = series.present[begin:end].tolist()
    tables = [getattr(series, column)[begin:end].tolist() for column in COLUMNS]
    extra = {name: values[begin:end].tolist() for name, values in series.extra.items()}
    found = []
    for row, label in enumerate(labels):
        there = {symbol: s for s, symbol in enumerate(series.symbols) if present[row][s]}
        bars = {symbol: bar_of(*(table[row][s] for table in tables)) for symbol, s in there.items()}
        further = {
            symbol: {name: _number_or_none(values[row][s]) for name, values in extra.items()}
            for symbol, s in there.items()
            if extra
        }
        found.append(BarRow(label, bars, extra=further))
    return found


def _number_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None
