"""What time it is at an exchange, asked for at the start, every hour and after every doubt; and waiting."""

import asyncio
import contextlib
import time

from schemas.errors import FeedError
from services.feeds.clock_watch import NS, ClockWatch, SourceTime
from services.feeds.port import FeedAnomaly
from worker.feeds.ccxt.exchange import PublicExchange

CHECK_S, AGAIN_S = 3_600, 60


class FeedTime:
    """Clocks and waiting of a feed: those of this machine, unless a test puts others in their place."""

    def wall(self) -> int:
        """Ns since 1970."""
        return time.time_ns()

    def steady(self) -> int:
        """Ns on a clock that only moves forward."""
        return time.monotonic_ns()

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Until the event is set, or so many seconds are over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await event.wait()


def backoff_s(failures: int, most_s: float, asked_s: float | None) -> float:
    """Seconds to wait after failures in a row: doubled from one up to `most_s`, unless more is asked for.

    There is no chance in it, so that a run can be repeated.
    """
    return max(min(most_s, 2.0 ** min(failures - 1, 20)), asked_s or 0.0)


class SourceClock(ClockWatch):
    """The clocks of this machine beside that of one exchange, which `task` asks again at `check_at` (ns)."""

    def __init__(self, exchange: PublicExchange, limit_s: float, time: FeedTime) -> None:
        super().__init__(limit_s, time.wall, time.steady)
        self._exchange = exchange
        self.check_at = 0
        self.task: asyncio.Task[list[FeedAnomaly]] | None = None

    async def ask(self) -> list[FeedAnomaly]:
        """Ask the exchange for its time; what there is to tell."""
        found, before = self.observe(), self.steady()
        self.check_at = before + CHECK_S * NS
        reply = await self._exchange.clock_ns()
        if reply is None:
            return found
        return found + self.compare(SourceTime(reply, reply + self.steady() - before))

    def note_newest(self, newest: int, bar_ns: int) -> list[FeedAnomaly]:
        """Note the newest bar of an answer: where an exchange tells no time, it can end a doubt."""
        return [] if self._exchange.has_clock else self.confirm(SourceTime(newest, newest + bar_ns))

    def look(self) -> list[FeedAnomaly]:
        """Note the time; ask for that of the exchange, beside the feed, when it is due or in doubt."""
        found = self.observe()
        if found:
            self.check_at = 0
        if self.task is not None and self.task.done():
            found += self.task.result()
            self.task = None
        if self.task is None and self.steady() >= self.check_at:
            self.task = asyncio.create_task(self._ask())
        return found

    async def _ask(self) -> list[FeedAnomaly]:
        try:
            return await self.ask()
        except FeedError:
            self.check_at = self.steady() + AGAIN_S * NS
            return []
