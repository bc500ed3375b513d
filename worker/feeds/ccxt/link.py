"""SocketLink: the websocket of a feed as something that fails, waits and comes back; told once each time.

Never waits itself: `step` looks at what became of the connection and acts. REST goes on meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from schemas.settings.live import ExchangeSettings
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from worker.feeds.ccxt.exchange import PublicExchange
from worker.feeds.ccxt.stream import CandleStream
from worker.feeds.ccxt.time import Backoff

NS = 1_000_000_000
SILENT = "silent"


class SocketLink:
    """The websocket of one feed."""

    def __init__(
        self,
        exchange: PublicExchange,
        symbols: tuple[str, ...],
        timeframe: str,
        settings: ExchangeSettings,
        *,
        steady: Callable[[], int],
        wake: asyncio.Event,
    ) -> None:
        """Nothing is connected yet; the first `step` does it."""
        self._exchange, self._symbols, self._timeframe = exchange, symbols, timeframe
        self._settings, self._steady, self._wake = settings, steady, wake
        self._backoff = Backoff(settings.backoff_max_s)
        self._stream: CandleStream | None = None
        self._since = 0
        self._retry_at = 0
        self._told = False
        self._farewells: set[asyncio.Future[None]] = set()

    @property
    def next_look(self) -> int:
        """Steady time at which something may have to be done."""
        if self._stream is None:
            return self._retry_at
        return self._stream.heard_at + int(self._settings.silence_s * NS)

    def step(self) -> tuple[list[FeedAnomaly], bool]:
        """Act on what became of the connection.

        Returns:
            What is to be told; whether a connection begins, so that older candles count no more.
        """
        now = self._steady()
        stream = self._stream
        if stream is None:
            if now < self._retry_at:
                return [], False
            self._begin(now)
            return [], True
        if stream.failure is not None:
            return self.lose(str(stream.failure.context["failure"]), stream.failure.context), False
        if now >= self.next_look:
            return self.lose(SILENT), False
        return self._lives(stream, now), False

    def lose(self, reason: str, context: Mapping[str, Any] | None = None) -> list[FeedAnomaly]:
        """Give the connection up and plan the next; told unless it was down already for nothing longer."""
        said = context or {}
        wait = self._backoff.next_s(said.get("retry_after_s"))
        self._retry_at = self._steady() + int(wait * NS)
        self._end()
        cut_short = said.get("cut_short")
        if self._told and cut_short is None:
            return []
        self._told = True
        return [link_anomaly(FeedAnomalyKind.DISCONNECTED, "websocket", reason, cut_short=cut_short)]

    async def stop(self) -> None:
        """Give everything back."""
        self._end()
        await asyncio.gather(*self._farewells, return_exceptions=True)

    def _begin(self, now: int) -> None:
        self._since = now
        self._stream = CandleStream(
            self._exchange, self._symbols, self._timeframe, steady=self._steady, wake=self._wake
        )

    def _lives(self, stream: CandleStream, now: int) -> list[FeedAnomaly]:
        if now - self._since >= self._settings.silence_s * NS:
            self._backoff.succeeded()
        if not (self._told and stream.heard):
            return []
        self._told = False
        return [link_anomaly(FeedAnomalyKind.RECONNECTED, "websocket")]

    def _end(self) -> None:
        stream, self._stream = self._stream, None
        if stream is None:
            return
        stream.cancel()
        farewell = asyncio.ensure_future(_farewell(stream, self._exchange.let_go()))
        self._farewells.add(farewell)
        farewell.add_done_callback(self._farewells.discard)


async def _farewell(stream: CandleStream, closing: Awaitable[None]) -> None:
    await stream.ended()
    await closing


def link_anomaly(
    kind: FeedAnomalyKind,
    channel: str,
    reason: str | None = None,
    symbol: str | None = None,
    cut_short: str | None = None,
) -> FeedAnomaly:
    """A connection that failed or came back, for all symbols or for one; a pause cut short is told."""
    detail = {"channel": channel, "reason": reason, "pause": cut_short}
    return FeedAnomaly(kind, symbol, None, {name: said for name, said in detail.items() if said})
