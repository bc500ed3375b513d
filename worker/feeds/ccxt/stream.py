"""CandleStream: keeps the websocket subscriptions of a feed alive, and tells when they fail.

Candles gather in the exchange object; nobody is woken by each, since bars are taken when they are over.
"""

import asyncio
from collections.abc import Callable

from schemas.errors import FeedError
from worker.feeds.ccxt.exchange import PublicExchange


class CandleStream:
    """One connection's worth of listening.

    Attributes:
        failure: why it ended; None while it listens.
        heard: messages so far.
        heard_at: steady time of the last message, else of the start; ns.
    """

    def __init__(
        self,
        exchange: PublicExchange,
        symbols: tuple[str, ...],
        timeframe: str,
        *,
        steady: Callable[[], int],
        wake: asyncio.Event,
    ) -> None:
        """Begin to listen.

        Args:
            exchange: loaded.
            symbols: to subscribe to.
            timeframe: of the candles.
            steady: the clock of `heard_at`.
            wake: set with the first message, and when listening ends.
        """
        self.failure: FeedError | None = None
        self.heard = 0
        self.heard_at = steady()
        self._exchange, self._timeframe = exchange, timeframe
        self._steady, self._wake = steady, wake
        groups = [symbols] if exchange.many_at_once else [(symbol,) for symbol in symbols]
        self._tasks = [asyncio.create_task(self._listen(group)) for group in groups]

    def cancel(self) -> None:
        """Listen no more."""
        for task in self._tasks:
            task.cancel()

    async def ended(self) -> None:
        """Until nothing listens any more."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, symbols: tuple[str, ...]) -> None:
        try:
            while True:
                await self._exchange.next_message(symbols, self._timeframe)
                self.heard += 1
                self.heard_at = self._steady()
                if self.heard == 1:
                    self._wake.set()
        except FeedError as error:
            if self.failure is None:
                self.failure = error
                self._wake.set()
