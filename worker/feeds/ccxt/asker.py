"""Asker: asks an exchange for bars beside the feed, which never waits for an answer.

One request of a symbol at a time, a few in all; after a failure, or an answer without what was asked for, it
waits longer each time.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from schemas.errors import FeedError
from services.feeds.label_grid import NS, LabelGrid
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from worker.feeds.ccxt.exchange import Candle, PublicExchange
from worker.feeds.ccxt.source_clock import Backoff, SourceClock

AT_ONCE = 4  # more would wait in ccxt's queue while their deadlines run
RECHECKED_BARS = 5  # asked for again with each new bar: one that came late or was corrected is told


class Answer(NamedTuple):
    """What an exchange said of a symbol.

    Attributes:
        asked_at: ns, time at the exchange when it was asked: a bar that ends later may lack its end.
        in_doubt: that time was not sure.
    """

    symbol: str
    bars: list[Candle]
    asked_at: int
    in_doubt: bool


@dataclass
class _Line:
    """The requests of one symbol.

    Attributes:
        wanted: label of the bar for whose sake they are sent.
        not_before: steady ns of the next one.
        failing: the last one failed.
    """

    backoff: Backoff
    wanted: int = 0
    not_before: int = 0
    failing: bool = False
    task: asyncio.Task[None] | None = None


class Asker:
    """Requests of one feed."""

    def __init__(
        self,
        exchange: PublicExchange,
        symbols: Iterable[str],
        grid: LabelGrid,
        clock: SourceClock,
        wake: asyncio.Event,
        most_s: float,
    ) -> None:
        """Nothing is asked yet; `wake` is set when an answer has come.

        Two requests for the same are at most `most_s` apart, unless the exchange asks for more.
        """
        self._exchange, self._grid, self._clock, self._wake = exchange, grid, clock, wake
        self._room = asyncio.Semaphore(AT_ONCE)
        self._lines = {symbol: _Line(Backoff(most_s)) for symbol in symbols}
        self._pause_until = 0
        self._answers: list[Answer] = []
        self._anomalies: list[FeedAnomaly] = []
        self._away: set[str | None] = set()  # symbols that are refused; None: nothing is answered at all

    def ask(self, symbol: str, wanted: int, first: int) -> None:
        """Send a request for the bars from `wanted` on, unless one of the symbol runs or has to wait.

        The first one asks for the bars before as well, down to `first`; a refill goes straight on.
        """
        line, bar_ns = self._lines[symbol], self._grid.bar_ns
        if line.task is not None:
            return
        if wanted != line.wanted and not line.failing:
            line.backoff.failures = line.not_before = 0
        line.wanted = wanted
        if self._clock.steady() >= max(self._pause_until, line.not_before):
            before = 0 if line.backoff.failures else min(RECHECKED_BARS, (wanted - first) // bar_ns)
            line.task = asyncio.create_task(self._request(line, symbol, wanted - before * bar_ns))

    def answers(self) -> tuple[list[FeedAnomaly], list[Answer]]:
        """What has come since the last time, in the order in which it came."""
        found = self._anomalies, self._answers
        self._anomalies, self._answers = [], []
        return found

    async def stop(self) -> None:
        """Ask no more."""
        tasks = [line.task for line in self._lines.values() if line.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _request(self, line: _Line, symbol: str, since: int) -> None:
        asked_at, in_doubt = self._clock.now(), self._clock.jumped
        limit = min((asked_at - since) // self._grid.bar_ns + 1, self._exchange.page_bars)
        try:
            async with self._room:
                found = await self._exchange.bars(symbol, self._grid.timeframe, since, limit)
            self._answers.append(Answer(symbol, found, asked_at, in_doubt))
            self._postpone(line, None)
            line.failing = False
            for away in (symbol, None):
                if away in self._away:
                    self._away.remove(away)
                    self._tell(FeedAnomalyKind.RECONNECTED, away)
        except FeedError as error:
            self._failed(line, symbol, error)
        finally:
            line.task = None
            self._wake.set()

    def _failed(self, line: _Line, symbol: str, error: FeedError) -> None:
        """Told once; a symbol that is refused by itself, since the others go on and stops are seen."""
        line.failing = True
        self._postpone(line, error.context["retry_after_s"])
        reason, pause = error.context["failure"], error.context.get("cut_short")
        if reason == "rate_limited":
            self._pause_until = max(self._pause_until, line.not_before)
        away = None if error.retryable else symbol
        if away not in self._away or pause is not None:
            self._away.add(away)
            self._tell(FeedAnomalyKind.DISCONNECTED, away, reason=reason, pause=pause)

    def _postpone(self, line: _Line, asked_s: float | None) -> None:
        """Wait before the bar of the same label is asked for again, longer each time."""
        line.not_before = self._clock.steady() + int(line.backoff.next_s(asked_s) * NS)

    def _tell(self, kind: FeedAnomalyKind, symbol: str | None, **said: str | None) -> None:
        detail = {"channel": "rest"} | {name: word for name, word in said.items() if word}
        self._anomalies.append(FeedAnomaly(kind, symbol, None, detail))
