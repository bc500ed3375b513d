"""Live runs whose operator decides on plans, and processes that die around one; on either dialect."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from schemas.plan import ChangePlan
from schemas.settings import Settings
from services.plans.drafting import draft
from services.plans.editing import StepEdit, revise
from services.plans.rows import PlanRows
from services.playbooks.lifecycle import PlaybookLifecycle
from services.store import Store, open_store
from services.store.change_plans import ChangePlanRepository, Operator
from services.store.operator_requests import OperatorRequests
from tests.services.plans.plan_worlds import NAME, OTHER, risk
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import Killed, RunningFeed, address, read_requests, replayed, rows_stored
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries
from worker.live.process import PaperOutcome, PaperProcess
from worker.live.process_inputs import ProcessInputs

RUN, APPROVE_AT, EDIT_AT, CANCEL_AT, LAPSE_AT = "r0001", 120, 140, 160, 180


def bars() -> BarSeries:
    return embedded_bars("2009-01-01", "2009-12-31").select(("AAPL", "IBM"))


class Decided:
    """A live run whose operator decides on plans at some rows."""

    def __init__(self, folder: Path | str, points: Any = None) -> None:
        self.folder = folder
        self.named = {} if points is None else {"points": points}
        self.plans: dict[str, ChangePlan] = {}
        self.answered = asyncio.Event()
        self.process: PaperProcess

    def note(self, kind: str, detail: dict[str, Any]) -> None:
        if kind == "operator_command":
            self.answered.set()

    @property
    def feed_bars(self) -> BarSeries:
        return bars()

    @property
    def feed(self) -> RunningFeed:
        return RunningFeed(self.feed_bars, self.between)

    @property
    def desk(self) -> Any:
        return self.process.traded.stepper.session.slow_loop.plans

    async def between(self, number: int) -> None:
        if number:
            await self.process.traded.committing.caught_up()
        act = {
            APPROVE_AT: self.approve, EDIT_AT: self.edit, CANCEL_AT: self.cancel, LAPSE_AT: self.roll_back,
        }.get(number)  # fmt: skip
        if act is not None:
            self.answered.clear()
            await act()
            async with asyncio.timeout(20.0):
                await self.answered.wait()
                await self.all_answered()

    async def all_answered(self) -> None:
        """Nothing waits in the queue any more."""
        for _ in range(1_000):
            if not await self.store.operator.waiting(RUN):
                return
            await asyncio.sleep(0.02)

    async def put(self, value: float, name: str = NAME) -> tuple[ChangePlan, Operator]:
        now = self.process.traded.stepper.session.clock.now
        facts = self.desk.facts(now)
        plan = draft([risk(value, name)], facts, "text", understanding="the operator wants it")
        assert isinstance(plan, ChangePlan)
        await self.store.plans.put(RUN, plan)
        return plan, Operator("ann", now, now)

    async def approve(self) -> None:
        plan, ann = await self.put(0.008)
        self.plans["approved"] = plan
        await self.store.plans.approve(RUN, plan.plan_id, plan.content_hash, ann)

    async def edit(self) -> None:
        plan, ann = await self.put(0.008, OTHER)
        edited = revise(plan, edits=[StepEdit(1, "value", "0.006")], judge=Settings().judge)
        await self.store.plans.revise(RUN, edited, plan.content_hash, ann)
        self.plans["edited"] = edited
        await self.store.plans.approve(RUN, plan.plan_id, edited.content_hash[:12], ann)

    async def cancel(self) -> None:
        plan, ann = await self.put(0.009)
        self.plans["cancelled"] = plan
        await self.store.plans.cancel(RUN, plan.plan_id, ann)
        self.answered.set()

    async def roll_back(self) -> None:
        await self.store.operator.put(RUN, "rollback", {"playbook_id": NAME})

    async def trade(self) -> PaperOutcome:
        async with await open_store(address(self.folder), create=True) as self.store:
            around = NullMonitor(self.note)
            self.process = PaperProcess(
                ProcessInputs(
                    Settings(), self.feed, self.store, "host:1:a", around, look_s=0.02, **self.named
                )
            )
            return await self.process.run("asked")


KILL_AT = 40


class Once:
    """Ends the process at the n-th call of a function, before or after it, and never again."""

    def __init__(self, call: Any, number: int = 1, *, after: bool = False) -> None:
        self.call = call
        self.left = number
        self.after = after

    def spent(self) -> bool:
        self.left -= 1
        return self.left == 0

    def plain(self, *given: Any, **named: Any) -> Any:
        if not self.after and self.spent():
            raise Killed("before")
        result = self.call(*given, **named)
        if self.after and self.spent():
            raise Killed("after")
        return result

    async def awaited(self, *given: Any, **named: Any) -> Any:
        if not self.after and self.spent():
            raise Killed("before")
        result = await self.call(*given, **named)
        if self.after and self.spent():
            raise Killed("after")
        return result


class ApprovedOnce(Decided):
    """A shorter run with one plan of two steps, approved at a row by the first process that comes there."""

    async def between(self, number: int) -> None:
        if number:
            await self.process.traded.committing.caught_up()
        stored = await self.store.plans.all()
        if any(plan.state in ("approved", "executing") for plan in stored):  # of the process before this one
            await asyncio.wait_for(self.answered.wait(), 20.0)
        if number == KILL_AT and not stored:
            now = self.process.traded.stepper.session.clock.now
            steps = [risk(0.008), risk(0.006, OTHER)]
            plan = draft(steps, self.desk.facts(now), "text", understanding="the operator wants it")
            assert isinstance(plan, ChangePlan)
            self.plans["approved"] = plan
            await self.store.plans.put(RUN, plan)
            ann = Operator("ann", now, now)
            await self.store.plans.approve(RUN, plan.plan_id, plan.content_hash, ann)
            await asyncio.wait_for(self.answered.wait(), 20.0)

    @property
    def feed_bars(self) -> BarSeries:
        return embedded_bars("2009-01-01", "2009-03-31").select(("AAPL", "IBM"))


PLACES = {
    "before the claim": (ChangePlanRepository, "claim", 1, False),
    "behind the claim": (ChangePlanRepository, "claim", 1, True),
    "behind the first step": (PlaybookLifecycle, "enact", 1, True),
    "behind the second step": (PlaybookLifecycle, "enact", 2, True),
    "before its rows are stored": (PlanRows, "write_end", 1, True),
    "before the answer": (OperatorRequests, "answer", 1, False),
    "behind the answer": (OperatorRequests, "answer", 1, True),
}


@contextmanager
def killed_at(place: str) -> Iterator[None]:
    """The first process that comes to a place dies there."""
    owner, name, number, after = PLACES[place]
    call = getattr(owner, name)
    once = Once(call, number, after=after)
    killing = once.awaited if asyncio.iscoroutinefunction(call) else once.plain
    setattr(owner, name, lambda *given, **named: killing(*given, **named))
    try:
        yield
    finally:
        setattr(owner, name, call)


def what_is_wrong(where: Path | str, place: str) -> list[str]:
    """Kill a process at a place, let another go on, and say what is not as it was approved; [] is well."""
    live, again = ApprovedOnce(where), ApprovedOnce(where)
    with killed_at(place):
        try:
            asyncio.run(live.trade())
        except Killed:
            outcome = asyncio.run(again.trade())
        else:
            return [f"no process died {place}"]
    versions = [json.loads(row.payload) for row in rows_stored(where, "latest", "playbook_version")]
    stored = [(row["version_hash"], row["definition"]) for row in versions if row["version"] > 1]
    makes = [made for step in live.plans["approved"].steps for made in step.makes]
    wanted = [(made.version_hash, json.loads(made.definition.canonical_text())) for made in makes]
    steps = [json.loads(row.payload)["state"] for row in rows_stored(where, "latest", "plan_step")]

    async def standing(store: Store) -> tuple[list[str], list[str]]:
        requests = [request.state for request in await store.operator.all(RUN)]
        return [plan.state for plan in await store.plans.all()], [str(state) for state in requests]

    report = replayed(where, Settings())
    found = {
        "the run has ended": outcome.document is not None,
        "the stored versions are the approved bytes": stored == wanted,
        "each step was carried out once": steps == ["done", "done"],
        "the run replays to its head": report.ok and report.problem is None,
        "plan and request are over": read_requests(where, standing) == (["completed"], ["done"]),
    }
    return [f"not true: {name}" for name, holds in found.items() if not holds]
