"""LiveBars: asks an exchange for every bar that is over, and gives the answers to the assembler.

One look never waits: answers lie in the asker. Every bar is given once, and again where the exchange says it
otherwise, so what the assembler calls a duplicate or a conflict is the exchange's doing.
"""

import asyncio
from collections.abc import Iterable

from schemas.settings.live import FeedSettings
from services.feeds.assembler import Item, RowAssembler, SeenOnce
from services.feeds.label_grid import NS
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind
from services.feeds.raw_bar import RawBar
from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.asker import RECHECKED_BARS, Answer, Asker
from worker.feeds.ccxt.exchange import Candle, PublicExchange
from worker.feeds.ccxt.source_clock import SourceClock

MOST_GIVEN = 1_024  # bars of a symbol that are remembered when their rows have gone
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
        wake: asyncio.Event,
    ) -> None:
        """Nothing is asked yet.

        `first` is the label of the first bar that is wanted; `wake` is set when something came that is worth
        a look.
        """
        self._assembler, self._clock, self._grid = assembler, clock, assembler.grid
        self._settle_ns = int(settings.exchange.settle_s * NS)
        self._grace_ns = int(settings.grace_s * NS)
        self._slack_ns = int(settings.clock_jump_s * NS)
        self._first, self._row = first, first - self._grid.bar_ns
        self._given: dict[str, dict[int, tuple[Bar, ...]]] = {symbol: {} for symbol in assembler.symbols}
        self._open = SeenOnce()
        self._hole_since: int | None = None
        most_s = settings.exchange.backoff_max_s
        self._asker = Asker(exchange, assembler.symbols, self._grid, clock, wake, most_s)

    def look(self) -> list[Item]:
        """Everything that can be handed over now."""
        told, answers = self._asker.answers()
        is_back = any(item.kind is FeedAnomalyKind.RECONNECTED and item.symbol is None for item in told)
        items: list[Item] = [*self._clock.look(in_doubt=is_back), *told]
        now = self._clock.now()
        for answer in answers:
            items += self._answered(answer, now)
        for symbol in self._given:
            wanted = self._next_missing(symbol, now)
            if wanted is not None:
                self._asker.ask(symbol, wanted, self._first)
        return items + self.rows(hold=self._holds(now))

    def rows(self, *, hold: bool = False) -> list[Item]:
        """The rows that are due."""
        items = self._assembler.rows(self._clock.now(), hold=hold, blocked=self._clock.blocked)
        self._row = max((item.label for item in items if isinstance(item, BarRow)), default=self._row)
        oldest = self._row - RECHECKED_BARS * self._grid.bar_ns
        for symbol, given in self._given.items():
            if len(given) > MOST_GIVEN:
                self._given[symbol] = {label: said for label, said in given.items() if label >= oldest}
        return items

    def take(self, symbol: str, bars: Iterable[Candle]) -> list[FeedAnomaly]:
        """Give bars to the assembler; none of the future is a bar yet, and it is told once."""
        now, given, told = self._clock.now(), self._given[symbol], list[FeedAnomaly]()
        for label, bar in bars:
            if label <= now + self._slack_ns:
                given[label] = (*given.get(label, ()), bar)
            elif not self._open.first((symbol, label)):
                continue
            told += self._assembler.take(RawBar(symbol, label, bar), now)
        return told

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

    def _answered(self, answer: Answer, now: int) -> list[FeedAnomaly]:
        """Bars of one symbol that are new or others than before; those of a gap are a refill."""
        symbol, given, latest = answer.symbol, self._given[answer.symbol], now + self._slack_ns
        newest = max((candle.label for candle in answer.bars if candle.label <= latest), default=0)
        items = self._clock.heard(newest, self._grid.bar_ns)
        # While it is in doubt what time it is, the newest bar may be one that runs.
        open_from = newest if answer.in_doubt or self._clock.jumped else latest
        over_at, settled = min(answer.asked_at, now), self.newest_settled()
        news = [
            Candle(label, bar)
            for label, bar in answer.bars
            if bar not in given.get(label, ())
            and (label > latest or (label < open_from and self._settled(label, over_at)))
        ]
        filled = {
            label
            for label, _ in news
            if label not in given and self._row < label < settled and self._grid.has(label)
        }
        return items + self.take(symbol, news) + refill(symbol, filled)

    def _settled(self, label: int, at: int) -> bool:
        return self._grid.close(label) + self._settle_ns <= at

    def _next_missing(self, symbol: str, now: int) -> int | None:
        """The first label of a symbol that is over, was not given, and whose row has not gone."""
        label = self._row + self._grid.bar_ns
        while label in self._given[symbol]:
            label += self._grid.bar_ns
        return label if self._settled(label, now) else None

    def _holds(self, now: int) -> bool:
        """Whether rows wait for a refill: only for gaps of several bars, and no longer than `grace_s`."""
        wanted = [label for symbol in self._given if (label := self._next_missing(symbol, now)) is not None]
        if not wanted or self._grid.close(min(wanted)) + self._grid.bar_ns > now:
            self._hole_since = None
            return False
        steady = self._clock.steady()
        if self._hole_since is None:
            self._hole_since = steady
        return steady - self._hole_since < self._grace_ns


def refill(symbol: str, labels: set[int]) -> list[FeedAnomaly]:
    """Bars that came when newer ones were over; none where there are no labels."""
    if not labels:
        return []
    detail = {"bars": len(labels), "to": max(labels)}
    return [FeedAnomaly(FeedAnomalyKind.REFILLED, symbol, min(labels), detail)]
