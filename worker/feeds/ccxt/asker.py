"""Asker: asks an exchange for bars beside the feed, which never waits for an answer.

One request of a symbol at a time, a few in all; after a failure, or an answer without what was asked for, it
waits longer each time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from schemas.errors import FeedError
from services.feeds.clock_watch import NS
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from worker.feeds.ccxt.exchange import Candle, PublicExchange
from worker.feeds.ccxt.source_clock import Backoff

AT_ONCE = 4  # more would wait in ccxt's queue while their deadlines run


@dataclass(frozen=True)
class Question:
    """One request for bars.

    Attributes:
        symbol: whose.
        wanted: ns, the label for which it is sent.
        since: ns, the first label that is asked for.
        limit: bars at most.
        asked_at: ns, time at the exchange when it is sent: a bar that ends later may lack its end.
        in_doubt: that time is not sure.
    """

    symbol: str
    wanted: int
    since: int
    limit: int
    asked_at: int
    in_doubt: bool


@dataclass
class _Line:
    """The requests of one symbol.

    Attributes:
        backoff: between requests that brought nothing.
        not_before: steady ns of the next request.
        task: the one that runs.
        failing: the last one failed.
        refused: the exchange does not answer for the symbol any more, and that was told.
    """

    backoff: Backoff
    not_before: int = 0
    task: asyncio.Task[None] | None = None
    failing: bool = False
    refused: bool = False


class Asker:
    """Requests of one feed."""

    def __init__(
        self,
        exchange: PublicExchange,
        timeframe: str,
        most_s: float,
        *,
        steady: Callable[[], int],
        wake: asyncio.Event,
    ) -> None:
        """Nothing is asked yet.

        Args:
            exchange: loaded.
            timeframe: of the bars.
            most_s: longest wait between two requests for the same, unless the exchange asks for more.
            steady: clock, ns.
            wake: set when an answer has come.
        """
        self._exchange, self._timeframe, self._most_s = exchange, timeframe, most_s
        self._steady, self._wake = steady, wake
        self._room = asyncio.Semaphore(AT_ONCE)
        self._lines: dict[str, _Line] = {}
        self._pause_until = 0
        self._answers: list[tuple[Question, list[Candle]]] = []
        self._anomalies: list[FeedAnomaly] = []
        self._down = False

    def ask(self, question: Question) -> None:
        """Send a request, unless one of the symbol runs or has to wait."""
        line = self._line(question.symbol)
        if line.task is None and self._steady() >= max(self._pause_until, line.not_before):
            line.task = asyncio.create_task(self._request(question, line))

    def attempts(self, symbol: str) -> int:
        """How often what is wanted of a symbol was asked for in vain."""
        return self._line(symbol).backoff.failures

    def satisfied(self, symbol: str) -> None:
        """An answer held what was asked for, or nothing is wanted any more: the next hole begins anew."""
        line = self._line(symbol)
        if not line.failing:
            line.backoff.succeeded()
            line.not_before = 0

    def postpone(self, symbol: str, asked_s: float | None = None) -> None:
        """An answer did not hold what was asked for: wait before the next."""
        line = self._line(symbol)
        line.not_before = self._steady() + int(line.backoff.next_s(asked_s) * NS)

    def answers(self) -> tuple[list[FeedAnomaly], list[tuple[Question, list[Candle]]]]:
        """What has come since the last time, bars in the order in which they came."""
        found = self._anomalies, self._answers
        self._anomalies, self._answers = [], []
        return found

    async def stop(self) -> None:
        """Ask no more."""
        tasks = [line.task for line in self._lines.values() if line.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _line(self, symbol: str) -> _Line:
        return self._lines.setdefault(symbol, _Line(Backoff(self._most_s)))

    async def _request(self, question: Question, line: _Line) -> None:
        symbol, timeframe = question.symbol, self._timeframe
        try:
            async with self._room:
                found = await self._exchange.bars(symbol, timeframe, question.since, question.limit)
            self._answers.append((question, found))
            self._answered(symbol, line)
        except FeedError as error:
            self._failed(symbol, line, error)
        finally:
            line.task = None
            self._wake.set()

    def _answered(self, symbol: str, line: _Line) -> None:
        line.failing = False
        if line.refused:
            line.refused = False
            self._tell(FeedAnomalyKind.RECONNECTED, symbol)
        if self._down:
            self._down = False
            self._tell(FeedAnomalyKind.RECONNECTED)

    def _failed(self, symbol: str, line: _Line, error: FeedError) -> None:
        """Told once; a symbol that is refused by itself, since the others go on and stops are seen."""
        line.failing = True
        self.postpone(symbol, error.context.get("retry_after_s"))
        reason, cut_short = str(error.context["failure"]), error.context.get("cut_short")
        if reason == "rate_limited":
            self._pause_until = max(self._pause_until, line.not_before)
        if not error.retryable:
            if not line.refused:
                line.refused = True
                self._tell(FeedAnomalyKind.DISCONNECTED, symbol, reason=reason)
        elif not self._down or cut_short is not None:
            self._down = True
            self._tell(FeedAnomalyKind.DISCONNECTED, reason=reason, pause=cut_short)

    def _tell(self, kind: FeedAnomalyKind, symbol: str | None = None, **said: str | None) -> None:
        detail = {"channel": "rest"} | {name: word for name, word in said.items() if word}
        self._anomalies.append(FeedAnomaly(kind, symbol, None, detail))
