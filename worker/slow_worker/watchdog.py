"""The watchdog: notices a waker that fell silent, wakes it, and gives up when that does not help.

An exception from inside the scheduler leaves it running in name while its timer is never set again. The
watchdog has a timer of its own. After three silent periods it sets the waker's timer again; after three more
it ends the worker, so that whatever supervises it starts a new one.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Literal

from schemas.errors import InfrastructureError
from worker.operations.logs import EventSink
from worker.slow_worker.waker import Waker

SILENT_PERIODS = 3
LONGEST_LOOK_S = 900.0

State = Literal["alive", "silent", "dead", "stuck"]


class WorkerSilent(InfrastructureError):
    """The waker did not come back, or a look did not end: the supervisor has to start a new worker."""


def state_of(silent_s: float, busy_s: float | None, period_s: float) -> State:
    """What the status of life say.

    Args:
        silent_s: seconds since the last heartbeat.
        busy_s: seconds since the present look began, None between two looks.
        period_s: seconds between two looks.
    """
    if busy_s is not None:
        return "stuck" if busy_s > LONGEST_LOOK_S else "alive"
    if silent_s > 2 * SILENT_PERIODS * period_s:
        return "dead"
    return "silent" if silent_s > SILENT_PERIODS * period_s else "alive"


class Watchdog:
    """Checks one waker once per period."""

    def __init__(
        self,
        waker: Waker,
        note: EventSink,
        *,
        timer: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._waker = waker
        self._note = note
        self._timer = timer
        self._sleep = sleep
        self._woken = (-1.0, -1.0)

    async def watch(self) -> None:
        """Check for ever.

        Raises:
            WorkerSilent: the waker stayed silent, or a look does not end.
        """
        while True:
            await self._sleep(self._waker.period_s)
            self.check()

    def check(self) -> State:
        """Look at the status of life once; a silent waker is woken, and given up when that did not help.

        A process that was frozen finds its waker silent for long: that one is woken first, too.

        Raises:
            WorkerSilent: the waker stayed silent, or a look does not end.
        """
        now, since = self._timer(), self._waker.looking_since
        silent = now - self._waker.beat
        state = state_of(silent, None if since is None else now - since, self._waker.period_s)
        beat, at = self._woken
        if state == "silent" or (state == "dead" and beat != self._waker.beat):
            self._note("waker_silent", {"silent_s": round(silent, 3), "next": "its timer is set again"})
            self._woken = self._waker.beat, now if beat != self._waker.beat else at
            self._waker.rearm()
        elif state == "dead" and now - at >= SILENT_PERIODS * self._waker.period_s:
            raise WorkerSilent(f"the waker has been silent for {silent:.0f} s and could not be woken")
        elif state == "stuck":
            raise WorkerSilent(f"a look has not ended within {LONGEST_LOOK_S:.0f} s")
        return state
