"""The waker: APScheduler with its memory store, used for one thing, to say "look" every period.

Nothing is decided here and no job is stored: whether something is due is a question to the facts. Late looks
run once; one that is skipped is noted. An exception from inside the scheduler leaves it running in name while
its timer is never set again, so its signs of life are watched by a timer of their own.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from apscheduler.events import EVENT_JOB_MAX_INSTANCES
from apscheduler.jobstores.base import BaseJobStore, JobLookupError
from apscheduler.jobstores.memory import MemoryJobStore
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.interval import IntervalTrigger

from schemas.errors import InfrastructureError
from worker.operations.logs import EventSink

LOOK = "look"
# A suspended machine sleeps through timers that run on the monotonic clock: never wait longer than this.
LONGEST_PERIOD_S = 30.0
SILENT_PERIODS = 3
LONGEST_LOOK_S = 900.0


class HeartbeatLost(InfrastructureError):
    """The waker did not come back, or a look did not end: the supervisor has to start a new worker."""


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
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jobs: BaseJobStore | None = None,
    ) -> None:
        self._look, self._note, self._timer, self._sleep = look, note, timer, sleep
        self._looking: asyncio.Task[Any] | None = None
        self._rearmed = 0.0, 0.0  # the beat that was the last one, and when
        self.period_s = min(period_s, LONGEST_PERIOD_S)
        self.beat = timer()
        self.looking_since: float | None = None
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._scheduler = AsyncIOScheduler(
            jobstores={"default": jobs or MemoryJobStore()},
            job_defaults={"coalesce": True, "misfire_grace_time": None, "max_instances": 1},
            timezone=UTC,
        )
        self._scheduler.add_listener(self._note_skip, EVENT_JOB_MAX_INSTANCES)

    def start(self) -> None:
        """Look now, and every period from now on."""
        self._scheduler.add_job(
            self._wake, IntervalTrigger(seconds=self.period_s), id=LOOK, next_run_time=datetime.now(UTC)
        )
        self._scheduler.start()

    async def watch(self) -> None:
        """Check once per period for ever.

        Raises:
            HeartbeatLost: the scheduler stayed silent, or a look does not end.
        """
        while True:
            await self._sleep(self.period_s)
            self.check()

    def check(self) -> None:
        """Wake a scheduler that has been silent for three periods, and give it up after three more.

        A process that was frozen finds it silent for long: that one is woken first, too.

        Raises:
            HeartbeatLost: the scheduler stayed silent, or a look does not end.
        """
        now, longest_s = self._timer(), SILENT_PERIODS * self.period_s
        silent_s, (beat, at) = now - self.beat, self._rearmed
        if self.looking_since is not None:
            if now - self.looking_since > LONGEST_LOOK_S:
                raise HeartbeatLost(f"a look has not ended within {LONGEST_LOOK_S:.0f} s")
        elif silent_s > longest_s and (not at or beat != self.beat):
            self._note("waker_silent", {"silent_s": round(silent_s, 3), "next": "its timer is set again"})
            self._rearmed = self.beat, now
            with suppress(JobLookupError):
                self._scheduler.modify_job(LOOK, next_run_time=datetime.now(UTC))
            self._scheduler.wakeup()
        elif silent_s > longest_s and now - at >= longest_s:
            raise HeartbeatLost(f"the waker has been silent for {silent_s:.0f} s and could not be woken")

    async def stop(self) -> None:
        """No further look; returns when the present one has ended."""
        self._scheduler.pause()
        if self._looking is not None:
            await asyncio.wait({self._looking})
        self._scheduler.shutdown(wait=False)

    def abandon(self) -> None:
        """Break off the present look; its claim is left for the next worker."""
        if self._looking is not None:
            self._looking.cancel()

    async def _wake(self) -> None:
        self.beat = self.looking_since = self._timer()
        self._looking = asyncio.current_task()
        try:
            await self._look()
        except Exception as error:  # noqa: BLE001 - handed to whoever waits; the scheduler would swallow it
            if not self.failed.done():
                self.failed.set_exception(error)
            self._scheduler.pause()  # whoever waits ends us: no further look begins meanwhile
        finally:
            self.looking_since = self._looking = None
            self.beat = self._timer()

    def _note_skip(self, _event: object) -> None:
        self.beat = self._timer()
        self._note("look_still_running", {})
