"""The waker: APScheduler with its memory store, used for one thing, to say "look" every period.

Nothing is decided here and no job is stored: whether something is due is a question to the facts. What the
scheduler skips or swallows is noted. Any sign of life of the scheduler is a heartbeat for the watchdog.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from apscheduler.events import (
    EVENT_JOB_ERROR,
    EVENT_JOB_MAX_INSTANCES,
    EVENT_JOB_MISSED,
    JobEvent,
)
from apscheduler.jobstores.base import BaseJobStore, JobLookupError
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from schemas.errors import InfrastructureError
from worker.operations.logs import EventSink

LOOK = "look"
NAMES = {
    EVENT_JOB_MISSED: "look_missed",
    EVENT_JOB_MAX_INSTANCES: "look_still_running",
    EVENT_JOB_ERROR: "look_failed",
}
# A suspended machine sleeps through timers that run on the monotonic clock: never wait longer than this.
LONGEST_PERIOD_S = 30.0


class Waker:
    """Calls `look` at once and then every period; one call at a time.

    Attributes:
        beat: `timer()` at the last sign of life of the scheduler.
        looking_since: `timer()` at which the present look began, None between two.
        failed: an exception that `look` raised; the scheduler itself would swallow it. No look follows.
    """

    def __init__(
        self,
        look: Callable[[], Awaitable[object]],
        period_s: float,
        note: EventSink,
        *,
        timer: Callable[[], float] = time.monotonic,
        jobs: BaseJobStore | None = None,
    ) -> None:
        self._look = look
        self._note = note
        self._timer = timer
        self._idle = asyncio.Event()
        self._idle.set()
        self._looking: asyncio.Task[Any] | None = None
        self.period_s = min(period_s, LONGEST_PERIOD_S)
        self.beat = timer()
        self.looking_since: float | None = None
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scheduler = AsyncIOScheduler(
            jobstores={"default": jobs or MemoryJobStore()},
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
            timezone=UTC,
        )
        self._scheduler.add_listener(
            self._note_event, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES | EVENT_JOB_ERROR
        )

    def start(self) -> None:
        """Look now, and every period from now on."""
        self._scheduler.add_job(
            self._wake, IntervalTrigger(seconds=self.period_s), id=LOOK, next_run_time=datetime.now(UTC)
        )
        self._scheduler.start()

    def rearm(self) -> None:
        """Look now: an exception left the scheduler without a timer, or the wall clock was set back."""
        with suppress(JobLookupError):
            self._scheduler.modify_job(LOOK, next_run_time=datetime.now(UTC))
        self._scheduler.wakeup()

    async def stop(self) -> None:
        """No further look; returns when the present one has ended."""
        self._scheduler.pause()
        await self._idle.wait()
        self._scheduler.shutdown(wait=False)

    def abandon(self) -> None:
        """Break off the present look; its claim is left for the next worker."""
        if self._looking is not None:
            self._looking.cancel()

    async def _wake(self) -> None:
        self.beat = self.looking_since = self._timer()
        self._looking = asyncio.current_task()
        self._idle.clear()
        try:
            await self._look()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits; the scheduler would swallow it
            if not self.failed.done():
                self.failed.set_exception(error)
            self._scheduler.pause()  # whoever waits ends us: no further look begins meanwhile
        finally:
            self.looking_since = self._looking = None
            self.beat = self._timer()
            self._idle.set()

    def _note_event(self, event: JobEvent) -> None:
        self.beat = self._timer()
        payload: dict[str, Any] = {}
        if getattr(event, "exception", None) is not None:
            payload["reason"] = f"{type(event.exception).__name__}: {event.exception}"
        self._note(NAMES[event.code], payload)


SILENT_PERIODS = 3
LONGEST_LOOK_S = 900.0

State = Literal["alive", "silent", "dead", "stuck"]


class HeartbeatLost(InfrastructureError):
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


@dataclass(eq=False)
class Watchdog:
    """Checks one waker once per period, wakes it when it fell silent, and gives up when that does not help.

    An exception from inside the scheduler leaves it running in name while its timer is never set again. The
    watchdog has a timer of its own. After three silent periods it sets the waker's timer again; after three
    more it ends the worker, so that whatever supervises it starts a new one.
    """

    waker: Waker
    note: EventSink
    timer: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _woken: tuple[float, float] = field(default_factory=lambda: (-1.0, -1.0), init=False)

    async def watch(self) -> None:
        """Check for ever.

        Raises:
            HeartbeatLost: the waker stayed silent, or a look does not end.
        """
        while True:
            await self.sleep(self.waker.period_s)
            self.check()

    def check(self) -> State:
        """Look at the status of life once; a silent waker is woken, and given up when that did not help.

        A process that was frozen finds its waker silent for long: that one is woken first, too.

        Raises:
            HeartbeatLost: the waker stayed silent, or a look does not end.
        """
        now, since = self.timer(), self.waker.looking_since
        silent = now - self.waker.beat
        state = state_of(silent, None if since is None else now - since, self.waker.period_s)
        beat, at = self._woken
        if state == "silent" or (state == "dead" and beat != self.waker.beat):
            self.note("waker_silent", {"silent_s": round(silent, 3), "next": "its timer is set again"})
            self._woken = self.waker.beat, now if beat != self.waker.beat else at
            self.waker.rearm()
        elif state == "dead" and now - at >= SILENT_PERIODS * self.waker.period_s:
            raise HeartbeatLost(f"the waker has been silent for {silent:.0f} s and could not be woken")
        elif state == "stuck":
            raise HeartbeatLost(f"a look has not ended within {LONGEST_LOOK_S:.0f} s")
        return state
