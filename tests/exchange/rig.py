"""A feed on the loopback exchange with a clock that the test moves: nothing happens by itself."""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from schemas.settings.live import ExchangeSettings, FeedSettings
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind
from tests.exchange.server import MINUTE_MS, START_MS, ExchangeServer, candle
from worker.feeds.ccxt.feed import CcxtFeed
from worker.feeds.ccxt.source_clock import FeedTime

NS_PER_MS = 1_000_000
PATIENCE_S = 30.0  # real time in which loopback answers on a busy machine, or the test has failed


@dataclass
class ManualTime(FeedTime):
    """Clocks that stand still until they are moved; waits that end when they have been."""

    wall_ns: int = START_MS * NS_PER_MS
    steady_ns: int = 10**15
    waits: list[float] = field(default_factory=list)
    _waiting: list[tuple[int, asyncio.Event]] = field(default_factory=list)

    def wall(self) -> int:
        """Ns since 1970."""
        return self.wall_ns

    def steady(self) -> int:
        """Ns, forward only."""
        return self.steady_ns

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Until the event is set or the clock was moved past the end."""
        over = asyncio.Event()
        self.waits.append(seconds)
        self._waiting.append((self.steady_ns + int(seconds * 1e9), over))
        tasks = [asyncio.ensure_future(item.wait()) for item in (event, over)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting = [entry for entry in self._waiting if entry[1] is not over]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def idle(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def move(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.wall_ns += int(seconds * 1e9)
        self.steady_ns += int(seconds * 1e9)
        for until, over in list(self._waiting):
            if until <= self.steady_ns:
                self._waiting.remove((until, over))
                over.set()


async def until(condition: Callable[[], bool], what: str) -> None:
    """Give the loop its turns until something is so."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not condition():  # noqa: ASYNC110 - what is waited for is seen from outside only
                await asyncio.sleep(0)
    except TimeoutError:
        raise AssertionError(f"it never happened: {what}") from None


class Overheard:
    """A feed whose items are noted on their way to somebody else."""

    def __init__(self, feed: CcxtFeed, items: list[BarRow | FeedAnomaly]) -> None:
        self._feed, self._items = feed, items

    def __getattr__(self, name: str) -> Any:
        return getattr(self._feed, name)

    async def items(self, after: int | None) -> AsyncIterator[BarRow | FeedAnomaly]:
        """Those of the feed."""
        async for item in self._feed.items(after):
            self._items.append(item)
            yield item


Reader = Callable[[Any], Coroutine[Any, Any, Any]]


class Rig:
    """One feed, what it gave so far, and the exchange behind it."""

    def __init__(
        self,
        server: ExchangeServer,
        feed: CcxtFeed,
        time: ManualTime,
        after: int | None,
        reader: Reader | None = None,
    ) -> None:
        self.server, self.feed, self.time = server, feed, time
        self.items: list[BarRow | FeedAnomaly] = []
        self.asking = _count_requests(feed)
        self.task: asyncio.Task[Any] = asyncio.create_task(
            self._consume(after) if reader is None else reader(Overheard(feed, self.items))
        )

    async def _consume(self, after: int | None) -> None:
        async for item in self.feed.items(after):
            self.items.append(item)

    @property
    def rows(self) -> list[BarRow]:
        """Rows so far."""
        return [item for item in self.items if isinstance(item, BarRow)]

    @property
    def live(self) -> list[BarRow]:
        """Rows on which something may be decided."""
        return [row for row in self.rows if not row.history]

    @property
    def shown(self) -> list[FeedAnomaly]:
        """Anomalies so far."""
        return [item for item in self.items if isinstance(item, FeedAnomaly)]

    def kinds(self, symbol: str | None = None) -> list[FeedAnomalyKind]:
        """Kinds of the anomalies so far."""
        return [item.kind for item in self.shown if symbol is None or item.symbol == symbol]

    def requested(self, path: str) -> int:
        """How often a path of REST was asked for."""
        return sum(request == path for request, _ in self.server.requests)

    def minutes(self) -> list[int]:
        """Labels of the live rows in minutes after the start of the exchange's clock."""
        return [(row.label // NS_PER_MS - START_MS) // MINUTE_MS for row in self.live]

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something, or for the feed to end in an error."""
        await until(lambda: condition() or self.task.done(), what)
        if self.task.done():
            self.task.result()

    async def ready(self) -> None:
        """The history is read; minute 0 begins to trade."""
        await self.settled()
        await self.candles(0)

    async def to(self, minute: int, second: float = 0.0) -> None:
        """Let time pass up to a moment, in steps that become small around the end of a minute."""
        until_ms = START_MS + minute * MINUTE_MS + int(second * 1_000)
        while self.server.now_ms < until_ms:
            inside = (self.server.now_ms - START_MS) % MINUTE_MS / 1_000
            piece = 0.5 if inside < 8.0 or inside >= 59.0 else min(10.0, 59.0 - inside)
            await self.pass_time(min(piece, (until_ms - self.server.now_ms) / 1_000))

    async def trade(self, first: int, last: int, *markets: str) -> None:
        """Minutes go by, with a candle of each market at the beginning of each; up to 2 s into the last."""
        for minute in range(first, last + 1):
            await self.to(minute)
            await self.candles(minute, 0.0, *markets)
            await self.to(minute, 2.0)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass for exchange and feed."""
        self.server.now_ms += round(seconds * 1_000)
        self.time.move(seconds)
        await self.settled()

    async def settled(self) -> None:
        """Until requests are answered and the feed waits for time; one that hangs is not waited for."""
        for _ in range(2):
            for _ in range(20):
                await asyncio.sleep(0)
            await self.until(
                lambda: self.time.idle and len(self.asking) <= self.server.hanging, "the feed waits"
            )

    async def candles(self, minute: int, shift: float = 0.0, *markets: str) -> None:
        """The exchange trades: it shows the candle of a minute."""
        for market in markets or tuple(self.server.symbols):
            open_ms = START_MS + minute * MINUTE_MS
            self.server.history.setdefault((market, "1m"), {})[open_ms] = candle(minute, 100.0 + shift)
        await self.settled()


def _count_requests(feed: CcxtFeed) -> list[str]:
    """What the feed is asking by REST at present."""
    exchange: Any = feed._exchange
    request, asking = exchange._ask, []

    @asynccontextmanager
    async def counted(what: str, **options: Any) -> AsyncIterator[None]:
        asking.append(what)
        try:
            async with request(what, **options):
                yield
        finally:
            asking.remove(what)

    exchange._ask = counted
    return asking


@asynccontextmanager
async def rig(
    *,
    server: ExchangeServer | None = None,
    symbols: tuple[str, ...] = ("BTC/USDT", "ETH/USDT"),
    timeframe: str = "1m",
    after: int | None = None,
    history_bars: int = 3,
    exchange: dict[str, Any] | None = None,
    reader: Reader | None = None,
    **settings: Any,
) -> AsyncIterator[Rig]:
    """A feed that runs on an exchange whose history is filled up to its clock."""
    server = server or ExchangeServer()
    async with server:
        for market in server.symbols:
            if (market, "1m") not in server.history:
                server.fill(market, "1m", START_MS - 10 * MINUTE_MS, 11)
        given = {"request_timeout_s": 2.0, "request_interval_ms": 0.0} | (exchange or {})
        chosen = ExchangeSettings(rest_url=server.rest_url, **given)
        time = ManualTime(wall_ns=server.now_ms * NS_PER_MS)
        feed = CcxtFeed(
            "binance",
            symbols,
            timeframe,
            FeedSettings(history_bars=history_bars, exchange=chosen, **settings),
            time=time,
        )
        running = Rig(server, feed, time, after, reader)
        try:
            yield running
        finally:
            await feed.close()
            running.task.cancel()
            await asyncio.gather(running.task, return_exceptions=True)


def on_rig(**options: Any) -> Callable[[Callable[..., Coroutine[Any, Any, None]]], Callable[..., None]]:
    """A test that is given a rig made so as its first argument, run to its end."""

    def runs(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
        @functools.wraps(test)
        def run(*given: Any, **named: Any) -> None:
            async def drive() -> None:
                async with rig(**options) as made:
                    await test(made, *given, **named)

            asyncio.run(drive())

        signature = inspect.signature(test)
        run.__signature__ = signature.replace(parameters=[*signature.parameters.values()][1:])  # type: ignore[attr-defined]
        return run

    return runs
