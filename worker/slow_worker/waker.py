"""The waker: APScheduler with its memory store, used for one thing, to say "look" every period.

Nothing is decided here and no job is stored: whether something is due is a question to the facts. What the
scheduler skips or swallows is noted. Any sign of life of the scheduler is a heartbeat for the watchdog.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

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
            self._heard, EVENT_JOB_MISSED | EVENT_JOB_MAX_INSTANCES | EVENT_JOB_ERROR
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

    def _heard(self, event: JobEvent) -> None:
        self.beat = self._timer()
        told: dict[str, Any] = {}
        if getattr(event, "exception", None) is not None:
            told["reason"] = f"{type(event.exception).__name__}: {event.exception}"
        self._note(NAMES[event.code], told)
