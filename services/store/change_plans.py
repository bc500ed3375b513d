"""Change plans of runs: found, listed, edited, decided once, and carried out once.

Of a run that trades a decision is a row of the queue to its process, written with the state in one
transaction; the process claims it before it acts. Of a run that is over the caller carries a plan out.
Whatever changes a plan names the state and the hash that it has seen: of two at once one is told.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import Row, Select, func, select

from schemas.errors import ConfigError, the_one
from schemas.plan import HASH_DIGITS, ID_DIGITS, ChangePlan, PlanState
from schemas.timeframes import close_in_run
from services.store.connections import AsyncConnection
from services.store.database_time import insert_once
from services.store.operator_requests import plan_was_handed_in, put_request, withdraw_plan
from services.store.plan_records import (
    EDIT,
    WAITING,
    PlanDecision,
    PlanRecord,
    StoredPlan,
    as_plan,
    as_record,
    new_columns,
    of_plan,
    put_plan,
    revision_columns,
    stored_plan,
    with_decision,
)
from services.store.repository import Repository
from services.store.seals import seal_row, sealed_rows
from services.store.tables import change_plans, paper_bars, runs

ENDED_BETWEEN = ("cancelled", "declined", "expired", "stale", "failed")  # steps of before may stand
DONE = {"completed": "done", "rolled_back": "undone"}  # what each step is when the plan is
_LAST_LABEL = select(func.max(paper_bars.c.label)).where(paper_bars.c.run_id == runs.c.run_id)
OF_RUN = (runs.c.status, runs.c.mode, runs.c.data, _LAST_LABEL.scalar_subquery().label("last_label"))
Outcome = tuple[PlanState, tuple[str, ...]]  # what came of it, and why


@dataclass(frozen=True)
class Operator:
    """Who decides, and when.

    Attributes:
        by: a name.
        at: wall time, ns.
        now: the time by which plans of the run expire, ns: of its last bar where it trades.
    """

    by: str
    at: int
    now: int


class ChangePlanRepository(Repository):
    """The plans of one store."""

    async def put(
        self, run_id: str, plan: ChangePlan, who: Operator | None = None, **payload: Any
    ) -> PlanRecord:
        """Keep a plan that a command has made; one that waits already stays as it is.

        Args:
            run_id: the run.
            plan: its first revision.
            who: hands it in to the process of a run that trades, where it waits and expires; None for a run
                that is over.
            payload: two_phase, reasoning and elapsed_ms of phase 1.

        Raises:
            ConfigError: the same plan, of the same bar, was decided before.
        """

        async def work(connection: AsyncConnection) -> PlanRecord:
            await connection.execute(_lock_run(run_id))
            values = new_columns(run_id, plan, **payload)
            made = await connection.execute(insert_once(self._url.dialect, change_plans).values(values))
            if made.rowcount == 1:
                await seal_row(connection, change_plans, of_plan(run_id, plan.plan_id))
            stored, trades = await self._hold(connection, run_id, plan.plan_id)
            if stored.record.state != "awaiting_approval":
                raise ConfigError(_not_open(stored.record, "the same can be planned again at the next bar"))
            if trades and who is not None:
                await self._ask(connection, stored.record, "submit", who, plan)
            return stored.record

        return await self._run_write(work)

    async def find(self, prefix: str, run_id: str | None = None, *, now: int = 0) -> StoredPlan:
        """The plan whose id starts so, in one run; without a run in the newest that has it.

        Args:
            prefix: hex digits.
            run_id: the run.
            now: wall time, ns: by it a plan of a run that is over has expired, else by the last bar.

        Raises:
            ConfigError: there is none, or several plans start so.
            StoreDamaged: it cannot be read.
        """
        prefix = prefix[:ID_DIGITS]
        named = change_plans.c.plan_id.startswith(prefix, autoescape=True)
        columns = (change_plans.c.plan_id, change_plans.c.run_id, *OF_RUN)
        query = self._by_run(select(*columns).where(named), run_id)

        async def work(connection: AsyncConnection) -> StoredPlan:
            found = (await connection.execute(query)).all()
            where = "in this store" if run_id is None else f"of run {run_id}"
            names = (row.plan_id for row in found)
            name = the_one("plan", prefix, names, where, "see `thinktwice plans list`")
            own = sealed_rows(change_plans).where(of_plan(found[0].run_id, name))
            stored = as_plan((await connection.execute(own)).one())
            return replace(stored, record=_as_of(stored.record, _clock_of(found[0], now)))

        return await self._run_read(work)

    async def all(self, run_id: str | None = None, *, now: int = 0) -> list[PlanRecord]:
        """How the plans of a run stand, or of all runs: the newest run and its newest plan first.

        Args:
            run_id: the run; None for all.
            now: wall time, ns: by it a plan of a run that is over has expired, else by the last bar.

        Raises:
            StoreDamaged: a row cannot be read.
        """
        query = self._by_run(sealed_rows(change_plans, *OF_RUN), run_id)
        return [_as_of(as_record(row), _clock_of(row, now)) for row in await self._select(query)]

    async def waiting(self, run_id: str | None = None, *, now: int = 0) -> int:
        """How many plans of a run, or of all, wait for a decision; see `all`."""
        query = self._by_run(select(change_plans.c.expires_at, *OF_RUN), run_id)
        rows = await self._select(query.where(change_plans.c.state == "awaiting_approval"))
        return sum(row.expires_at > _clock_of(row, now) for row in rows)

    async def revise(self, run_id: str, revised: ChangePlan, seen: str, who: Operator) -> PlanRecord:
        """Put a new revision in the place of the one seen; an approval of that one is void.

        Args:
            run_id: the run.
            revised: the next revision of a plan that is there.
            seen: hash of the revision that was edited.
            who: edits it.

        Raises:
            ConfigError: it was decided, edited or carried out meanwhile, or has expired.
        """

        async def work(connection: AsyncConnection) -> PlanRecord:
            stored, trades = await self._hold(connection, run_id, revised.plan_id)
            record = stored.record
            if record.hash != seen:
                raise ConfigError(_other_revision(record, seen))
            self._demand_open(record, who, *WAITING)
            edited = PlanDecision(EDIT, revised.revision, revised.content_hash, who.by, who.at)
            values = revision_columns((*stored.revisions, revised)) | {"state": "awaiting_approval"}
            moved = await self._move(connection, record, edited, values)
            if record.state == "approved":
                reason = f"it was edited by {who.by}: revision {revised.revision} waits for a decision"
                await withdraw_plan(connection, self._url.dialect, run_id, record.plan_id, reason)
            if trades and stored.folder is None:  # what lapses unattended is what was edited
                await self._ask(connection, moved, "submit", who, revised)
            return moved

        return await self._run_write(work)

    async def approve(self, run_id: str, plan_id: str, digits: str, who: Operator) -> PlanRecord:
        """Approve the revision whose hash starts with these digits.

        Of a run that trades its process is asked; one that writes a folder is `executing`, for
        `carry_out`. An approval that a crash left so is taken up by the next one.

        Raises:
            ConfigError: too few digits, not those of the newest revision, or it is decided or expired.
        """
        if len(digits) < HASH_DIGITS:
            raise ConfigError(f"--hash {digits!r}: give at least {HASH_DIGITS} digits of it")

        async def work(connection: AsyncConnection) -> PlanRecord:
            stored, running = await self._hold(connection, run_id, plan_id)
            record, trades = stored.record, running and stored.folder is None
            if not record.hash.startswith(digits):
                raise ConfigError(_other_revision(record, digits))
            if stored.folder is None and not running:
                raise ConfigError(_no_process(run_id))
            if record.state == "executing" and not trades:
                return record
            self._demand_open(record, who, "awaiting_approval")
            decision = PlanDecision("approve", record.revision, record.hash, who.by, who.at)
            state = "approved" if trades else "executing"
            approved = await self._move(connection, record, decision, {"state": state, "reasons": "[]"})
            if trades:
                await self._ask(connection, approved, "approve", who, stored.plan)
            return approved

        return await self._run_write(work)

    async def cancel(self, run_id: str, plan_id: str, who: Operator) -> PlanRecord:
        """End a plan that waits, or whose approval its process has not taken yet.

        Raises:
            ConfigError: it is decided otherwise, carried out or expired.
        """

        async def work(connection: AsyncConnection) -> PlanRecord:
            stored, trades = await self._hold(connection, run_id, plan_id)
            record = stored.record
            self._demand_open(record, who, *WAITING)
            decision = PlanDecision("cancel", record.revision, record.hash, who.by, who.at)
            cancelled = await self._move(connection, record, decision, {"state": "cancelled"})
            if record.state == "approved":
                reason = f"it was cancelled by {who.by}"
                await withdraw_plan(connection, self._url.dialect, run_id, plan_id, reason)
            if trades and (record.journalled or await plan_was_handed_in(connection, run_id, plan_id)):
                await self._ask(connection, cancelled, "cancel", who)
            return cancelled

        return await self._run_write(work)

    async def ask_rollback(self, run_id: str, plan_id: str, who: Operator) -> PlanRecord:
        """Ask the process of a run that trades to return what a plan changed.

        Raises:
            ConfigError: the plan was not carried out, or the run does not trade.
        """

        async def work(connection: AsyncConnection) -> PlanRecord:
            stored, trades = await self._hold(connection, run_id, plan_id)
            record = stored.record
            ended_later = record.phase > 1 and record.state in ENDED_BETWEEN  # behind a checkpoint
            if record.state != "completed" and not ended_later:
                raise ConfigError(_not_open(record, "only what was carried out is rolled back"))
            if not trades:
                raise ConfigError(_no_process(run_id))
            await self._ask(connection, record, "rollback", who)
            return record

        return await self._run_write(work)

    async def claim(self, run_id: str, plan_id: str, plan_hash: str) -> bool:
        """Whether the process may act on the approval of this revision now; again after a crash, too.

        False where it was edited, cancelled or carried out since.
        """

        async def work(connection: AsyncConnection) -> bool:
            stored = await stored_plan(connection, run_id, plan_id)
            states = ("approved", "executing")
            if stored is None or stored.record.hash != plan_hash or stored.record.state not in states:
                return False
            await put_plan(connection, run_id, plan_id, {"state": "executing"})
            return True

        return await self._run_write(work)

    async def carry_out(
        self,
        run_id: str,
        plan_id: str,
        work: Callable[[ChangePlan], Outcome],
        *,
        state: Literal["executing", "completed"] = "executing",
        who: Operator | None = None,
    ) -> PlanRecord:
        """Do the work of an approved plan of a run that is over, and note what came of it.

        The plan stays locked meanwhile. The work does nothing where it was done before a crash.

        Args:
            run_id: the run.
            plan_id: the plan.
            work: carries the newest revision out.
            state: that the plan must have: `completed` for a rollback.
            who: decides on the rollback.

        Raises:
            ConfigError: it is not in that state any more.
        """
        async with self._write() as connection:
            stored = await self._there(connection, run_id, plan_id)
            record = stored.record
            if record.state != state:
                raise ConfigError(_not_open(record, "nothing is done twice"))
            end, reasons = work(stored.plan)
            steps = dict.fromkeys(map(str, record.steps), DONE.get(end, "waiting"))
            values = {"state": end, "phase": 2, "steps": json.dumps(steps), "reasons": json.dumps(reasons)}
            decision = None
            if who is not None:
                decision = PlanDecision("rollback", record.revision, record.hash, who.by, who.at)
            return await self._move(connection, record, decision, values)

    async def expire(self, run_id: str, plan_id: str, at: int) -> None:
        """Note that nobody decided on a plan of a run that is over in time."""
        async with self._write() as connection:
            record = (await self._there(connection, run_id, plan_id)).record
            if record.state == "awaiting_approval" and at >= record.expires_at:
                decision = PlanDecision("expire", record.revision, record.hash, "expiry", record.expires_at)
                await self._move(connection, record, decision, {"state": "expired"})

    async def _hold(self, connection: AsyncConnection, run_id: str, plan_id: str) -> tuple[StoredPlan, bool]:
        """A plan, with its run locked; whether that trades, or will go on to: its process is told then."""
        run = (await connection.execute(_lock_run(run_id))).one_or_none()
        stored = await self._there(connection, run_id, plan_id)
        return stored, run is not None and _trades(run.status, run.mode)

    async def _there(self, connection: AsyncConnection, run_id: str, plan_id: str) -> StoredPlan:
        found = await stored_plan(connection, run_id, plan_id)
        if found is None:
            raise ConfigError(f"no plan {plan_id!r} of run {run_id}: see `thinktwice plans list`")
        return found

    def _demand_open(self, record: PlanRecord, who: Operator, *states: str) -> None:
        if record.state not in states:
            raise ConfigError(_not_open(record, "a plan is decided once"))
        if who.now >= record.expires_at:
            raise ConfigError(f"plan {record.plan_id} has expired: make another, `thinktwice plans make`")

    async def _move(
        self,
        connection: AsyncConnection,
        record: PlanRecord,
        decision: PlanDecision | None,
        values: dict[str, Any],
    ) -> PlanRecord:
        """The plan, which was read in this transaction and is locked since, with other values."""
        if decision is not None:
            values = values | {"decisions": with_decision(record.decisions, decision)}
        await put_plan(connection, record.run_id, record.plan_id, values)
        return (await self._there(connection, record.run_id, record.plan_id)).record

    async def _ask(
        self,
        connection: AsyncConnection,
        record: PlanRecord,
        decision: str,
        who: Operator,
        plan: ChangePlan | None = None,
    ) -> None:
        payload = {
            "plan_id": record.plan_id,
            "decision": decision,
            "hash": record.hash,
            "by": who.by,
            "plan": None if plan is None else plan.payload(),
        }
        await put_request(connection, self._url.dialect, record.run_id, "plan", payload)

    def _by_run(self, query: Select[Any], run_id: str | None) -> Select[Any]:
        """Plans of one run or of all, the newest run and its newest plan first."""
        if run_id is not None:
            query = query.where(change_plans.c.run_id == run_id)
        query = query.join_from(change_plans, runs, runs.c.run_id == change_plans.c.run_id)
        order = (runs.c.number.desc(), change_plans.c.made_at.desc(), change_plans.c.plan_id)
        return query.order_by(*order)


def _lock_run(run_id: str) -> Select[Any]:
    return select(runs.c.status, runs.c.mode).where(runs.c.run_id == run_id).with_for_update()


def _trades(status: str, mode: str) -> bool:
    """Whether a run trades, or will go on to."""
    return status == "running" or (status, mode) == ("interrupted", "paper")


def _clock_of(run: Row[Any], now: int) -> int:
    """By what a plan expires, ns: the close of the last bar of a run that trades, else the wall time."""
    if not _trades(run.status, run.mode):
        return now
    return 0 if run.last_label is None else close_in_run(run.last_label, json.loads(run.data))


def _as_of(record: PlanRecord, clock: int) -> PlanRecord:
    """A plan as it stands at a time: that it expired is seen by a reader before it is noted."""
    if record.state == "awaiting_approval" and clock >= record.expires_at:
        return replace(record, state="expired", clock=clock)
    return replace(record, clock=clock)


def _no_process(run_id: str) -> str:
    return (
        f"run {run_id} trades no more, so nothing can change in it: `thinktwice plans make --run "
        f"{run_id} --into DIR` plans a folder of playbooks"
    )


def _other_revision(record: PlanRecord, digits: str) -> str:
    edits = [change for change in record.decisions if change.decision == EDIT]
    since = f" ({edits[-1].shown})" if edits else ""
    return (
        f"{digits!r} is not the hash of plan {record.plan_id} as it stands: its newest revision "
        f"{record.revision} has {record.hash[:HASH_DIGITS]}{since}; see `thinktwice plans show`"
    )


def _not_open(record: PlanRecord, rule: str) -> str:
    last = record.decisions[-1] if record.decisions else None
    text = "" if last is None else f" ({last.shown})"
    return f"plan {record.plan_id} is {record.state.replace('_', ' ')}{text}: {rule}"
