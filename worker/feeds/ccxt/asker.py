"""Asker: asks an exchange for bars beside the feed, which never waits for an answer.

One request of a symbol at a time, a few in all; after a failure, or an answer without what was asked for, it
waits longer each time.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from schemas.errors import FeedError
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from worker.feeds.ccxt.errors import Failure
from worker.feeds.ccxt.exchange import Candle, PublicExchange
from worker.feeds.ccxt.link import link_anomaly
from worker.feeds.ccxt.time import Backoff

NS = 1_000_000_000
AT_ONCE = 4  # more would wait in ccxt's queue while their deadlines run


@dataclass(frozen=True)
class Answer:
    """What came of one request.

    Attributes:
        symbol: asked for.
        since: ns, the label asked for first.
        bars: in the order in which they came; None when the request failed.
    """

    symbol: str
    since: int
    bars: list[Candle] | None


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
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._backoffs: dict[str, Backoff] = {}
        self._not_before: dict[str, int] = {}
        self._pause_until = 0
        self._answers: list[Answer] = []
        self._anomalies: list[FeedAnomaly] = []
        self._down = False
        self._refused: set[str] = set()
        self._failing: set[str] = set()

    def ask(self, symbol: str, since: int, bars: int) -> None:
        """Ask for some bars of a symbol from a label on, unless it is asked for or has to wait."""
        earliest = max(self._pause_until, self._not_before.get(symbol, 0))
        if symbol not in self._tasks and self._steady() >= earliest:
            self._tasks[symbol] = asyncio.create_task(self._request(symbol, since, bars))

    def satisfied(self, symbol: str) -> None:
        """An answer held what was asked for."""
        self._backoffs.pop(symbol, None)
        self._not_before.pop(symbol, None)

    def given_up(self, symbol: str) -> None:
        """Nothing of a symbol is wanted any more: the next hole begins anew, unless requests fail."""
        if symbol not in self._failing:
            self.satisfied(symbol)

    def postpone(self, symbol: str, asked_s: float | None = None) -> None:
        """An answer did not hold what was asked for: wait before the next."""
        wait = self._backoffs.setdefault(symbol, Backoff(self._most_s)).next_s(asked_s)
        self._not_before[symbol] = self._steady() + int(wait * NS)

    def answers(self) -> tuple[list[FeedAnomaly], list[Answer]]:
        """What has come since the last time."""
        found = self._anomalies, self._answers
        self._anomalies, self._answers = [], []
        return found

    async def stop(self) -> None:
        """Ask no more."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def _request(self, symbol: str, since: int, bars: int) -> None:
        try:
            async with self._room:
                found = await self._exchange.bars(symbol, self._timeframe, since, bars)
            self._answers.append(Answer(symbol, since, found))
            self._up(symbol)
        except FeedError as error:
            self._failed(symbol, since, error)
        finally:
            self._tasks.pop(symbol, None)
            self._wake.set()

    def _failed(self, symbol: str, since: int, error: FeedError) -> None:
        asked = error.context.get("retry_after_s")
        self._failing.add(symbol)
        self.postpone(symbol, asked)
        if error.context["failure"] == Failure.RATE_LIMITED:
            self._pause_until = max(self._pause_until, self._not_before[symbol])
        self._answers.append(Answer(symbol, since, None))
        reason, cut_short = str(error.context["failure"]), error.context.get("cut_short")
        if not error.retryable:
            self._refuse(symbol, reason)
        elif not self._down or cut_short is not None:
            self._down = True
            self._anomalies.append(
                link_anomaly(FeedAnomalyKind.DISCONNECTED, "rest", reason, cut_short=cut_short)
            )

    def _refuse(self, symbol: str, reason: str) -> None:
        """A symbol that the exchange does not answer for any more: the others go on, so stops are seen."""
        if symbol not in self._refused:
            self._refused.add(symbol)
            self._anomalies.append(link_anomaly(FeedAnomalyKind.DISCONNECTED, "rest", reason, symbol=symbol))

    def _up(self, symbol: str) -> None:
        self._failing.discard(symbol)
        if symbol in self._refused:
            self._refused.remove(symbol)
            self._anomalies.append(link_anomaly(FeedAnomalyKind.RECONNECTED, "rest", symbol=symbol))
        if self._down:
            self._down = False
            self._anomalies.append(link_anomaly(FeedAnomalyKind.RECONNECTED, "rest"))
