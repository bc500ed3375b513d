"""Everything under one command: the trading loop on a feed that runs on, and the slow loop beside it.

When to look is decided here; each look is carried out by a process of its own, under its lease, so others may
stand by and no report takes time from a bar. Reports reach the trading loop through the inbox.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from schemas.settings import Settings
from services.journal.chain import JournalRow
from services.ports import Clock
from services.store import Store
from worker.live.commit_loop import COMMAND_S
from worker.live.monitor import Monitor
from worker.operations.monitoring import OutageLog
from worker.operations.status import ProcessStatus, VitalSource
from worker.slow_worker.ports import SystemClock
from worker.slow_worker.service import StopSignals, serve
from worker.slow_worker.status import SlowLoopStatus, StatusFromEvents
from worker.slow_worker.subprocess import SlowLoopSubprocess
from worker.slow_worker.subprocess_main import ChildJob


class WithSlowLoop:
    """Monitor in which a slow loop runs, too.

    Args:
        inner: where events go, who is told, and who can ask.
        store: open.
        settings: of the run; `runtime.db` is the address of the store.
        owner: of this process.
        period_s: seconds between two looks of the slow loop.
        died: told when the slow loop cannot go on.
        clock: the present; None for the wall clock.
    """

    def __init__(
        self,
        inner: Monitor,
        store: Store,
        settings: Settings,
        owner: str,
        period_s: float,
        died: Callable[[str], None],
        clock: Clock | None = None,
    ) -> None:
        self._inner = inner
        self._store = store
        self._settings = settings
        self._owner = owner
        self._period_s = period_s
        self._died = died
        self._clock = clock or SystemClock()
        self._once = OutageLog(inner.note)

    def note(self, kind: str, detail: dict[str, Any]) -> None:
        """Something happened beside the bars; the trading loop asks the store twice a second."""
        self._once.decide(kind, detail)

    def note_stored(self, row: JournalRow) -> None:
        """A journal row is stored."""
        self._inner.note_stored(row)

    @asynccontextmanager
    async def around(self, source: VitalSource, run_id: str) -> AsyncIterator[None]:
        """The slow loop of the run, and what can ask how both are, while the block runs."""
        record = await self._store.runs.find(run_id)
        clock = self._clock
        status = await SlowLoopStatus.of_run(self._store, record, self._settings, self._owner, clock)

        def note(kind: str, detail: dict[str, Any]) -> None:
            status.note(kind, detail)
            self._once.hear(kind, detail)

        stop = StopSignals()
        looks = StatusFromEvents(SlowLoopSubprocess(self._job(run_id), clock, note), status, note)
        async with self._inner.around(_Both(source, status), run_id):
            serving = asyncio.create_task(serve(looks, stop, note, period_s=self._period_s))
            serving.add_done_callback(self._note_end)
            try:
                yield
            finally:
                stop.note_signal(signal.SIGTERM)
                await serving

    def _job(self, run_id: str) -> ChildJob:
        settings, lease_ms = self._settings, int(3_000 * self._period_s)
        address = settings.runtime.db  # that of the store names no password
        return ChildJob(address, run_id, settings.payload(), self._owner, lease_ms, COMMAND_S)

    def _note_end(self, serving: "asyncio.Task[int]") -> None:
        error = None if serving.cancelled() else serving.exception()
        if error is not None:
            self._inner.note("worker_died", {"reason": f"{type(error).__name__}: {error}"})
            self._died(f"the end of the slow loop: {error}")


class _Both:
    """The status of both loops as those of one process."""

    def __init__(self, trading: VitalSource, slow: SlowLoopStatus) -> None:
        self._trading = trading
        self._slow = slow

    def status(self) -> ProcessStatus:
        """The present status."""
        trading, slow = self._trading.status(), self._slow.status()
        return replace(
            trading,
            role="both",
            errors=trading.errors + slow.errors,
            slow_loop_last=slow.slow_loop_last,
            slow_loop_next=slow.slow_loop_next,
        )
