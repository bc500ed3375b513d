"""Bars of the past, page by page, with patience for an exchange that is slow, away or asks for a pause."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from schemas.errors import FeedError
from schemas.vocabulary import TIMEFRAME_SECONDS
from worker.feeds.ccxt_exchange import Candle, PublicExchange
from worker.feeds.ccxt_time import Backoff

T = TypeVar("T")
NS = 1_000_000_000
ATTEMPTS = 6


def _silent(error: FeedError, seconds: float) -> None:
    return None


@dataclass(frozen=True)
class Patience:
    """How often a request is tried, and how long is waited in between.

    Attributes:
        attempts: of one request in all.
        most_s: longest wait, unless the exchange asks for more.
        sleep: waits for so many seconds.
        tell: hears of every failure that is not the last, and of the wait that follows it.
    """

    attempts: int = ATTEMPTS
    most_s: float = 60.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    tell: Callable[[FeedError, float], None] = _silent

    async def ask(self, request: Callable[[], Awaitable[T]]) -> T:
        """The answer of one of the attempts.

        Raises:
            FeedError: the last one failed, or one failed in a way that trying again does not mend.
        """
        backoff = Backoff(self.most_s)
        while True:
            try:
                return await request()
            except FeedError as error:
                if not error.retryable or backoff.failures + 1 >= self.attempts:
                    raise
                wait = backoff.next_s(error.context.get("retry_after_s"))
                self.tell(error, wait)
                await self.sleep(wait)


async def pages(
    exchange: PublicExchange, symbol: str, timeframe: str, first: int, last: int, patience: Patience
) -> AsyncIterator[tuple[int, list[Candle]]]:
    """The bars of a symbol with first <= label <= last, one answer at a time.

    An empty answer is asked for twice, and then taken for a stretch without bars.

    Args:
        exchange: loaded.
        symbol: checked.
        timeframe: checked.
        first: ns, a label.
        last: ns, a label whose bar is over.
        patience: with failures.

    Yields:
        The label from which on the next page begins, and the bars of this one in the order they came in.

    Raises:
        FeedError: patience is at its end.
    """
    bar_ns = TIMEFRAME_SECONDS[timeframe] * NS
    since = first
    while since <= last:
        limit = min(exchange.page_bars, (last - since) // bar_ns + 2)

        async def request(since: int = since, limit: int = limit) -> list[Candle]:
            return await exchange.bars(symbol, timeframe, since, limit)

        found = await patience.ask(request) or await patience.ask(request)
        reached = max((one.label for one in found), default=since + (limit - 1) * bar_ns)
        since = reached - reached % bar_ns + bar_ns
        yield since, [one for one in found if one.label <= last]
