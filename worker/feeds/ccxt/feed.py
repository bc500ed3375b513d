"""CcxtFeed: closed bars of an exchange, asked for one by one as they are over.

Requests run beside the feed: rows never wait for an answer longer than `grace_s`. Public data only: nothing
here trades.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from typing import Literal

import structlog

from schemas.errors import FeedError
from schemas.settings.live import FeedSettings
from services.feeds.assembler import MOST_WAITING, Item, RowAssembler
from services.feeds.label_grid import LabelGrid
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind, Recalled, news_after_history
from worker.feeds.ccxt.exchange import PublicExchange
from worker.feeds.ccxt.history import Patience, pages
from worker.feeds.ccxt.live import RECHECKED_BARS, LiveBars, refill
from worker.feeds.ccxt.source_clock import FeedTime, SourceClock

# Bars of history that wait before rows are made of them; with fewer, symbols would look stale in between.
HELD_BARS = MOST_WAITING // 2


class CcxtFeed:
    """The rows of some symbols of one exchange."""

    lock_step = False
    label: Literal["open", "close"] = "open"

    def __init__(
        self,
        exchange: str,
        symbols: Iterable[str],
        timeframe: str,
        settings: FeedSettings,
        *,
        time: FeedTime | None = None,
    ) -> None:
        """Nothing is connected yet; exchange and symbols are named as in ccxt, for example `BTC/USDT`.

        Raises:
            ConfigError: ccxt is not installed, or knows no such exchange.
        """
        self.name = f"ccxt:{exchange}"
        self.symbols = tuple(sorted(set(symbols)))
        self.timeframe = timeframe
        self._settings = settings
        self._time = time or FeedTime()
        self._exchange = PublicExchange(exchange, settings.exchange)
        self._grid = LabelGrid(timeframe, self.label, settings.continuous is not False)
        self._clock = SourceClock(self._exchange, settings.clock_jump_s, self._time)
        self._assembler: RowAssembler | None = None
        self._recalled: Recalled = (), ()
        self._closing, self._wake = asyncio.Event(), asyncio.Event()

    def recall(self, rows: Sequence[BarRow], conflicts: Collection[tuple[str, int]]) -> None:
        """See `RowMemory`."""
        self._recalled = rows, conflicts

    async def items(self, after: int | None) -> AsyncIterator[Item]:
        """See `MarketFeed`; without `after`, `history_bars` rows come first, as history.

        Raises:
            ConfigError: the exchange has no such bars.
            DataError: it has no such symbol.
            FeedError: it cannot be reached at the start, or refuses for good.
        """
        try:
            async for together in self._items(after):
                for item in together:
                    if self._closing.is_set():
                        return
                    yield item
        except FeedError:
            if not self._closing.is_set():
                raise
        finally:
            await self._exchange.close()

    def last_labels(self) -> dict[str, int]:
        """The label of each symbol's last bar that was handed over."""
        return {} if self._assembler is None else self._assembler.last_labels()

    async def close(self) -> None:
        """Give back every connection; a running `items` ends."""
        self._closing.set()
        self._wake.set()
        await self._exchange.close()

    async def _items(self, after: int | None) -> AsyncIterator[Sequence[Item]]:
        most_s = self._settings.exchange.backoff_max_s
        patience = Patience(most_s=most_s, sleep=self._sleep, tell=self._tell)
        await patience.ask(self._exchange.load)
        self._exchange.check(self.symbols, self.timeframe)
        news = await patience.ask(self._clock.ask)
        start, bar_ns = self._clock.now(), self._grid.bar_ns
        assembler = RowAssembler(self.symbols, self._grid, self._settings, start=start, after=after)
        assembler.recall(*self._recalled)
        self._assembler = assembler
        earliest = start - start % bar_ns - self._settings.history_bars * bar_ns
        first = earliest if after is None else after + bar_ns
        again = first if after is None else first - RECHECKED_BARS * bar_ns
        live = LiveBars(self._exchange, assembler, self._settings, self._clock, (again, first), self._wake)
        try:
            past = (item async for found in self._past(live, again, first, patience) for item in found)
            if after is not None:
                yield news
            async for item in news_after_history(past, news) if after is None else past:
                yield [item]
            while not self._closing.is_set():
                self._wake.clear()
                yield live.look()
                await self._time.wait(self._wake, live.pause_s())
        finally:
            await live.stop()

    async def _past(
        self, live: LiveBars, again: int, first: int, patience: Patience
    ) -> AsyncIterator[Sequence[Item]]:
        """Rows from `first` to the present, some at a time; after a restart they are a refill.

        The bars from `again` up to there were taken before it.
        """
        bar_ns, begin, came, is_refill = self._grid.bar_ns, first, Counter[str](), again < first
        while first <= live.newest_settled():
            last = min(live.newest_settled(), first + (HELD_BARS // len(self.symbols) - 1) * bar_ns)
            for symbol in self.symbols:
                labels: set[int] = set()
                span = (symbol, self.timeframe, min(again, first), last)
                async for page in pages(self._exchange, *span, patience, self._clock.now):
                    labels |= {raw.label for raw in page.bars if self._grid.has(raw.label)}
                    yield live.take([*page.bars, *page.future])
                came[symbol] += len(labels)
                if is_refill:
                    yield refill(symbol, {label for label in labels if label >= first})
            yield live.rows()
            first = again = last + bar_ns
        request = (first - begin) // bar_ns
        for symbol in () if is_refill else self.symbols:  # of a refill the rows tell what is missing
            if came[symbol] < request:
                detail = {"bars": request - came[symbol], "to": first - bar_ns, "history": request}
                yield [FeedAnomaly(FeedAnomalyKind.MISSING, symbol, begin, detail)]

    def _tell(self, error: FeedError, seconds: float) -> None:
        """Nothing comes while the feed starts, so a failure is logged as it happens."""
        structlog.stdlib.get_logger("thinktwice.feed").warning(
            "feed_start_waits", feed=self.name, reason=str(error), wait_s=seconds
        )

    async def _sleep(self, seconds: float) -> None:
        """Wait between two attempts at the start; a feed that is closed meanwhile ends in a `FeedError`."""
        await self._time.wait(self._closing, seconds)
        if self._closing.is_set():
            raise FeedError(f"{self.name}: closed while it was starting", retryable=True)
