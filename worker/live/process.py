"""`run_paper`: trade one run on one feed until the feed ends, an operator stops it, or it cannot go on.

Start and recovery are one path: find the run, take its lease, play what is stored, send what was not
acknowledged, then take new bars. On a feed that waits every row is committed before the next is taken; on one
that runs on, models and store work beside the bars.

Between the bars `Polling` says how the process is and hears the operator and the slow loop.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from schemas.errors import ConfigError, FeedError, StoreError
from services.feeds.port import BarRow, FeedAnomaly
from services.store import RunRecord
from services.store.failures import StoreDamaged
from services.store.identity import StoreLost
from services.store.records import Closing
from services.store.repository import Lease, LeaseLost
from worker.live.process_inputs import ProcessInputs
from worker.live.recovery import StoppedEarly
from worker.live.run_selection import RESUMABLE, lease_name, release_dead_lease, run_to_trade
from worker.live.traded_run import StopRequest, TradedRun
from worker.runs.run_result import RunResult
from worker.runs.warm_up import compile_engine
from worker.slow_worker.lease_holder import LeaseHolder


@dataclass(frozen=True)
class PaperOutcome:
    """How a paper process ended.

    Attributes:
        record: the run as stored.
        result: what was traded; None when no row ever came.
        document: the JSON document of a run whose feed ended; None for one that goes on.
        stopped: what stopped it; None when its feed ended.
    """

    record: RunRecord
    result: RunResult | None
    document: dict[str, Any] | None
    stopped: str | None


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
            run.guard.weigh_store(following=run.store_behind)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), self._look_s)

    async def _look(self) -> None:
        await self.say()
        run = self._run
        run.warn_of_models()
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
            committer = self._run.committer
            if committer.lease is not None and not committer.closing:
                document = self._run.status.status().document(time.time_ns())
                await self._store.trading.say(committer.lease, committer.run_id, document)

    async def _reports(self) -> None:
        reports, stepper = self._run.reports, self._run.stepper
        if reports is None:
            return
        await reports.acknowledge(stored=not stepper.journal.waiting)
        await reports.look(stepper.session)
        if reports.apply_report(stepper.session):
            self._run.committing.wake()
            self._note("report_heard", {"reports": stepper.session.slow_loop.counters.runs})


class PaperProcess:
    """One process that trades one run.

    Attributes:
        traded: the run in hand; there is none before its lease is taken.
    """

    traded: TradedRun

    def __init__(self, inputs: ProcessInputs) -> None:
        self._inputs = inputs
        self._note = inputs.surroundings.note
        self._stop = StopRequest(self._note)

    def stop(self, why: str) -> None:
        """Ask for a graceful stop: the row in hand is finished and stored."""
        self._stop.ask(why)

    async def run(self, name: str, *, new: bool = False) -> PaperOutcome:
        """Trade until the feed ends or an operator stops it.

        Args:
            name: what the operator would call the run.
            new: do not go on with a run that was left behind.

        Raises:
            ConfigError: the run is being traded elsewhere, or does not come out as it was stored.
            LeaseLost: another process took over.
            StoreError: the store cannot be written and waiting will not help.
            FeedError: the feed is gone for good.
        """
        given, began = self._inputs, time.perf_counter()
        compiled_s = compile_engine()
        while True:
            record = await run_to_trade(given.store, given.settings, given.feed, name, new=new)
            lease_of = lease_name(record.run_id)
            await release_dead_lease(given.store, lease_of)
            tenure = LeaseHolder(given.store.leases, lease_of, given.owner, self._inputs.lease_ms, self._note)
            lease = await self._lease(tenure, record)
            if lease is None:
                return PaperOutcome(record, None, None, self._stop.why)
            try:
                async with tenure.keep_alive(lease):
                    if await self._is_resumable(record.run_id, lease):
                        return await self._trade(record.run_id, lease, began, compiled_s)
            finally:
                with suppress(StoreError):
                    await tenure.release()

    async def _is_resumable(self, run_id: str, lease: Lease) -> bool:
        """Whether the run can be traded now that no other process does; one that ended meanwhile cannot."""
        record = await self._inputs.store.runs.find(run_id)
        if record.status == "interrupted":
            await self._inputs.store.runs.reopen(run_id, lease)
        return record.status in RESUMABLE

    async def _trade(self, run_id: str, lease: Lease, began: float, compiled_s: float) -> PaperOutcome:
        record = await self._inputs.store.runs.find(run_id)
        given = self._inputs
        crash_loop = await self._inputs.crashed_too_often(run_id)
        run = TradedRun(given, self._stop, record, lease)
        await run.start()
        self.traded = run
        run.stepper.timing.compile_s = compiled_s
        polling = Polling(given, self._stop, run)
        async with given.surroundings.around(run.status, run_id):
            task = polling.start()
            try:
                await run.recover(crash_loop=crash_loop)
                async with aclosing(self._items(run)) as items:
                    async for item in items:
                        _check(run, task)
                        await run.take(item)
                _check(run, task)
                return await self._end(run, polling, began)
            except StoppedEarly:
                _check(run, task)
                return await self._end_interrupted(run)
            except FeedError as error:  # comes between two rows: another process may go on with the run
                self._stop.ask(str(error))
                await self._end(run, polling, began)
                raise
            finally:
                await polling.end(task)
                await run.release()

    async def _lease(self, tenure: LeaseHolder, record: RunRecord) -> Lease | None:
        """The lease of the run; None when a stop was asked for before it was free."""
        lease = await tenure.take()
        until = time.monotonic() + 2 * self._inputs.lease_ms / 1_000
        while lease is None and time.monotonic() < until and not self._stop.requested:
            await asyncio.sleep(self._inputs.look_s)
            lease = await tenure.take()
        if lease is None and not self._stop.requested:
            holder = await self._inputs.store.leases.holder(lease_name(record.run_id))
            by = "another process" if holder is None else repr(holder.owner)
            raise ConfigError(
                f"run {record.run_id} is being traded by {by}: stop that one, or trade a new run with --new"
            )
        return lease

    async def _items(self, run: TradedRun) -> AsyncGenerator[BarRow | FeedAnomaly]:
        """What the feed hands over, until it ends or a stop is asked for."""
        items = run.items()
        try:
            while True:
                await asyncio.sleep(0)  # a feed that never waits leaves time to what works beside the bars
                if self._stop.requested or run.is_over:
                    return
                item = await self._stop.first(anext(items, None))
                if item is None:
                    return
                yield item
        finally:
            await items.aclose()

    async def _end(self, run: TradedRun, polling: Polling, began: float) -> PaperOutcome:
        store, stepper = self._inputs.store, run.stepper
        if run.answers is not None and self._stop.why is None:
            await run.answers.settle()
        await run.committing.commit()
        if stepper.begun:
            await run.requests.execute(ending=True)
        await polling.say()
        if not stepper.begun:
            return await self._end_interrupted(run)
        closing, run_id = Closing("interrupted"), run.committer.run_id
        stepper.timing.total_s = time.perf_counter() - began
        result = RunResult(stepper.session, stepper.timing)
        if self._stop.why is None:
            stepper.session.finish()
            closing = Closing("finished", result.document(run_id, store.url))
            if run.is_over:
                self._note("ended_early", {"run_id": run_id, **(stepper.session.ended_early or {})})
        await run.close(closing)
        return PaperOutcome(await store.runs.find(run_id), result, closing.document, self._stop.why)

    async def _end_interrupted(self, run: TradedRun) -> PaperOutcome:
        """The end of a run that another process may go on with, without a result."""
        await run.close(Closing("interrupted"))
        record = await self._inputs.store.runs.find(run.committer.run_id)
        return PaperOutcome(record, None, None, self._stop.why)


def _check(run: TradedRun, polling: "asyncio.Task[None]") -> None:
    """Raise what went wrong beside the bars."""
    run.check()
    if polling.done():
        polling.result()
