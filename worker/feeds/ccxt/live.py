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
        for answer in answers:
            items += self._answered(answer)
        missing = self._missing()
        for symbol, label in missing.items():
            self._asker.ask(symbol, label, self._first)
        return items + self.rows(hold=self._holds(missing.values()))

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

    def newest_settled(self, at: int | None = None) -> int:
        """Label of the newest bar that is over and has settled, now or at a time at the exchange (ns)."""
        reached = (self._clock.now() if at is None else at) - self._settle_ns
        return reached - reached % self._grid.bar_ns - self._grid.bar_ns

    def pause_s(self) -> float:
        """Seconds until the next look is worth it, if nothing wakes earlier."""
        now, due = self._clock.now(), self._assembler.next_due()
        next_settles = self.newest_settled() + 2 * self._grid.bar_ns + self._settle_ns
        until = due if due is not None and now < due < next_settles else next_settles
        return max(SHORTEST_WAIT_S, min(LONGEST_WAIT_S, (until - now) / NS))

    async def stop(self) -> None:
        """Give back what runs beside the feed."""
        await self._asker.stop()
        await self._clock.stop()

    def _answered(self, answer: Answer) -> list[FeedAnomaly]:
        """Bars of one symbol that are new or others than before; those of a gap are a refill."""
        symbol, given, now = answer.symbol, self._given[answer.symbol], self._clock.now()
        latest, over = now + self._slack_ns, self.newest_settled(min(answer.asked_at, now))
        newest = max((candle.label for candle in answer.bars if candle.label <= latest), default=0)
        items = self._clock.heard(newest, self._grid.bar_ns)
        if answer.in_doubt or self._clock.jumped:  # the newest may be one that runs
            over = min(over, newest - 1)
        news = [
            candle
            for candle in answer.bars
            if not over < candle.label <= latest and candle.bar not in given.get(candle.label, ())
        ]
        gap = range(self._row + self._grid.bar_ns, self.newest_settled(), self._grid.bar_ns)
        filled = {candle.label for candle in news if candle.label in gap} - given.keys()
        return items + self.take(symbol, news) + refill(symbol, filled)

    def _missing(self) -> dict[str, int]:
        """The first label of each symbol that is over, was not given, and whose row has not gone."""
        found, newest = {}, self.newest_settled()
        for symbol, given in self._given.items():
            label = self._row + self._grid.bar_ns
            while label in given:
                label += self._grid.bar_ns
            if label <= newest:
                found[symbol] = label
        return found

    def _holds(self, missing: Iterable[int]) -> bool:
        """Whether rows wait for a refill: only for gaps of several bars, and no longer than `grace_s`."""
        now, steady = self._clock.now(), self._clock.steady()
        if self._grid.close(min(missing, default=now)) + self._grid.bar_ns > now:
            self._hole_since = None
            return False
        if self._hole_since is None:
            self._hole_since = steady
        return steady - self._hole_since < self._grace_ns


def refill(symbol: str, labels: set[int]) -> list[FeedAnomaly]:
    """Bars that came when newer ones were over; none where there are no labels."""
    if not labels:
        return []
    detail = {"bars": len(labels), "to": max(labels)}
    return [FeedAnomaly(FeedAnomalyKind.REFILLED, symbol, min(labels), detail)]
