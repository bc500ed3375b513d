"""A paper process with its slow loop on one wall clock of a test, in virtual time, on a real store.

The scheduler of the slow loop reads the wall clock by itself; here it reads the one that the feed reads.
While the process that looks is at work, virtual time stands still.
"""

import asyncio
import datetime as dt
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apscheduler.executors.base
import apscheduler.schedulers.base
import apscheduler.triggers.interval
import pytest

import worker.slow_worker.waker
from schemas.settings import Settings
from schemas.timeframes import TIMEFRAME_SECONDS
from services.store import open_store
from tests.worker.live.bad_markets import NS, Heard, Run
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import address
from tests.worker.live.virtual_time import VirtualLoop, run_virtually
from tests.worker.replays import paper_replay
from worker.live.process import PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.live.with_slow_loop import WithSlowLoop
from worker.slow_worker.ports import JOB
from worker.slow_worker.subprocess import SlowLoopSubprocess

PERIOD_S = 7_200.0  # between two looks: days of virtual time have many half minutes
READERS = (
    apscheduler.executors.base,
    apscheduler.schedulers.base,
    apscheduler.triggers.interval,
    worker.slow_worker.waker,
)


class WallClock:
    """The present as a feed has it, for the slow loop."""

    def __init__(self, wall: Callable[[], int]) -> None:
        self._wall = wall

    @property
    def now(self) -> int:
        """Ns."""
        return self._wall()


def in_real_time(
    work: Callable[[SlowLoopSubprocess], Awaitable[Any]],
) -> Callable[[SlowLoopSubprocess], Awaitable[Any]]:
    """The same work, for which virtual time waits."""

    async def waited_for(looks: SlowLoopSubprocess) -> Any:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        mark: asyncio.Future[Any] = asyncio.Future()
        loop.threads.add(mark)
        try:
            return await work(looks)
        finally:
            loop.threads.discard(mark)

    return waited_for


@contextmanager
def read_by_the_scheduler(wall: Callable[[], int]) -> Iterator[None]:
    """The scheduler is told the date of this clock."""

    class Wall(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> Any:
            return dt.datetime.fromtimestamp(wall() / NS, tz)

    with pytest.MonkeyPatch.context() as patch:
        for module in READERS:
            patch.setattr(module, "datetime", Wall)
        yield


@contextmanager
def looks_apart(period_s: float) -> Iterator[None]:
    """The slow loop looks as seldom as a test says; virtual time waits for each of its looks."""
    with pytest.MonkeyPatch.context() as patch:
        for work in ("look", "close"):
            patch.setattr(SlowLoopSubprocess, work, in_real_time(getattr(SlowLoopSubprocess, work)))
        patch.setattr(worker.slow_worker.waker, "LONGEST_PERIOD_S", period_s)
        yield


class Everything:
    """One process with both loops, and what it left behind.

    Args:
        folder: of its store.
        feed: on a wall clock of the test.
        settings: of the run.
        period_s: between two looks of the slow loop.

    Attributes:
        notes: what was told beside the journal.
        run: of the trading loop.
        claims: slots of the slow loop that were decided.
        reports: those that were written.
    """

    def __init__(self, folder: Path, feed: Any, settings: Settings, period_s: float = PERIOD_S) -> None:
        self._folder, self._period_s = folder, period_s
        runtime = settings.runtime.model_copy(update={"db": address(folder)})  # for the process that looks
        self._settings = settings.model_copy(update={"runtime": runtime})
        self._feed = Heard(feed)
        self.notes: list[tuple[str, dict[str, Any]]] = []
        with read_by_the_scheduler(feed.wall), looks_apart(self._period_s):
            run_virtually(self._traded(feed.wall))

    async def _traded(self, wall: Callable[[], int]) -> None:
        def note(kind: str, detail: dict[str, Any]) -> None:
            self.notes.append((kind, detail))

        def died(why: str) -> None:
            note("died", {"why": why})

        async with await open_store(address(self._folder), create=True) as store:
            around = WithSlowLoop(
                NullMonitor(note),
                store,
                self._settings,
                "elsewhere:1:a",
                self._period_s,
                died,
                WallClock(wall),
            )
            process = PaperProcess(
                ProcessInputs(
                    self._settings,
                    self._feed,
                    store,
                    "elsewhere:1:a",
                    around,
                    look_s=PERIOD_S,
                    lease_ms=10**9,
                )
            )
            outcome = await process.run("everything")
            run_id = outcome.record.run_id
            journal = [row async for row in store.journal.rows(run_id)]
            again = await paper_replay(self._settings, store, outcome.record).compare()
            bar_ns = TIMEFRAME_SECONDS[self._feed.timeframe] * NS
            heard = self._feed
            self.run = Run(outcome, journal, heard.rows, heard.traded, self.notes, again.ok, bar_ns)
            self.claims = await store.claims.all(run_id, JOB)
            self.reports = await store.reports.all(run_id, JOB)
