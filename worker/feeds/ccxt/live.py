"""LiveBars: looks at what has come from an exchange and gives the bars that are over to the assembler.

One look never waits: candles of the websocket lie in the exchange object, answers of REST in the asker. Every
bar is given once, so what the assembler calls a duplicate or a conflict is the exchange's doing.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable

from schemas.settings.live import FeedSettings
from services.feeds.assembler import Item, RowAssembler
from services.feeds.label_grid import NS, LabelGrid
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind
from services.feeds.raw_bar import RawBar
from services.feeds.seen_once import SeenOnce
from worker.feeds.ccxt.asker import Answer, Asker
from worker.feeds.ccxt.candles import CandleBook
from worker.feeds.ccxt.exchange import Candle, PublicExchange
from worker.feeds.ccxt.link import SocketLink
from worker.feeds.ccxt.source_clock import SourceClock

MOST_GIVEN = 1_024
# Bars of a symbol that only REST had, after which its subscription is taken for dead; doubled each time.
MUTE_BARS = 3
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.02, 1.0


class LiveBars:
    """The bars of one feed from its start on."""

    def __init__(
        self,
        exchange: PublicExchange,
        assembler: RowAssembler,
        settings: FeedSettings,
        clock: SourceClock,
        first: int,
        live_from: int,
        wake: asyncio.Event,
    ) -> None:
        """Nothing is connected yet; the first look does it.

        Args:
            exchange: loaded.
            assembler: of the feed.
            settings: of the feed.
            clock: compared with the exchange.
            first: label of the first bar that is wanted.
            live_from: label from which on a bar that only REST had is told as a refill.
            wake: set when something came that is worth a look.
        """
        self._exchange, self._assembler, self._clock = exchange, assembler, clock
        self._grid: LabelGrid = assembler.grid
        self._settings = settings
        self._settle_ns = int(settings.exchange.settle_s * NS)
        self._grace_ns = int(settings.grace_s * NS)
        self._slack_ns = int(settings.clock_jump_s * NS)
        self._row = first - self._grid.bar_ns
        self._live_from = live_from
        self._books = {symbol: CandleBook() for symbol in assembler.symbols}
        self._given: dict[str, dict[int, None]] = {symbol: {} for symbol in assembler.symbols}
        self._odd = SeenOnce()
        self._mute: Counter[str] = Counter()
        self._mute_limit = dict.fromkeys(assembler.symbols, MUTE_BARS)
        self._hole_since: int | None = None
        timeframe, most_s = self._grid.timeframe, settings.exchange.backoff_max_s
        self._asker = Asker(exchange, timeframe, most_s, steady=clock.steady, wake=wake)
        self._link = None
        if exchange.has_candles:
            self._link = SocketLink(
                exchange, assembler.symbols, timeframe, settings.exchange, steady=clock.steady, wake=wake
            )

    def look(self) -> list[Item]:
        """Everything that can be handed over now."""
        newest = max((book.newest for book in self._books.values() if book.newest is not None), default=None)
        items: list[Item] = [*self._clock.look(newest, self._grid.bar_ns)]
        now = self._clock.now()
        for symbol, book in self._books.items():
            items += self._heard(symbol, book, now)
        items += self._connected()
        told, answers = self._asker.answers()
        items += told
        for answer in answers:
            items += self._answered(answer, now)
        for symbol in self._books:
            wanted = self._next_missing(symbol, now)
            if wanted is None:
                self._asker.given_up(symbol)
                continue
            bars = (now - wanted) // self._grid.bar_ns + 1
            self._asker.ask(symbol, wanted, min(bars, self._exchange.page_bars))
        return items + self.rows(hold=self._holds(now))

    def rows(self, *, hold: bool = False) -> list[Item]:
        """The rows that are due."""
        items = self._assembler.rows(self._clock.now(), hold=hold, blocked=self._clock.blocked)
        for item in items:
            if isinstance(item, BarRow):
                self._row = item.label
        return items

    def past(self, symbol: str, bars: Iterable[Candle]) -> list[FeedAnomaly]:
        """Take bars of the history that was read before the first look; none of the future is a bar yet."""
        now = self._clock.now()
        return [
            item
            for one in bars
            for item in self._take(symbol, one, now, closed=one.label <= now + self._slack_ns)
        ]

    def newest_settled(self) -> int:
        """Label of the newest bar that is over and has settled."""
        reached = self._clock.now() - self._settle_ns
        return reached - reached % self._grid.bar_ns - self._grid.bar_ns

    def pause_s(self) -> float:
        """Seconds until the next look is worth it, if nothing wakes earlier."""
        now = self._clock.now()
        moments = [self._grid.close(self.newest_settled() + self._grid.bar_ns) + self._settle_ns]
        due = self._assembler.next_due()
        if due is not None and due > now:
            moments.append(due)
        return max(SHORTEST_WAIT_S, min(LONGEST_WAIT_S, (min(moments) - now) / NS))

    async def stop(self) -> None:
        """Give back what runs beside the feed."""
        await self._asker.stop()
        await self._clock.stop()
        if self._link is not None:
            await self._link.stop()

    def _connected(self) -> list[FeedAnomaly]:
        if self._link is None:
            return []
        told, begins = self._link.step()
        if begins:
            self._mute.clear()
            for book in self._books.values():
                book.rejoin()
        if any(item.kind is FeedAnomalyKind.RECONNECTED for item in told):
            self._clock.check_soon()
        return told

    def _heard(self, symbol: str, book: CandleBook, now: int) -> list[FeedAnomaly]:
        """What the websocket brought of one symbol."""
        items: list[FeedAnomaly] = []
        possible = []
        for one in self._exchange.candles(symbol, self._grid.timeframe):
            if self._grid.has(one.label) and one.label <= now + self._slack_ns:
                possible.append(one)
            elif self._odd.first((symbol, one.label)):
                items += self._take(symbol, one, now, closed=False)
        given = self._given[symbol]
        for one in book.observe(possible):
            if one.label in given or one.label <= self._row:
                items += self._take(symbol, one, now)
        for one in book.final(self._row):
            if one.label not in given and self._settled(one.label, now):
                items += self._take(symbol, one, now)
                self._mute.pop(symbol, None)
                self._mute_limit[symbol] = MUTE_BARS
        return items

    def _answered(self, answer: Answer, now: int) -> list[FeedAnomaly]:
        """What REST brought of one symbol; bars that the websocket should have brought are a refill."""
        if answer.bars is None:
            return []
        symbol, book = answer.symbol, self._books[answer.symbol]
        known = set(self._given[symbol])
        items: list[FeedAnomaly] = []
        missed = []
        for one in answer.bars:
            if one.label > now + self._slack_ns:
                items += self._take(symbol, one, now, closed=False)
            elif self._settled(one.label, now) and one.label not in known:
                items += self._take(symbol, one, now)
                if not book.has(one.label) and self._was_expected(one.label):
                    missed.append(one)
        wanted = self._next_missing(symbol, now)
        if wanted is not None and wanted <= answer.since:
            self._asker.postpone(symbol)
        else:
            self._asker.satisfied(symbol)
        return [*items, *self._refilled(symbol, missed)]

    def _was_expected(self, label: int) -> bool:
        """Whether a bar should have come before REST was asked for it."""
        if label < self._live_from:
            return False
        return self._link is not None or label < self.newest_settled()

    def _refilled(self, symbol: str, missed: list[Candle]) -> list[FeedAnomaly]:
        if not missed:
            return []
        labels = {one.label for one in missed}  # an answer may hold a bar twice
        detail = {"bars": len(labels), "to": max(labels)}
        items = [FeedAnomaly(FeedAnomalyKind.REFILLED, symbol, min(labels), detail)]
        if self._link is not None and self._books[symbol].newest is None and missed[-1].bar.volume > 0.0:
            self._mute[symbol] += 1
            if self._mute[symbol] >= self._mute_limit[symbol]:
                self._mute_limit[symbol] *= 2
                items += self._link.lose(f"no candles of {symbol}")
        return items

    def _take(self, symbol: str, one: Candle, now: int, *, closed: bool = True) -> list[FeedAnomaly]:
        if closed:
            given = self._given[symbol]
            given[one.label] = None
            if len(given) > MOST_GIVEN:
                del given[min(given)]
        return self._assembler.take(RawBar(symbol, one.label, one.bar, closed), now)

    def _settled(self, label: int, now: int) -> bool:
        return self._grid.close(label) + self._settle_ns <= now

    def _next_missing(self, symbol: str, now: int) -> int | None:
        """The first label of a symbol that is over, was not given, and whose row has not gone."""
        label = self._row + self._grid.bar_ns
        while label in self._given[symbol]:
            label += self._grid.bar_ns
        return label if self._settled(label, now) else None

    def _holds(self, now: int) -> bool:
        """Whether rows wait for a refill: only for gaps of several bars, and no longer than `grace_s`."""
        wanted = [label for symbol in self._books if (label := self._next_missing(symbol, now)) is not None]
        if not wanted or self._grid.close(min(wanted)) + self._grid.bar_ns > now:
            self._hole_since = None
            return False
        steady = self._clock.steady()
        if self._hole_since is None:
            self._hole_since = steady
        return steady - self._hole_since < self._grace_ns
