"""An exchange without a network that shows candles as a plan says, in virtual time, and the real feed on it.

Everything of the feed runs but the calls of ccxt: connection, refill, clocks, candles, rows.
"""

import asyncio
import math
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Literal

import numpy as np
import pytest

from schemas.errors import FeedError
from schemas.settings.live import FeedSettings
from services.feeds.port import BarRow, FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from tests.worker.feeds.planted import NS, Fault, Key, Offset, Plan, right
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt import feed as ccxt_feed
from worker.feeds.ccxt import live as ccxt_live
from worker.feeds.ccxt.errors import Failure
from worker.feeds.ccxt.exchange import Candle
from worker.feeds.ccxt.feed import CcxtFeed

SETTINGS = FeedSettings(grace_s=10.0)
OUTAGE_AT_S, OUTAGE_S = 20.0, 60.0
ANSWER_S = 0.2
LOOK_S = 4.0
FIRST_LOOK_S = 3.5  # virtual time 0 lies so long after a close: the history is read
BY_REST = (Fault.WITHHELD, Fault.TWICE, Fault.DISPUTED)  # never shown by the websocket
Sleep = tuple[float, float]
AWAKE: Sleep = (math.inf, 0.0)
Message = tuple[int, int, Candle]


class PlannedExchange:
    """The public data of an exchange, by the shape of `PublicExchange`.

    Args:
        plan: how its candles come.
        outage_s: how long an outage lasts.
        sleep: when our machine falls asleep and for how long, seconds; its steady clock stands still.
    """

    has_clock = has_candles = many_at_once = True
    page_bars = 1_000

    def __init__(self, plan: Plan, outage_s: float = OUTAGE_S, sleep: Sleep = AWAKE) -> None:
        self._plan, self._sleep = plan, sleep
        series = plan.series
        self.closes: list[int] = series.close_times.tolist()
        self.begin: int = self.closes[plan.history - 1] + round(FIRST_LOOK_S * NS)
        self._names = {symbol: column for column, symbol in enumerate(series.symbols)}
        self._messages = deque(sorted(self._sent(), key=lambda one: one[:2]))
        self._shown: dict[str, dict[int, Candle]] = {symbol: {} for symbol in series.symbols}
        starts = [self.closes[row] + round(OUTAGE_AT_S * NS) for row in sorted(plan.outages)]
        self._away = [(at, at + round(outage_s * NS), number % 2) for number, at in enumerate(starts)]
        if sleep is not AWAKE:
            falls = self.begin + round(sleep[0] * NS)
            self._away.append((falls, falls + round(sleep[1] * NS), 1))

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
        self._reach(rest=True)
        return self.now

    async def bars(self, symbol: str, timeframe: str, since_ns: int, limit: int) -> list[Candle]:
        """What REST knows; a bar that comes twice, the same or with other values, comes so in the answer."""
        await asyncio.sleep(ANSWER_S)
        self._reach(rest=True)
        column, now, found = self._names[symbol], self.now, []
        series = self._plan.series
        first = int(np.searchsorted(series.times, since_ns))
        for row in range(first, min(first + limit, len(self.closes))):
            if int(series.times[row]) > now:
                break
            fault = self._plan.at(row, column)
            if fault not in (Fault.LATE, Fault.LOST):
                found += [self._candle(row, column)] * (2 if fault is Fault.TWICE else 1)
            if fault is Fault.DISPUTED:
                found.append(self._candle(row, column, 1.01))
        return found

    async def next_message(self, symbols: tuple[str, ...], timeframe: str) -> None:
        """Wait for a candle."""
        self._reach()
        slept = self.has_slept
        upcoming = next((at for at, _, _ in self._messages if at > self.now), None)
        if upcoming is None:
            await asyncio.Event().wait()
            return
        ending = min((begin for begin, _, _ in self._away if begin > self.now), default=math.inf)
        await asyncio.sleep((min(upcoming, ending) - self.now) / NS + 1e-6)
        self._reach()
        if self.has_slept is not slept:
            raise FeedError("cut off", retryable=True, failure=Failure.NETWORK, retry_after_s=None)

    def candles(self, symbol: str, timeframe: str) -> list[Candle]:
        """The newest candles of the connection."""
        now = self.now
        while self._messages and self._messages[0][0] <= now:
            at, column, candle = self._messages.popleft()
            if not self._is_away(at):
                shown = self._shown[self._plan.series.symbols[column]]
                shown[candle.label] = candle
                while len(shown) > 8:
                    del shown[min(shown)]
        return list(self._shown[symbol].values())

    def let_go(self) -> "asyncio.Future[None]":
        """Forget the candles of the connection."""
        for shown in self._shown.values():
            shown.clear()
        gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        gone.set_result(None)
        return gone

    def _reach(self, *, rest: bool = False) -> None:
        if self._is_away(self.now, rest=rest):
            raise FeedError("away", retryable=True, failure=Failure.UNAVAILABLE, retry_after_s=None)

    def _is_away(self, at: int, *, rest: bool = False) -> bool:
        """Every second outage is one of the whole network, the others of the websocket alone."""
        return any(begin <= at < end and (whole or not rest) for begin, end, whole in self._away)

    def _candle(self, row: int, column: int, wrong: float = 1.0) -> Candle:
        series = self._plan.series
        bar = Bar(*(float(getattr(series, name)[row, column]) * wrong for name in Bar._fields))
        return Candle(int(series.times[row]), bar)

    def _sent(self) -> Iterator[Message]:
        """When each candle is shown: while it runs, and as it ended."""
        rng = np.random.default_rng(len(self.closes))
        bar_ns = self._plan.series.bar_ns
        for row in range(self._plan.history, len(self.closes)):
            for column in range(len(self._names)):
                fault, later = self._plan.at(row, column), float(rng.random())
                close, candle = self.closes[row], self._candle(row, column)
                if fault is Fault.LATE:
                    yield close + round((0.3 + 2.5 * later) * bar_ns), column, candle
                if fault in (Fault.LATE, Fault.LOST, *BY_REST):
                    continue
                o, h, low, c, v = candle.bar
                running = Candle(candle.label, Bar(o, max(o, (o + h) / 2), min(o, (o + low) / 2), o, v / 2))
                yield close - bar_ns + NS // 2, column, running
                yield close + round((0.8 if fault is Fault.DISORDERED else -0.5) * NS), column, candle
                if fault is Fault.CONTRADICTED:
                    at = close + round((0.1 + 0.8 * later) * bar_ns)
                    yield at, column, self._candle(row, column, 1.01)


class PlannedMarket:
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

    def told(self) -> Counter[Key]:
        """The anomalies that have to come."""
        found = self._plan.told(self.settings)
        series, labels = self._plan.series, self._plan.series.times.tolist()
        for (row, column), fault in self._plan.faults.items():
            if fault in BY_REST:
                found[Kind.REFILLED, series.symbols[column], labels[row]] += 1
        for number, row in enumerate(sorted(self._plan.outages)):
            for symbol in series.symbols:
                found[Kind.REFILLED, symbol, labels[row + 1]] += 1
            for kind in (Kind.DISCONNECTED, Kind.RECONNECTED):
                found[kind, None, None] += 1 + number % 2  # the websocket, and where all is away REST
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
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return
