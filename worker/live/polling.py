"""What a trading process does between the bars: say how it is, hear the operator and the slow loop."""

import asyncio
import time
from contextlib import suppress

from schemas.errors import StoreError
from services.store.failures import StoreDamaged
from services.store.file_watch import StoreLost
from services.store.repository import LeaseLost
from worker.live.stop_request import StopRequest
from worker.live.traded_run import ProcessInputs, TradedRun


class Polling:
    """Looks at the store twice a second beside the bars of a run."""

    def __init__(self, inputs: ProcessInputs, stop: StopRequest, run: TradedRun) -> None:
        self._store = inputs.store
        self._note = inputs.surroundings.note
        self._look_s = inputs.look_s
        self._stop = stop
        self._run = run
        self._over = asyncio.Event()
        self._saying = asyncio.Lock()

    def start(self) -> "asyncio.Task[None]":
        """The task that polls; no bar is waited for after it has failed."""
        polling = asyncio.create_task(self.poll(), name="polling")
        polling.add_done_callback(lambda ended: self._stop.wake())
        return polling

    async def end(self, polling: "asyncio.Task[None]") -> None:
        """Let the look in hand come to its end: one that is cut off may keep a lock of the store."""
        self._over.set()
        await asyncio.wait({polling}, timeout=self._stop.patience_s)
        polling.cancel()
        await asyncio.wait({polling})

    async def poll(self) -> None:
        """Say how this process is; fetch the operator's requests and the reports that wait.

        A store that is away has none of them: that it is away, and that it is back, is told from here, too.

        Raises:
            Exception: whatever ended the work beside the bars, which may be long before the next bar.
        """
        run = self._run
        while not self._over.is_set():
            run.check()
            try:
                await self._look()
            except StoreError as error:
                if isinstance(error, (LeaseLost, StoreDamaged, StoreLost)):
                    raise
                run.committing.away(error)
            else:
                run.committing.answers()
            run.guard.weigh_store(behind=run.store_behind)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), self._look_s)

    async def _look(self) -> None:
        await self.say()
        run = self._run
        await run.requests.look()
        if run.requests.asks_to_stop and run.stepper.begun:
            self._stop.ask("the operator's request")
        if run.stepper.begun and not run.stepper.lock_step and not run.recovering:
            await run.requests.execute()
            await self._reports()

    async def say(self) -> None:
        """Store how this process is; one after the other, so that no older word comes after a newer one.

        Nothing more is said once the end of the run is on its way: the last word would tell that it waits.
        """
        async with self._saying:
            keeper = self._run.keeper
            if keeper.lease is not None and not keeper.closing:
                document = self._run.status.status().document(time.time_ns())
                await self._store.trading.say(keeper.lease, keeper.run_id, document)

    async def _reports(self) -> None:
        reports, stepper = self._run.reports, self._run.stepper
        if reports is None:
            return
        await reports.acknowledge(stored=not stepper.journal.waiting)
        await reports.look(stepper.session)
        if reports.apply_report(stepper.session):
            self._run.committing.wake()
            self._note("report_heard", {"reports": stepper.session.slow_loop.counters.runs})
