"""`run_paper`: trade one run on one feed until the feed ends, somebody stops it, or it cannot go on.

Start and recovery are one path: find the run, take its lease, play what is stored, send what was not
acknowledged, then take new bars. On a feed that waits every row is committed before the next is taken; on one
that runs on, models and store work beside the bars.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from schemas.errors import ConfigError, StoreError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.feeds.port import BarRow, FeedAnomaly, MarketFeed
from services.journal.writer import JournalWriter
from services.policy_loop.evaluation import Evaluation
from services.store import RunRecord, Store
from services.store.checkpoints import Savepoint
from services.store.failures import StoreDamaged
from services.store.file_watch import StoreLost
from services.store.records import Closing
from services.store.repository import Lease, LeaseLost
from worker.bootstrap import given_playbooks
from worker.live.checkpoints import CheckpointSchedule, NoSavepoint, Pace, restored
from worker.live.commit_loop import CommitLoop
from worker.live.committer import BarCommitter
from worker.live.doubts import Doubts
from worker.live.entry_guard import EntryGuard
from worker.live.evaluations import EvaluationQueue
from worker.live.monitor import Monitor
from worker.live.operator import OperatorCommands
from worker.live.recorded_inputs import Player, read_script
from worker.live.recovery import RecoveringSink, StoppedEarly, past_of, recover
from worker.live.reports import ReportConsumer
from worker.live.run_selection import RESUMABLE, lease_name, release_dead_lease, run_to_trade
from worker.live.safe_mode import SafeModeReason
from worker.live.status import TradingStatus
from worker.live.stepper import BarAxes, LiveStepper
from worker.models import Models
from worker.runs.run_result import RunResult
from worker.runs.stored_trial import BegunTrial, StoredTrial
from worker.runs.trials import ledger_of_run
from worker.runs.warm_up import compile_engine
from worker.slow_worker.lease_holder import LeaseHolder
from worker.slow_worker.ports import CrashPoints

LEASE_MS = 10_000
LOOK_S = 0.5
STOP_S = 10.0  # somebody who asked to stop does not wait longer for a store that stays away


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


class PaperProcess:
    """One process that trades one run.

    Args:
        settings: the resolved configuration.
        feed: where bars come from; the caller closes it.
        store: open, with every table.
        owner: unique among processes, `HOST:PID:TOKEN`.
        surroundings: where events go, who is told, and who can ask how the process is.
        definitions: playbooks; None loads the configured folder or the embedded ones.
        models: language models to ask; None makes the configured ones.
        points: told of every step; for tests.
        progress: called with rows recovered and rows taken.
        look_s: seconds between looks at the operator's requests and at reports.
        lease_ms: how long a process that has frozen keeps its run.
        pace: how often a savepoint is taken.
        crashed_too_often: asked with the run id once the run is held: whether the processes before this one
            died too often; then it starts in safe mode.
        fresh_ledger: a run that begins here starts as on a store in which nothing was tried.
    """

    def __init__(
        self,
        settings: Settings,
        feed: MarketFeed,
        store: Store,
        owner: str,
        surroundings: Monitor,
        *,
        definitions: Sequence[PlaybookDefinition] | None = None,
        models: Models | None = None,
        points: CrashPoints | None = None,
        progress: Callable[[int, int], None] = lambda recovered, taken: None,
        look_s: float = LOOK_S,
        lease_ms: int = LEASE_MS,
        crashed_too_often: Callable[[str], bool] = lambda run_id: False,
        pace: Pace | None = None,
        fresh_ledger: bool = False,
    ) -> None:
        self._settings = settings
        self._feed = feed
        self._store = store
        self._owner = owner
        self._surroundings = surroundings
        self._note = surroundings.note
        self._definitions = definitions
        self._models = models
        self._points = points
        self._progress = progress
        self._look_s = look_s
        self._lease_ms = lease_ms
        self._crashed_too_often = crashed_too_often
        self._pace = pace or Pace()
        self._fresh_ledger = fresh_ledger
        self._stop = asyncio.Event()
        self._why: str | None = None
        self._over = asyncio.Event()
        self._saying = asyncio.Lock()
        self._until: float | None = None
        self._recovering = True
        self.reports: ReportConsumer | None = None
        self.recovered = 0
        self.answers: EvaluationQueue | None = None

    def stop(self, why: str) -> None:
        """Ask for a graceful stop: the row in hand is finished and stored."""
        if self._why is None:
            self._note("stopping", {"reason": why})
        self._why = self._why or why
        self._until = self._until or time.monotonic() + STOP_S
        self._stop.set()

    async def run(self, name: str, *, new: bool = False) -> PaperOutcome:
        """Trade until the feed ends or somebody stops it.

        Args:
            name: what the operator would call the run.
            new: do not go on with a run that was left behind.

        Raises:
            ConfigError: the run is being traded elsewhere, or does not come out as it was stored.
            LeaseLost: another process took over.
            StoreError: the store cannot be written and waiting will not help.
            FeedError: the feed is gone for good.
        """
        began = time.perf_counter()
        compiled_s = compile_engine()
        while True:
            record = await run_to_trade(self._store, self._settings, self._feed, name, new=new)
            lease_of = lease_name(record.run_id)
            await release_dead_lease(self._store, lease_of)
            tenure = LeaseHolder(self._store.leases, lease_of, self._owner, self._lease_ms, self._note)
            lease = await self._lease(tenure, record)
            if lease is None:
                return PaperOutcome(record, None, None, self._why)
            try:
                async with tenure.kept(lease):
                    if await self._is_resumable(record.run_id, lease):
                        return await self._traded(record.run_id, lease, began, compiled_s)
            finally:
                with suppress(StoreError):
                    await tenure.release()

    async def _is_resumable(self, run_id: str, lease: Lease) -> bool:
        """Whether the run can be traded now that nobody else does; one that ended meanwhile cannot."""
        record = await self._store.runs.find(run_id)
        if record.status == "interrupted":
            await self._store.runs.reopen(run_id, lease)
        return record.status in RESUMABLE

    async def _traded(self, run_id: str, lease: Lease, began: float, compiled_s: float) -> PaperOutcome:
        record = await self._store.runs.find(run_id)
        crash_loop = self._crashed_too_often(run_id)
        await self._start(record, lease)
        self.stepper.timing.compile_s = compiled_s
        async with self._surroundings.around(self.status, run_id):
            looking = asyncio.create_task(self._look_around(), name="looking around")
            looking.add_done_callback(lambda ended: self._stop.set())  # no bar is waited for after a failure
            try:
                await self._recover(record, crash_loop=crash_loop)
                return await self._trade(looking, began)
            except StoppedEarly:
                self._check(looking)
                await self._close(Closing("interrupted"))
                return PaperOutcome(await self._store.runs.find(run_id), None, None, self._why)
            finally:
                await self._stop_polling(looking)
                await self._put_down()

    async def _stop_polling(self, looking: "asyncio.Task[None]") -> None:
        """Let the look in hand come to its end: one that is cut off may keep a lock of the store."""
        self._over.set()
        await asyncio.wait({looking}, timeout=STOP_S)
        looking.cancel()
        await asyncio.wait({looking})

    async def _lease(self, tenure: LeaseHolder, record: RunRecord) -> Lease | None:
        """The lease of the run; None when somebody asked to stop before it was free."""
        lease = await tenure.take()
        until = time.monotonic() + 2 * self._lease_ms / 1_000
        while lease is None and time.monotonic() < until and not self._stop.is_set():
            await asyncio.sleep(self._look_s)
            lease = await tenure.take()
        if lease is None and not self._stop.is_set():
            holder = await self._store.leases.holder(lease_name(record.run_id))
            by = "another process" if holder is None else repr(holder.owner)
            raise ConfigError(
                f"run {record.run_id} is being traded by {by}: stop that one, or trade a new run with --new"
            )
        return lease

    async def _start(self, record: RunRecord, lease: Lease) -> None:
        """Set up at the newest savepoint, or before the first row where there is none that fits."""
        self._began = time.perf_counter()
        definitions = given_playbooks(self._settings, self._definitions)
        self._definitions = definitions
        self.savepoints = CheckpointSchedule(
            self._store, record.run_id, self._settings, definitions, self._note, self._pace
        )
        point = await self.savepoints.find(record)
        if point is not None:
            try:
                return await self._set_up(record, lease, point)
            except NoSavepoint as error:
                self.savepoints.refused(str(error))
        await self._set_up(record, lease, None)

    async def _set_up(self, record: RunRecord, lease: Lease, point: Savepoint | None) -> None:
        """The stepper and what surrounds it, where it begins to play.

        Raises:
            NoSavepoint: the savepoint cannot be used.
        """
        feed, store, run_id = self._feed, self._store, record.run_id
        start = 0 if point is None else point.events
        trial = StoredTrial(
            store, run_id, self._settings, fresh=self._fresh_ledger, away=self._wait_for_store
        )
        trial.declares(given_playbooks(self._settings, self._definitions), feed.timeframe)
        self.keeper = BarCommitter(
            store, run_id, self._settings.account.name, self._points, self._surroundings.stored, trial
        )
        self.keeper.lease = lease
        sink = RecoveringSink(store, run_id, record.events, self.keeper, start)
        journal = JournalWriter(sink, self._settings.runtime.flush_rows)
        self._script = await read_script(store, run_id, start)
        self._player = Player(self._script)
        self._ask: Callable[[Evaluation], None] = self._player.ask
        market = BarAxes(feed.symbols, feed.timeframe, feed.label)
        past = await past_of(store, record, sink) if self._settings.uses_models else None
        self.stepper = LiveStepper(
            self._settings,
            market,
            journal,
            lock_step=feed.lock_step,
            ask=lambda evaluation: self._ask(evaluation),
            definitions=self._definitions,
            models=self._models,
            past=past,
            trial=BegunTrial(trial, await ledger_of_run(store, record)) if record.events else trial,
        )
        if point is not None:
            found = restored(
                point, market, self._settings, journal, self._definitions, self._models, past,
                market_waits=self._feed.lock_step,
            )  # fmt: skip
            await self.savepoints.goes_on(found)
            self.stepper.resume(found.session, found.standing.rows, found.standing.blocked)
        self.committing = CommitLoop(journal, self.keeper, self._note, self._save, lambda: self._until)
        self.guard = EntryGuard(feed.symbols, self._note)
        self.requests = OperatorCommands(
            store.operator, run_id, self.stepper, self.committing, self._note, self._script.outcomes,
            self.guard.release,
        )  # fmt: skip
        self.status = TradingStatus(
            run_id, self._owner, feed, self.stepper, self.keeper, self.committing, self.guard,
            lambda: self._why,
        )  # fmt: skip

    async def _recover(self, record: RunRecord, *, crash_loop: bool) -> None:
        """Bring the stepper to where its run stands; from then on evaluations think beside the bars."""
        script, stepper = self._script, self.stepper
        rows_before, events_before = stepper.rows, stepper.journal.events
        self._last = await recover(
            self._store, record, stepper, script, self._player, lambda rows: self._progress(rows, 0),
            self._stop.is_set,
        )  # fmt: skip
        self.recovered = stepper.rows
        reconciled = await self.keeper.reconcile()
        if self.recovered:
            told = {
                "rows": self.recovered,
                "events": stepper.journal.events,
                "rows_played": self.recovered - rows_before,
                "events_played": stepper.journal.events - events_before,
                "orders_sent_again": reconciled,
                "took_s": round(time.perf_counter() - self._began, 3),
            }
            self._note("recovered", {"run_id": record.run_id, **told})
        if crash_loop:
            self.guard.hold(SafeModeReason.CRASH_LOOP, "`thinktwice kill RUN off` lets it enter again")
        self._ask = self._ask_beside
        if not self._feed.lock_step:
            known = dict(script.verdicts)
            self.reports = ReportConsumer(self._store.reports, record.run_id, self._owner, known)
        for evaluation in script.unanswered:
            self._ask(evaluation)
        self._doubts = await Doubts.of_run(self._settings.data, self._feed, self._store, record, stepper)
        self._recovering = False

    def _ask_beside(self, evaluation: Evaluation) -> None:
        if self.answers is None:
            self.answers = EvaluationQueue(self.stepper.session, self.committing.wake)
        self.answers.ask(evaluation)

    async def _put_down(self) -> None:
        if self.answers is not None:
            await self.answers.close()
        await self.committing.close()
        if self.stepper.begun:
            await self.stepper.session.models.close()

    async def _trade(self, looking: "asyncio.Task[None]", began: float) -> PaperOutcome:
        async with aclosing(self._items()) as items:
            async for item in items:
                self._check(looking)
                if isinstance(item, FeedAnomaly):
                    self.status.heard(item)
                    self.stepper.note(item)
                    await self._keep()
                    continue
                await self._row(item)
                if self.stepper.lock_step:
                    await self.requests.execute()
        self._check(looking)
        return await self._end(began)

    async def _row(self, row: BarRow) -> None:
        stepper = self.stepper
        row = self.guard.guarded(row, store_behind=self._store_behind)
        started = time.perf_counter()
        await stepper.take(row)
        self.status.latencies_ms.append((time.perf_counter() - started) * 1e3)
        self.status.last_bar_at = time.time_ns()
        self.keeper.bar(stepper.rows - 1, row)
        await self._keep()
        self._progress(self.recovered, stepper.rows - self.recovered)

    @property
    def _store_behind(self) -> bool:
        """Whether entries have to wait for the store; where rows wait for it they need not."""
        return not self.stepper.lock_step and self.committing.behind

    async def _save(self) -> None:
        """Everything is stored: take a savepoint if one is due and nothing is on its way."""
        stepper, lease = self.stepper, self.keeper.lease
        busy = self.requests.busy or (self.reports is not None and self.reports.busy) or stepper.draining
        if busy or lease is None or self._recovering or not self.savepoints.due(stepper):
            return
        if not stepper.session.policy_loop.in_flight:
            await self.savepoints.take(stepper, lease)

    async def _wait_for_store(self, error: StoreError) -> None:
        """The ledger cannot be read before the first row: wait as for a row that is to be stored."""
        self.committing.away(error)
        if self._until is not None and time.monotonic() >= self._until:
            raise error
        await asyncio.sleep(self._look_s)

    async def _keep(self) -> None:
        """Store what has gathered: waited for where the feed waits, beside the bars where it does not."""
        if self.stepper.lock_step:
            await self.committing.commit()
        else:
            self.committing.wake()

    async def _items(self) -> AsyncGenerator[BarRow | FeedAnomaly]:
        """What the feed hands over, until it ends or somebody asks to stop."""
        stop = asyncio.create_task(self._stop.wait())
        items = self._doubts.sifted(self._feed.items(self._last))
        try:
            while not self._stop.is_set():
                coming = asyncio.ensure_future(anext(items))
                await asyncio.wait({coming, stop}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    coming.cancel()
                    await asyncio.gather(coming, return_exceptions=True)
                    return
                try:
                    item = coming.result()
                except StopAsyncIteration:
                    return
                yield item
        finally:
            stop.cancel()
            await items.aclose()

    def _check(self, looking: "asyncio.Task[None]") -> None:
        """Raise what went wrong beside the bars."""
        self.committing.check()
        if self.answers is not None:
            self.answers.check()
        if looking.done():
            looking.result()

    async def _look_around(self) -> None:
        """Say how this process is; fetch the operator's requests and the reports that wait.

        A store that is away has none of them: that it is away, and that it is back, is told from here, too.

        Raises:
            Exception: whatever ended the work beside the bars, which may be long before the next bar.
        """
        while not self._over.is_set():
            self.committing.check()
            if self.answers is not None:
                self.answers.check()
            try:
                await self._look()
            except StoreError as error:
                if isinstance(error, (LeaseLost, StoreDamaged, StoreLost)):
                    raise
                self.committing.away(error)
            else:
                self.committing.answers()
            self.guard.weigh_store(behind=self._store_behind)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), self._look_s)

    async def _look(self) -> None:
        await self._say()
        await self.requests.look()
        if self.requests.asks_to_stop and self.stepper.begun:
            self.stop("the operator's request")
        if self.stepper.begun and not self.stepper.lock_step and not self._recovering:
            await self.requests.execute()
            await self._reports()

    async def _say(self) -> None:
        """Store how this process is; one after the other, so that no older word comes after a newer one.

        Nothing more is said once the end of the run is on its way: the last word would tell that it waits.
        """
        async with self._saying:
            lease = self.keeper.lease
            if lease is not None and not self.keeper.closing:
                await self._store.trading.say(lease, self.keeper.run_id, self._said())

    def _said(self) -> dict[str, Any]:
        return self.status.status().document(time.time_ns())

    async def _reports(self) -> None:
        if self.reports is None:
            return
        session = self.stepper.session
        await self.reports.acknowledge(stored=not self.stepper.journal.waiting)
        await self.reports.look(session)
        if self.reports.apply_report(session):
            self.committing.wake()
            self._note("report_heard", {"reports": session.slow_loop.counters.runs})

    async def _end(self, began: float) -> PaperOutcome:
        run_id, stepper = self.keeper.run_id, self.stepper
        if self.answers is not None and self._why is None:
            await self.answers.settled()
        await self.committing.commit()
        if stepper.begun:
            await self.requests.execute(ending=True)
        await self._say()
        if not stepper.begun:
            await self._close(Closing("interrupted"))
            return PaperOutcome(await self._store.runs.find(run_id), None, None, self._why)
        closing = Closing("interrupted")
        stepper.timing.total_s = time.perf_counter() - began
        result = RunResult(stepper.session, stepper.timing)
        if self._why is None:
            stepper.session.finish()
            closing = Closing("finished", result.document(run_id, self._store.url))
        await self._close(closing)
        found = await self._store.runs.find(run_id)
        return PaperOutcome(found, result, closing.document, self._why)

    async def _close(self, closing: Closing) -> None:
        """Store the last rows and the end of the run in one transaction: no crash finds one of them alone."""
        self.keeper.close(closing)
        await self.committing.commit()
