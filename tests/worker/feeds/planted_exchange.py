"""An exchange without a network that answers as a plan says, in virtual time, and the real feed on it.

Everything of the feed runs but the calls of ccxt: requests, refill, clocks, rows.
"""

import asyncio
import math
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from typing import Literal

import numpy as np
import pytest

from schemas.errors import FeedError
from schemas.settings.live import FeedSettings
from services.feeds.port import BarRow, FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from services.feeds.raw_bar import RawBar
from tests.worker.feeds.planted import NS, Fault, Key, Offset, Plan, right
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt import feed as ccxt_feed
from worker.feeds.ccxt import live as ccxt_live
from worker.feeds.ccxt.feed import CcxtFeed
from worker.feeds.ccxt.source_clock import FeedTime

SETTINGS = FeedSettings(grace_s=10.0)
OUTAGE_AT_S, OUTAGE_S = 20.0, 60.0
ANSWER_S = 0.2
LOOK_S = 4.0
FIRST_LOOK_S = 3.5  # virtual time 0 lies so long after a close: the history is read
SLOWEST_S = 3.5  # after its close, when a bar that its row waits for is there
Sleep = tuple[float, float]
AWAKE: Sleep = (math.inf, 0.0)


class PlannedExchange:
    """The public data of an exchange, by the shape of `PublicExchange`.

    Args:
        plan: how its candles come.
        outage_s: how long an outage lasts.
        sleep: when our machine falls asleep and for how long, seconds; its steady clock stands still.
    """

    has_clock = True
    page_bars = 1_000

    def __init__(self, plan: Plan, outage_s: float = OUTAGE_S, sleep: Sleep = AWAKE) -> None:
        self._plan, self._sleep = plan, sleep
        series = plan.series
        self.closes: list[int] = series.close_times.tolist()
        self.begin: int = self.closes[plan.history - 1] + round(FIRST_LOOK_S * NS)
        self._names = {symbol: column for column, symbol in enumerate(series.symbols)}
        self._later = np.random.default_rng(len(self.closes)).random(series.shape)
        starts = [self.closes[row] + round(OUTAGE_AT_S * NS) for row in sorted(plan.outages)]
        self._away = [(at, at + round(outage_s * NS)) for at in starts]

    @property
    def now(self) -> int:
        """Its time, ns."""
        passed = self.awake_s + (self._sleep[1] if self.has_slept else 0.0)
        return self.begin + round(passed * NS)

    @property
    def awake_s(self) -> float:
        """How long our machine has been awake."""
        return asyncio.get_running_loop().time()

    @property
    def has_slept(self) -> bool:
        """Whether our machine has slept already."""
        return self.awake_s >= self._sleep[0]

    @property
    def over(self) -> bool:
        """Whether the last bar was over a minute ago."""
        return self.now > self.closes[-1] + 60 * NS

    async def load(self) -> None:
        """Nothing to learn."""

    def check(self, symbols: Iterable[str], timeframe: str) -> None:
        """Everything is offered."""

    async def close(self) -> None:
        """Nothing is held."""

    async def clock_ns(self) -> int:
        """Its time."""
        self._reach()
        return self.now

    async def bars(self, symbol: str, timeframe: str, since_ns: int, limit: int) -> list[RawBar]:
        """What it knows by now; a bar that comes twice stands twice in the answer."""
        await asyncio.sleep(ANSWER_S)
        self._reach()
        column, now, found = self._names[symbol], self.now, []
        series = self._plan.series
        first = int(np.searchsorted(series.times, since_ns))
        for row in range(first, min(first + limit, len(self.closes))):
            if int(series.times[row]) > now:
                break
            found += self._known(row, column, now)
        return found

    def _known(self, row: int, column: int, now: int) -> list[RawBar]:
        """What it says of a bar at a time: nothing yet, so far, as it ended, or with other values."""
        fault, later = self._plan.at(row, column), float(self._later[row, column])
        bar_ns, since = self._plan.series.bar_ns, now - self.closes[row]
        candle = self._candle(row, column)
        if fault is Fault.LOST or (fault is Fault.LATE and since < (0.3 + 2.5 * later) * bar_ns):
            return []
        if fault in (Fault.WITHHELD, Fault.DISORDERED) and since < (1.0 + later) / 2 * SLOWEST_S * NS:
            return []
        if since < 0:
            o, h, low, _, v = candle.bar
            return [
                candle._replace(bar=Bar(o, max(o, (o + h) / 2), min(o, (o + low) / 2), o, (v or 0.0) / 2))
            ]
        wrong = self._candle(row, column, 1.01)
        if fault is Fault.CONTRADICTED and since >= (0.1 + 0.8 * later) * bar_ns:
            return [wrong]
        again = {Fault.TWICE: candle, Fault.DISPUTED: wrong}
        return [candle] if fault is None or fault not in again else [candle, again[fault]]

    def _reach(self) -> None:
        if any(begin <= self.now < end for begin, end in self._away):
            raise FeedError("away", retryable=True, failure="unavailable", retry_after_s=None)

    def _candle(self, row: int, column: int, wrong: float = 1.0) -> RawBar:
        series = self._plan.series
        bar = Bar(*(float(getattr(series, name)[row, column]) * wrong for name in Bar._fields))
        return RawBar(series.symbols[column], int(series.times[row]), bar)


class PlannedMarket(FeedTime):
    """The feed of an exchange on a planned one.

    Args:
        plan: how its candles come.
        settings: of the feed.
        outage_s: how long an outage lasts.
        offset: by how much our wall clock is wrong.
        sleep: when our machine sleeps and for how long, seconds.
        look_s: longest time between two looks of the feed where nothing is due.
    """

    lock_step = False
    name = "ccxt:planned"
    label: Literal["open", "close"] = "open"

    def __init__(
        self,
        plan: Plan,
        settings: FeedSettings = SETTINGS,
        outage_s: float = OUTAGE_S,
        offset: Offset = right,
        sleep: Sleep = AWAKE,
        look_s: float = LOOK_S,
    ) -> None:
        self._plan, self._offset, self._look_s = plan, offset, look_s
        self.settings = settings.model_copy(update={"history_bars": plan.history})
        self.exchange = PlannedExchange(plan, outage_s, sleep)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ccxt_feed, "PublicExchange", lambda name, chosen: self.exchange)
            self.feed = CcxtFeed(
                "planned", plan.series.symbols, plan.series.timeframe, self.settings, time=self
            )

    @property
    def symbols(self) -> tuple[str, ...]:
        return self.feed.symbols

    @property
    def timeframe(self) -> str:
        return self.feed.timeframe

    def shown(self) -> Counter[Key]:
        """The anomalies that have to come."""
        found = self._plan.shown(self.settings)
        if self._plan.outages:
            for kind in (Kind.DISCONNECTED, Kind.RECONNECTED):
                found[kind, None, None] = len(self._plan.outages)
        return found

    async def items(self, after: int | None) -> AsyncIterator[BarRow | FeedAnomaly]:
        """Those of the feed; it ends a minute after the last bar."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ccxt_live, "LONGEST_WAIT_S", self._look_s)
            async for item in self.feed.items(after):
                yield item

    def last_labels(self) -> dict[str, int]:
        return self.feed.last_labels()

    async def close(self) -> None:
        await self.feed.close()

    def wall(self) -> int:
        """Our wall clock, ns."""
        ahead: int = round(self._offset(self.steady() / NS) * NS)
        return self.exchange.now + ahead

    def steady(self) -> int:
        """Our clock that only moves forward, ns."""
        return round(self.exchange.awake_s * NS)

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Until the event is set, or so many seconds are over."""
        if self.exchange.over:
            await self.feed.close()
            return
        await super().wait(event, seconds)
