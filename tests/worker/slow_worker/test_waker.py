"""The waker says "look", the watchdog notices when it does not, and a worker ends in order."""

import asyncio
import signal
from typing import Any

import pytest
from apscheduler.events import EVENT_JOB_MAX_INSTANCES, JobSubmissionEvent
from apscheduler.jobstores.memory import MemoryJobStore

from schemas.errors import StoreError
from tests.worker.slow_worker.prepared import DAY, START, watched
from tests.worker.slow_worker.test_slot_runner import HOUR, every, short_report
from worker.slow_worker.service import StopSignals, serve
from worker.slow_worker.waker import (
    LONGEST_LOOK_S,
    LONGEST_PERIOD_S,
    LOOK,
    HeartbeatLost,
    Waker,
)

Events = list[tuple[str, dict[str, Any]]]


class Timer:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Looks:
    """A look that counts, and lets a test wait for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self._came = asyncio.Condition()

    async def __call__(self) -> None:
        async with self._came:
            self.count += 1
            self._came.notify_all()

    async def reached(self, count: int) -> None:
        async with self._came:
            await self._came.wait_for(lambda: self.count >= count)


class BrokenStore(MemoryJobStore):  # type: ignore[misc]  # the package ships no types
    """Raises once where the scheduler does not expect it: after a job was started."""

    def __init__(self) -> None:
        super().__init__()
        self.broken = False

    def update_job(self, job: Any) -> None:
        if not self.broken:
            self.broken = True
            raise OSError("the store is away")
        super().update_job(job)


def told_to(events: Events) -> Any:
    return lambda name, fields: events.append((name, fields))


def test_waker_looks_at_once_and_again_and_stops():
    async def scenario():
        looks = Looks()
        waker = Waker(looks, 0.01, told_to([]))
        waker.start()
        await looks.reached(3)
        await waker.stop()
        return waker.looking_since

    assert asyncio.run(scenario()) is None


def test_waker_never_waits_longer_than_a_suspended_machine_may_sleep():
    async def scenario():
        return Waker(Looks(), 3_600.0, told_to([])).period_s

    assert asyncio.run(scenario()) == LONGEST_PERIOD_S == 30.0


def test_waker_hands_on_what_a_look_raised():
    async def broken() -> None:
        raise StoreError("the disk is full")

    async def scenario():
        waker = Waker(broken, 30.0, told_to([]))
        waker.start()
        with pytest.raises(StoreError, match="disk is full"):
            await waker.failed
        await waker.stop()

    asyncio.run(scenario())


def test_waker_looks_no_more_once_a_look_has_failed() -> None:
    async def play() -> int:
        looks = 0

        async def look() -> None:
            nonlocal looks
            looks += 1
            raise StoreError("cannot be read")

        waker = Waker(look, 0.01, lambda kind, fields: None)
        waker.start()
        with pytest.raises(StoreError):
            await asyncio.shield(waker.failed)
        await asyncio.sleep(0.1)
        await waker.stop()
        return looks

    assert asyncio.run(play()) == 1


def test_waker_look_that_outlasts_its_period_is_noted_and_a_sign_of_life():
    async def scenario():
        timer = Timer()
        events: Events = []
        waker = Waker(Looks(), 1.0, told_to(events), timer=timer)
        timer.now = 50.0
        waker._scheduler._dispatch_event(JobSubmissionEvent(EVENT_JOB_MAX_INSTANCES, LOOK, "default", []))
        return events, waker.beat

    assert asyncio.run(scenario()) == ([("look_still_running", {})], 50.0)


def test_watchdog_rearms_a_scheduler_that_died_silently():
    async def scenario():
        timer, looks = Timer(), Looks()
        events: Events = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
        waker = Waker(looks, 0.01, told_to(events), timer=timer, jobs=BrokenStore())
        waker.start()
        await looks.reached(1)
        died = waker._scheduler.running, waker._scheduler._timeout
        timer.now += 0.031
        waker.check()
        await looks.reached(3)
        await waker.stop()
        return died, [name for name, _ in events]

    died, names = asyncio.run(scenario())
    assert died == (True, None)
    assert names == ["waker_silent"]


def test_watchdog_of_a_process_that_was_frozen_wakes_its_waker_before_it_gives_up():
    async def scenario():
        timer = Timer()
        events: Events = []
        looks = Looks()
        waker = Waker(looks, 1.0, told_to(events), timer=timer)
        waker.start()
        await asyncio.sleep(0.05)
        timer.now += 3_600.0
        waker.check()
        await asyncio.sleep(0.05)
        waker.check()
        await waker.stop()
        return looks.count, [name for name, _ in events]

    assert asyncio.run(scenario()) == (2, ["waker_silent"])


def test_watchdog_gives_up_a_waker_that_cannot_be_woken():
    async def scenario():
        timer = Timer()
        events: Events = []

        async def later(seconds: float) -> None:
            timer.now += seconds

        waker = Waker(Looks(), 1.0, told_to(events), timer=timer, sleep=later)
        waker._scheduler.start(paused=True)
        with pytest.raises(HeartbeatLost, match="could not be woken"):
            await waker.watch()
        waker._scheduler.shutdown(wait=False)
        await asyncio.sleep(0)
        return [name for name, _ in events], timer.now

    names, now = asyncio.run(scenario())
    assert names == ["waker_silent"]
    assert now == 7.0


@pytest.mark.parametrize(
    ("silent_s", "busy_s", "notes"),
    [(3.0, None, 0), (3.1, None, 1), (9.0, None, 1), (3_600.0, LONGEST_LOOK_S, 0), (0.0, 1.0, 0)],
)
def test_watchdog_wakes_after_three_silent_periods_unless_a_look_goes_on(silent_s, busy_s, notes):
    async def scenario():
        timer = Timer()
        events: Events = []
        waker = Waker(Looks(), 1.0, told_to(events), timer=timer)
        waker._scheduler.start(paused=True)
        timer.now += 5_000.0
        waker.beat = timer.now - silent_s
        waker.looking_since = None if busy_s is None else timer.now - busy_s
        waker.check()
        waker.check()  # nothing has changed: it is not woken again
        waker._scheduler.shutdown(wait=False)
        return len(events)

    assert asyncio.run(scenario()) == notes


def test_watchdog_gives_up_a_look_that_does_not_end():
    async def scenario():
        timer = Timer()
        waker = Waker(Looks(), 1.0, told_to([]), timer=timer)
        waker.looking_since = 0.0
        timer.now = LONGEST_LOOK_S + 0.1
        with pytest.raises(HeartbeatLost, match="has not ended within 900 s"):
            waker.check()

    asyncio.run(scenario())


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_worker_told_to_stop_finishes_its_report_and_releases_the_lease(tmp_path, signum, code):
    async def scenario():
        reflecting, go_on = asyncio.Event(), asyncio.Event()

        async def slow(request, episodes, definitions):
            reflecting.set()
            await go_on.wait()
            return await short_report(request, episodes, definitions)

        async with watched(tmp_path, every(1, 3), reflect=slow) as one:
            one.clock.advance(START + DAY)
            stop = StopSignals()
            serving = asyncio.create_task(serve(one.worker, stop, one._note, period_s=30.0))
            await reflecting.wait()
            stop.note_signal(signum)
            await asyncio.sleep(0)
            assert not serving.done()
            go_on.set()
            ended = await serving
            return ended, one, await one.reports(), await one.store.leases.holder(f"slow_loop/{one.run_id}")

    ended, one, reports, lease = asyncio.run(scenario())
    assert ended == code
    assert [report.delivery for report in reports] == ["delivered"]
    assert lease.until_ms == 0
    assert one.names("stopping", "lease_released", "stopped") == ["stopping", "lease_released", "stopped"]


def test_worker_told_twice_leaves_the_claim_to_the_next_one(tmp_path):
    async def scenario():
        reflecting = asyncio.Event()

        async def endless(request, episodes, definitions):
            reflecting.set()
            await asyncio.Event().wait()

        async with watched(tmp_path, every(1, 3), reflect=endless) as one:
            one.clock.advance(START + DAY)
            stop = StopSignals()
            serving = asyncio.create_task(serve(one.worker, stop, one._note, period_s=30.0))
            await reflecting.wait()
            stop.note_signal(signal.SIGINT)
            stop.note_signal(signal.SIGTERM)
            ended = await serving
            return ended, await one.claims(), await one.store.leases.holder(f"slow_loop/{one.run_id}")

    ended, claims, lease = asyncio.run(scenario())
    assert ended == 130
    assert [claim.state for claim in claims] == ["claimed"]
    assert lease.until_ms == 0


@pytest.mark.parametrize("retryable", [True, False])
def test_worker_whose_store_is_away_tries_again_or_ends(tmp_path, retryable, monkeypatch):
    async def scenario():
        async with watched(tmp_path, every(1, 3), reflect=short_report) as one:
            one.clock.advance(START + DAY + HOUR)
            stop, look = StopSignals(), one.worker.look
            failed: list[bool] = []

            async def away() -> Any:
                if not failed:
                    failed.append(True)
                    raise StoreError("store x is locked", retryable=retryable)
                looked = await look()
                stop.note_signal(signal.SIGTERM)
                return looked

            monkeypatch.setattr(one.worker, "look", away)
            ended = await serve(one.worker, stop, one._note, period_s=0.01)
            return ended, one.names("store_away", "report_written")

    if retryable:
        assert asyncio.run(scenario()) == (0, ["store_away", "report_written"])
    else:
        with pytest.raises(StoreError, match="is locked"):
            asyncio.run(scenario())
