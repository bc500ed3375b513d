"""No more requests at once, or in a minute, than a provider takes: the others wait, within their deadlines.

A request whose turn would come too late is not sent and fails at once, because waiting for the deadline
would only cost time.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from schemas.errors import ModelError

MINUTE_S = 60.0
MS_PER_S = 1_000.0
PACED = "paced"


class RequestRate:
    """The turns of all requests of a run, in the order in which they are asked for.

    Args:
        at_once: requests under way at most.
        per_minute: requests begun in any minute at most; None: any number.
        sleep: waits seconds.
    """

    def __init__(
        self,
        at_once: int,
        per_minute: int | None,
        *,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._under_way = asyncio.Semaphore(at_once)
        self._at_once, self._per_minute = at_once, per_minute
        self._sleep = sleep
        self._begun: deque[float] = deque()

    @asynccontextmanager
    async def turn(self, within_ms: float) -> AsyncIterator[float]:
        """Wait for a turn and hold it; what is left of `within_ms` then.

        Raises:
            ModelError: of the kind `paced`: no turn comes in time.
        """
        timer = asyncio.get_running_loop().time
        start = timer()
        try:
            async with asyncio.timeout(within_ms / MS_PER_S):
                await self._under_way.acquire()
        except TimeoutError:
            raise _too_late(f"{self._at_once} requests are under way (llm.at_once)") from None
        try:
            left_s = within_ms / MS_PER_S - (timer() - start)
            wait_s = self._until_next(timer(), left_s)
            if wait_s is None:
                raise _too_late(f"{self._per_minute} requests began in a minute (llm.per_minute)")
            if wait_s > 0.0:
                await self._sleep(wait_s)
            yield within_ms - MS_PER_S * (timer() - start)
        finally:
            self._under_way.release()

    def _until_next(self, now: float, left_s: float) -> float | None:
        """Seconds until one more request may begin, its place taken; None: more than are left."""
        if self._per_minute is None:
            return 0.0
        while self._begun and self._begun[0] <= now - MINUTE_S:
            self._begun.popleft()
        full = len(self._begun) >= self._per_minute
        begins = self._begun[-self._per_minute] + MINUTE_S if full else now
        if begins - now >= left_s:
            return None
        self._begun.append(begins)
        return begins - now


def _too_late(why: str) -> ModelError:
    return ModelError(f"not sent, its turn would come too late: {why}", kind=PACED, requests=0)
