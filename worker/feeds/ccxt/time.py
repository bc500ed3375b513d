"""The clocks and the waiting of an exchange feed, so that a test can own them; and how long to wait again."""

import asyncio
import time
from typing import Protocol

NS = 1_000_000_000


class FeedTime(Protocol):
    """What a feed knows of time."""

    def wall(self) -> int:
        """Ns since 1970."""
        ...

    def steady(self) -> int:
        """Ns on a clock that only moves forward."""
        ...

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Until the event is set, or so many seconds are over."""
        ...


class SystemTime:
    """The clocks of this machine."""

    def wall(self) -> int:
        """Ns since 1970."""
        return time.time_ns()

    def steady(self) -> int:
        """Ns on the monotonic clock."""
        return time.monotonic_ns()

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Until the event is set, or so many seconds are over."""
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            return


class Backoff:
    """Waits that double from one second; no chance in them, so that a run can be repeated."""

    def __init__(self, most_s: float) -> None:
        self._most = most_s
        self._failures = 0

    @property
    def failures(self) -> int:
        """In a row."""
        return self._failures

    def next_s(self, asked_s: float | None = None) -> float:
        """Seconds until the next attempt, at least what the other side asked for."""
        self._failures += 1
        own = min(self._most, 2.0 ** min(self._failures - 1, 20))
        return max(own, asked_s or 0.0)

    def succeeded(self) -> None:
        """Begin again with one second."""
        self._failures = 0
