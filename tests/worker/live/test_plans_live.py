"""Plans of a run that trades live: approved, edited, cancelled and left to lapse, killed, replayed."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from schemas.plan import ChangePlan
from schemas.settings import Settings
from services.plans.drafting import draft
from services.plans.editing import StepEdit, revise
from services.plans.rows import PlanRows
from services.playbooks.lifecycle import PlaybookLifecycle
from services.store import Store, open_store
from services.store.change_plans import ChangePlanRepository, Operator
from services.store.operator_requests import OperatorRequests
from tests.services.plans.desks import NAME, OTHER, risk
from tests.worker.live.paper_runs import (
    KillAt,
    Killed,
    RunningFeed,
    address,
    asked,
    replayed,
    rows_stored,
)
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries
from worker.live.monitor import NullMonitor
from worker.live.process import PaperOutcome, PaperProcess

RUN, APPROVE_AT, EDIT_AT, CANCEL_AT, LAPSE_AT = "r0001", 120, 140, 160, 180


def bars() -> BarSeries:
    return embedded_bars("2009-01-01", "2009-12-31").select(("AAPL", "IBM"))


class Decided:
    """A live run whose operator decides on plans at some rows."""

    def __init__(self, folder: Path, points: Any = None) -> None:
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
            await asyncio.wait_for(self.answered.wait(), 20.0)

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
            feed = RunningFeed(self.feed_bars, self.between)
            around = NullMonitor(self.note)
            self.process = PaperProcess(
                Settings(), feed, self.store, "host:1:a", around, look_s=0.02, **self.named
            )
            return await self.process.run("asked")


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> Decided:
    live = Decided(tmp_path_factory.mktemp("plans"))
    outcome = asyncio.run(live.trade())
    assert outcome.document is not None
    return live


def rows(live: Decided, kind: str) -> list[dict[str, Any]]:
    return [json.loads(row.payload) for row in rows_stored(live.folder, "latest", kind)]


def test_live_plans_act_with_the_approved_bytes(decided: Decided) -> None:
    stored = {row["version_hash"]: row["definition"] for row in rows(decided, "playbook_version")}
    for name in ("approved", "edited"):
        (made,) = decided.plans[name].steps[0].makes
        assert stored[made.version_hash] == json.loads(made.definition.canonical_text())
    steps = [(row["kind"], row["state"]) for row in rows(decided, "plan_step")]
    assert steps == [("set_risk_fraction", "done")] * 2


def test_live_plan_that_is_cancelled_or_lapses_does_nothing(decided: Decided) -> None:
    ends = {row["plan_id"]: (row["by"], row["state"]) for row in rows(decided, "plan_decided")}
    assert decided.plans["cancelled"].plan_id not in ends, "it never reached the run"
    assert sorted(ends.values()) == [("ann", "approved"), ("ann", "approved"), ("unattended", "declined")]


def test_live_run_in_which_plans_were_decided_is_verified(decided: Decided) -> None:
    report = replayed(decided.folder, Settings())
    assert (report.ok, report.problem) == (True, None)


def test_live_plans_stand_in_the_store_as_they_ended(decided: Decided) -> None:
    async def standing(store: Store) -> list[tuple[str, str, int]]:
        return sorted((plan.trigger, plan.state, plan.revision) for plan in await store.plans.all())

    assert asked(decided.folder, standing) == [
        ("rollback", "declined", 1),
        ("text", "cancelled", 1),
        ("text", "completed", 1),
        ("text", "completed", 2),
    ]


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
    "before its rows are stored": (PlanRows, "completed", 1, True),
    "before the answer": (OperatorRequests, "answer", 1, False),
    "behind the answer": (OperatorRequests, "answer", 1, True),
}


@pytest.mark.parametrize("place", PLACES)
def test_live_plan_acts_once_wherever_its_process_dies(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, number, after = PLACES[place]
    once = Once(getattr(owner, name), number, after=after)
    killing = once.awaited if asyncio.iscoroutinefunction(once.call) else once.plain

    def bound(*given: Any, **named: Any) -> Any:
        return killing(*given, **named)

    monkeypatch.setattr(owner, name, bound)
    live = ApprovedOnce(tmp_path)
    with pytest.raises(Killed):
        asyncio.run(live.trade())
    approved = live.plans["approved"]
    again = ApprovedOnce(tmp_path)
    outcome = asyncio.run(again.trade())
    assert outcome.document is not None
    stored = [row for row in rows(live, "playbook_version") if row["version"] > 1]
    makes = [made for step in approved.steps for made in step.makes]
    wanted = [(made.version_hash, json.loads(made.definition.canonical_text())) for made in makes]
    assert [(row["version_hash"], row["definition"]) for row in stored] == wanted
    assert [row["state"] for row in rows(live, "plan_step")] == ["done", "done"]
    report = replayed(tmp_path, Settings())
    assert (report.ok, report.problem) == (True, None)

    async def standing(store: Store) -> tuple[list[str], list[Any]]:
        asked_for = [request.state for request in await store.operator.all(RUN)]
        return [plan.state for plan in await store.plans.all()], asked_for

    assert asked(tmp_path, standing) == (["completed"], ["done"])


class Unasked(ApprovedOnce):
    """The shorter run without a decision."""

    async def between(self, number: int) -> None:
        if number:
            await self.process.traded.committing.caught_up()


def test_live_run_from_before_there_were_plans_goes_on_without_them(tmp_path: Path) -> None:
    first = Unasked(tmp_path, KillAt("committed", 30))
    with pytest.raises(Killed):
        asyncio.run(first.trade())
    with sqlite3.connect(tmp_path / "paper.db") as store:
        ((config,),) = store.execute("SELECT config FROM runs").fetchall()
        before = {name: value for name, value in json.loads(config).items() if name != "plans"}
        store.execute("UPDATE runs SET config = ?", (json.dumps(before),))
    store.close()
    again = Unasked(tmp_path)
    assert asyncio.run(again.trade()).record.run_id == RUN
    assert first.process.traded.stepper.settings.plans.enabled
    assert not again.process.traded.stepper.settings.plans.enabled
    assert replayed(tmp_path, Settings()).ok
