"""Bars of the past, page by page, with patience for an exchange that is slow, away or asks for a pause."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeVar

from schemas.errors import FeedError
from schemas.timeframes import TIMEFRAME_SECONDS
from services.feeds.label_grid import NS
from services.feeds.raw_bar import RawBar
from worker.feeds.ccxt.source_clock import backoff_s

T = TypeVar("T")
REQUESTED = 2  # times, before an answer without a usable bar is believed
SLACK_NS = 60 * NS  # by which a label may seem to lie beyond the present: clocks differ


@dataclass(frozen=True)
class Patience:
    """How often a request is tried, and how long is waited in between."""

    attempts: int = 6
    most_s: float = 60.0  # longest wait, unless the exchange asks for more
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    # hears of every failure that is not the last, and of the seconds that are waited after it
    tell: Callable[[FeedError, float], None] = lambda error, seconds: None

    async def ask(self, request: Callable[[], Awaitable[T]]) -> T:
        """The answer of one of the attempts.

        Raises:
            FeedError: the last one failed, or one failed in a way that trying again does not mend.
        """
        failures = 0
        while True:
            try:
                return await request()
            except FeedError as error:
                failures += 1
                if not error.retryable or failures == self.attempts:
                    raise
                wait = backoff_s(failures, self.most_s, error.context["retry_after_s"])
                self.tell(error, wait)
                await self.sleep(wait)


class Page(NamedTuple):
    """One answer of an exchange."""

    next_label: int  # ns, from which on the next page begins
    bars: list[RawBar]  # up to the last that was asked for, as they came
    future: list[RawBar]  # those that cannot be, since they lie beyond the present


class BarSource(Protocol):
    """What gives bars page by page; see `PublicExchange`."""

    @property
    def page_bars(self) -> int:
        """Most bars of one answer."""

    async def bars(self, symbol: str, timeframe: str, since_ns: int, limit: int) -> list[RawBar]:
        """Bars with labels from `since_ns` on."""


async def pages(
    exchange: BarSource,
    symbol: str,
    timeframe: str,
    first: int,
    last: int,
    patience: Patience,
    now: Callable[[], int],
) -> AsyncIterator[Page]:
    """The bars of a symbol with first <= label <= last, one answer at a time.

    The next page begins behind the newest bar among those asked for. A label off the grid, beyond the
    present or far ahead of its page moves nothing: a single one would hide all the bars before it. An answer
    without a bar among those asked for is asked for twice, and then taken for a stretch without bars. Each
    page moves on by a bar at least, so there is an end whatever is answered.

    Labels are ns, that of `last` belongs to a bar that is over; `now` is the time at the exchange, ns.

    Raises:
        FeedError: patience is at its end.
    """
    bar_ns = TIMEFRAME_SECONDS[timeframe] * NS
    since = first
    while since <= last:
        limit = min(exchange.page_bars, (last - since) // bar_ns + 2)
        later = since + limit * bar_ns
        for _ in range(REQUESTED):
            found = await patience.ask(partial(exchange.bars, symbol, timeframe, since, limit))
            present = now() + SLACK_NS
            labels = [bar.label for bar in found if bar.label % bar_ns == 0 and bar.label <= present]
            inside = [label for label in _unbroken(sorted(labels), bar_ns) if label < later]
            if inside:
                break
        since = inside[-1] + bar_ns if inside else min(labels, default=later)
        past = [bar for bar in found if bar.label < since and bar.label <= last]
        yield Page(since, past, [bar for bar in found if bar.label > present])


def _unbroken(labels: list[int], bar_ns: int) -> list[int]:
    """Labels up to the first hole longer than half the bars of the answer: a stray may stand behind it."""
    for count, (before, label) in enumerate(pairwise(labels), 1):
        if 2 * (label - before) > len(labels) * bar_ns:
            return labels[:count]
    return labels
