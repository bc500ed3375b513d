"""The run that a process has in hand: set up, brought to where it stands, then traded row by row and stored.

Set up at a savepoint or before the first row, played to the end of what is stored; from then on each row is
committed before the next is taken where the feed waits, and beside the bars where it does not.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from schemas.errors import StoreError
from services.feeds.port import BarRow, FeedAnomaly
from services.journal.writer import JournalWriter
from services.playbooks.assembly import given_playbooks
from services.policy_loop.evaluation import Evaluation
from services.store import RunRecord
from services.store.checkpoints import Savepoint
from services.store.records import Closing
from services.store.repository import Lease
from worker.live.checkpoints import CheckpointSchedule, NoSavepoint, restore
from worker.live.commit_loop import CommitLoop
from worker.live.committer import BarCommitter
from worker.live.doubts import Doubts
from worker.live.evaluations import EvaluationQueue
from worker.live.operator import OperatorCommands, execute
from worker.live.process_inputs import ProcessInputs
from worker.live.recovery import Player, RecoveringSink, StoppedEarly, past_of, read_script, recover
from worker.live.reports import ReportConsumer
from worker.live.safe_mode import EntryGuard, SafeModeReason
from worker.live.status import TradingStatus
from worker.live.stepper import BarAxes, LiveStepper
from worker.models import Overrides
from worker.operations.logs import EventSink
from worker.runs.stored_trial import StoredTrial
from worker.runs.trials import GivenTrial, ledger_of_run

Item = TypeVar("Item")

STOP_S = 10.0
NOBODYS = 0  # the number of a command that no operator gave: theirs begin at 1


class StopRequest:
    """Whether a process is to end before its feed does; `note` is told once.

    Attributes:
        why: the first reason; None while nothing asked to stop.
        patience_s: how long a store that stays away is waited for after a stop was asked for.
        until: monotonic seconds at which a store that stays away is given up; None never.
    """

    def __init__(self, note: EventSink) -> None:
        self._note = note
        self.patience_s = STOP_S
        self._requested = False
        self._waiting: asyncio.Timeout | None = None
        self.why: str | None = None
        self.until: float | None = None

    def ask(self, why: str) -> None:
        """End: the row in hand is finished and stored."""
        if self.why is None:
            self._note("stopping", {"reason": why})
        self.why = self.why or why
        self.until = self.until or time.monotonic() + self.patience_s
        self.wake()

    def wake(self) -> None:
        """Wait for no more bars, whatever the reason."""
        self._requested = True
        if self._waiting is not None:
            self._waiting.reschedule(0.0)
        self._waiting = None

    @property
    def requested(self) -> bool:
        """Whether no more bars are waited for."""
        return self._requested

    async def first(self, coming: Awaitable[Item]) -> Item | None:
        """What comes; None, and it is cancelled, where no more bars are waited for before it does."""
        try:
            async with asyncio.timeout(None) as waiting:
                self._waiting = waiting
                return await coming
        except TimeoutError:
            if waiting.expired():
                return None
            raise
        finally:
            self._waiting = None


class TradedRun:
    """One run in the hands of one process.

    Attributes:
        recovered: rows played from the store.
        recovering: whether what is stored has not come out whole yet.
        reports: hears of the slow loop, on a feed that runs on.
        answers: evaluations that think beside the bars; None before the first.
    """

    def __init__(self, inputs: ProcessInputs, stop: StopRequest, record: RunRecord, lease: Lease) -> None:
        """Take the run in hand; `start` sets it up."""
        self._inputs = inputs
        self._note = inputs.surroundings.note
        self._stop = stop
        self._record = record
        self._lease = lease
        self._began = time.perf_counter()
        self.recovering = True
        self.recovered = 0
        self._failing: frozenset[str] = frozenset()
        self.reports: ReportConsumer | None = None
        self.answers: EvaluationQueue | None = None

    async def start(self) -> None:
        """Set up at the newest savepoint, or before the first row where there is none that fits."""
        given = self._inputs
        self._definitions = given_playbooks(given.settings, given.definitions)
        self.savepoints = CheckpointSchedule(given, self._record.run_id, self._definitions)
        point = await self.savepoints.find(self._record)
        if point is not None:
            try:
                return await self._set_up(point)
            except NoSavepoint as error:
                self.savepoints.note_refusal(str(error))
        await self._set_up(None)

    async def _set_up(self, point: Savepoint | None) -> None:
        """The stepper and what surrounds it, where it begins to play.

        Raises:
            NoSavepoint: the savepoint cannot be used.
        """
        given, record, run_id = self._inputs, self._record, self._record.run_id
        feed, store, settings = given.feed, given.store, given.settings
        start = 0 if point is None else point.events
        trial = StoredTrial(store, run_id, settings, fresh=given.fresh_ledger, away=self._wait_for_store)
        trial.declares(self._definitions, feed.timeframe)
        self.committer = BarCommitter(given, run_id, trial)
        self.committer.lease = self._lease
        sink = RecoveringSink(store, run_id, record.events, self.committer, start)
        journal = JournalWriter(sink, settings.runtime.flush_rows)
        self._script = await read_script(store, run_id, start)
        self._player = Player(self._script)
        self._ask: Callable[[Evaluation], None] = self._player.ask
        axes = BarAxes(feed.symbols, feed.timeframe, feed.label, settings.data.zone)
        past = await past_of(store, record, sink) if settings.uses_models else None
        own = Overrides(given.models, past=past)
        self.stepper = LiveStepper(
            settings,
            axes,
            journal,
            lock_step=feed.lock_step,
            ask=lambda evaluation: self._ask(evaluation),
            definitions=self._definitions,
            own=own,
            trial=GivenTrial(await ledger_of_run(store, record), trial.follow) if record.events else trial,
        )
        if point is not None:
            waits = feed.lock_step
            found = restore(point, axes, settings, journal, self._definitions, own, market_waits=waits)
            await self.savepoints.goes_on(found)
            self.stepper.resume(found.session, found.resume_point.rows, found.resume_point.blocked)
        self.committing = CommitLoop(
            journal, self.committer, self._note, self._save, lambda: self._stop.until
        )
        self.guard = EntryGuard(feed.symbols, self._note)
        self.requests = OperatorCommands(
            store.operator, store.plans, run_id, self.stepper, self.committing.commit, self._note,
            self._script.outcomes, self.guard.release,
        )  # fmt: skip
        self.status = TradingStatus(
            run_id, given.owner, feed, self.stepper, self.committer, self.committing, self.guard,
            lambda: self._stop.why,
        )  # fmt: skip

    async def recover(self, *, crash_loop: bool) -> None:
        """Bring the stepper to where its run stands; from then on evaluations think beside the bars."""
        given, record, script, stepper = self._inputs, self._record, self._script, self.stepper
        rows_before, events_before = stepper.rows, stepper.journal.events

        def hear(rows: int) -> None:
            given.progress(rows, 0)
            if self._stop.requested:
                raise StoppedEarly

        self._last = await recover(given.store, record, stepper, self._player, hear)
        self.recovered = stepper.rows
        reconciled = await self.committer.reconcile()
        if self.recovered:
            payload = {
                "rows": self.recovered,
                "events": stepper.journal.events,
                "rows_played": self.recovered - rows_before,
                "events_played": stepper.journal.events - events_before,
                "orders_sent_again": reconciled,
                "took_s": round(time.perf_counter() - self._began, 3),
            }
            self._note("recovered", {"run_id": record.run_id, **payload})
        elif not given.feed.lock_step:
            followed = {"feed": given.feed.name, "path": record.data.get("path")}
            symbols = list(given.feed.symbols)
            self._note("following", {"run_id": record.run_id, **followed, "symbols": symbols})
        if crash_loop:
            self.guard.hold(SafeModeReason.CRASH_LOOP, "`thinktwice kill off --run RUN` lets it enter again")
        if stepper.begun:
            await self._ask_lost_models()
        self._ask = self._ask_beside
        if not given.feed.lock_step:
            known = dict(script.verdicts)
            self.reports = ReportConsumer(given.store.reports, record.run_id, given.owner, known)
        for evaluation in script.unanswered:
            self._ask(evaluation)
        bars = stepper.session.bars if stepper.begun else None
        self._doubts = await Doubts.of_run(given.settings.data, given.feed, given.store, record, bars)
        self.recovering = False

    async def _ask_lost_models(self) -> None:
        """A process that goes on asks a lost model once more: what turned it away may be mended."""
        session = self.stepper.session
        if any(breaker.is_lost for breaker in session.models.account.failing().values()):
            command = {"number": NOBODYS, "kind": "ask_models", "payload": {}}
            payload = await execute(session, command, lock_step=self.stepper.lock_step)
            self._note("models_asked_again", {"models": payload["models"]})

    def warn_of_models(self) -> None:
        """Once of each model that gives no usable reply any more: rules decide instead of it."""
        if self.recovering or not self.stepper.begun:
            return
        found = self.stepper.session.models.account.failing()
        for model in sorted(found.keys() - self._failing):
            payload = {"failed_in_a_row": found[model].failures, "reason": found[model].reason}
            self._note("model_failing", {"model": model, **payload})
        self._failing = frozenset(found)

    def _ask_beside(self, evaluation: Evaluation) -> None:
        if self.answers is None:
            self.answers = EvaluationQueue(self.stepper.session, self.committing.wake)
        self.answers.ask(evaluation)

    def items(self) -> AsyncGenerator[BarRow | FeedAnomaly]:
        """What the feed hands over from the last stored row on, sifted for bars in doubt."""
        return self._doubts.sift(self._inputs.feed.items(self._last))

    async def take(self, item: BarRow | FeedAnomaly) -> None:
        """Trade a row, or note what was wrong with the feed, and store it."""
        if isinstance(item, FeedAnomaly):
            self.status.note_anomaly(item)
            self.stepper.note(item)
            await self._keep()
            return
        if self.stepper.lock_step and self.stepper.begun:  # what was decided on the bar before acts first
            await self.requests.execute()
        await self._row(item)
        if self.stepper.lock_step:
            await self.requests.execute()

    async def _row(self, row: BarRow) -> None:
        stepper = self.stepper
        row = self.guard.guard_row(row, store_behind=self.store_behind)
        started = time.perf_counter()
        await stepper.take(row)
        self.status.latencies_ms.append((time.perf_counter() - started) * 1e3)
        self.status.last_bar_at = time.time_ns()
        self.committer.bar(stepper.rows - 1, row)
        await self._keep()
        self._inputs.progress(self.recovered, stepper.rows - self.recovered)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to trade with, however long the feed goes on."""
        return self.stepper.begun and self.stepper.session.ended_early is not None

    @property
    def store_behind(self) -> bool:
        """Whether entries have to wait for the store; where rows wait for it they need not."""
        return not self.stepper.lock_step and self.committing.weigh()

    async def _save(self) -> None:
        """Everything is stored: take a savepoint if one is due and nothing is on its way."""
        stepper, lease = self.stepper, self.committer.lease
        busy = self.requests.busy or (self.reports is not None and self.reports.busy) or stepper.draining
        if busy or lease is None or self.recovering or not self.savepoints.due(stepper):
            return
        if not stepper.session.policy_loop.in_flight:
            await self.savepoints.take(stepper, lease)

    async def _wait_for_store(self, error: StoreError) -> None:
        """The ledger cannot be read before the first row: wait as for a row that is to be stored."""
        self.committing.away(error)
        if self._stop.until is not None and time.monotonic() >= self._stop.until:
            raise error
        await asyncio.sleep(self._inputs.look_s)

    async def _keep(self) -> None:
        """Store what has gathered: waited for where the feed waits, beside the bars where it does not."""
        self.warn_of_models()
        if self.stepper.lock_step:
            await self.committing.commit()
        else:
            self.committing.wake()

    def check(self) -> None:
        """Raise what went wrong beside the bars."""
        self.committing.check()
        if self.answers is not None:
            self.answers.check()

    async def close(self, closing: Closing) -> None:
        """Store the last rows and the end of the run in one transaction: no crash finds one of them alone."""
        self.committer.close(closing)
        await self.committing.commit()

    async def release(self) -> None:
        """End what works beside the bars, stored or not."""
        if self.answers is not None:
            await self.answers.close()
        await self.committing.close()
        if self.stepper.begun:
            await self.stepper.session.models.live.close()
