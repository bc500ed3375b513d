"""Any interleaving of edits, decisions, expiry, crashes and restarts, held against a plain model.

No step runs twice, none runs without the approval of its bytes, none after expiry; on every dialect. The
process is a small one: it claims, journals and carries out as the one that trades does, and may die between.
"""

import asyncio
import os
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from hypothesis.strategies import booleans, integers, sampled_from

from schemas.errors import ConfigError
from schemas.plan import ChangePlan
from services.store import Store, open_store
from services.store.change_plans import Operator
from services.store.operator_requests import OperatorRequest
from tests.services.store.plans import EXPIRES, MADE, PlanJournal, change_plan, edited
from tests.services.store.stores import new_run

BAR = (EXPIRES - MADE) // 4
PEOPLE = sampled_from(["ann", "bob"])
# Where a process dies behind the row of a command: an edit hands its revision in before the approval comes.
JOURNALLED = {"approve": "journalled", "submit": "handed in", "cancel": "cancelled"}
# PLAN_INTERLEAVINGS=10000 with `pytest --timeout 0` runs as many as are wanted of a thorough look.
SHORT = {"sqlite": 250, "postgresql": 40}
STEPS = 20


@dataclass
class PlainModel:
    """What has to hold, without a store: hashes by revision, and how the plan stands."""

    state: str = "awaiting_approval"
    hashes: list[str] = field(default_factory=list)
    approved: set[str] = field(default_factory=set)
    ran: list[str] = field(default_factory=list)


class Process:
    """A process that trades: what it holds is lost when it dies, what it journalled is not."""

    def __init__(self, store, run_id: str, journal: PlanJournal) -> None:
        self.store, self.run_id, self.journal = store, run_id, journal
        self.held: list[OperatorRequest] = []

    async def look(self) -> None:
        """Fetch what waits, some time before it is taken."""
        self.held = await self.store.operator.waiting(self.run_id)

    async def take(self, now: int, ran: list[str], *, dies: str | None) -> None:
        """Take what was fetched: claim, carry out, journal, answer; or die before one of these."""
        held, self.held = self.held, []
        journalled = {row.payload for row in await self.journal.rows() if row.kind == "operator_command"}
        for request in held:
            payload, number = request.payload, request.number
            mark = f'{{"number":{number}}}'
            if mark not in journalled and payload["decision"] == "approve":
                claimed = await self.store.plans.claim(self.run_id, payload["plan_id"], payload["hash"])
                if not claimed:
                    await self.store.operator.answer(self.run_id, number, "refused", {})
                    continue
                if dies == "claimed":
                    return
                self.journal.row("operator_command", now, number=number)
                plan = ChangePlan.model_validate(payload["plan"])
                assert plan.content_hash == payload["hash"]
                await self._carry_out(plan, now, ran)
                await self._stored()
            elif mark not in journalled:
                self.journal.row("operator_command", now, number=number)
                await self._stored()
            if dies == JOURNALLED[payload["decision"]]:
                return
            await self.store.operator.answer(self.run_id, number, "done", {})

    async def _carry_out(self, plan: ChangePlan, now: int, ran: list[str]) -> None:
        self.journal.drafted(plan)
        if now >= plan.expires_at:
            self.journal.decided(plan, "expire", "expired", now, by="expiry")
            return
        self.journal.decided(plan, at=now)
        for step in plan.steps:
            ran.append(plan.content_hash)
            self.journal.step(plan, step.number, at=now)
        self.journal.ended(plan, at=now)

    async def expire(self, plan: ChangePlan, now: int) -> None:
        """At a bar after its deadline a plan that nobody decided is declined."""
        self.journal.decided(plan, "expire", "expired", now, by="expiry")
        await self._stored()

    async def _stored(self) -> None:
        await self.store.journal.append(self.run_id, await self.journal.rows())


class Interleavings(RuleBasedStateMachine):
    """One plan of one run, two people, one process."""

    address = ""
    loop: asyncio.AbstractEventLoop
    store: Store

    def __init__(self) -> None:
        super().__init__()
        self.now = MADE
        self.held_hash: str | None = None

    def run(self, work):
        return self.loop.run_until_complete(work)

    @initialize()
    def made(self):
        self.run_id = self.run(self.store.runs.create(new_run(mode="paper"))).run_id
        self.plan = change_plan()
        self.model = PlainModel(hashes=[self.plan.content_hash])
        self.process = Process(self.store, self.run_id, PlanJournal())
        self.run(self.store.plans.put(self.run_id, self.plan))

    def who(self, by):
        return Operator(by, self.now, self.now)

    def decided(self, work, allowed):
        """Whether it went through, which the model has to know before."""
        try:
            self.run(work)
        except ConfigError:
            assert not allowed
            return False
        assert allowed
        return True

    def open(self, *states):
        return self.model.state in states and self.now < self.plan.expires_at

    @rule(by=PEOPLE, value=integers(1, 9), seen=integers(0, 3))
    def edit(self, by, value, seen):
        known = self.model.hashes[max(0, len(self.model.hashes) - 1 - seen)]
        newest = known == self.model.hashes[-1]
        revised = edited(self.plan, value / 10_000)
        work = self.store.plans.revise(self.run_id, revised, known, self.who(by))
        if self.decided(work, newest and self.open("awaiting_approval", "approved")):
            self.plan, self.model.state = revised, "awaiting_approval"
            self.model.hashes.append(revised.content_hash)

    @rule(by=PEOPLE, seen=integers(0, 3))
    def approve(self, by, seen):
        digest = self.model.hashes[max(0, len(self.model.hashes) - 1 - seen)]
        newest = digest == self.model.hashes[-1]
        work = self.store.plans.approve(self.run_id, self.plan.plan_id, digest[:12], self.who(by))
        if self.decided(work, newest and self.open("awaiting_approval")):
            self.model.state = "approved"
            self.model.approved.add(digest)

    @rule(by=PEOPLE)
    def cancel(self, by):
        work = self.store.plans.cancel(self.run_id, self.plan.plan_id, self.who(by))
        if self.decided(work, self.open("awaiting_approval", "approved")):
            self.model.state = "cancelled"

    @rule(first=booleans())
    def two_at_once(self, first):
        """One approves what the other cancels; whoever is first, the plan is one thing in the end."""
        allowed = self.open("awaiting_approval")
        digest, both = self.model.hashes[-1], self.store.plans
        work = [
            both.approve(self.run_id, self.plan.plan_id, digest, self.who("ann")),
            both.cancel(self.run_id, self.plan.plan_id, self.who("bob")),
        ]
        order = work if first else work[::-1]

        async def gathered():
            return await asyncio.gather(*order, return_exceptions=True)

        shown = self.run(gathered())
        won = {trial.state for trial in shown if not isinstance(trial, Exception)}
        assert all(isinstance(item, ConfigError) for item in shown if isinstance(item, Exception))
        if allowed:
            assert won in ({"approved"}, {"cancelled"}, {"approved", "cancelled"})
            self.model.state = "cancelled" if "cancelled" in won else "approved"
            self.model.approved |= {digest} if "approved" in won else set()
        elif self.open("approved"):
            assert won == {"cancelled"}
            self.model.state = "cancelled"
        else:
            assert not won

    @rule()
    def process_looks(self):
        self.run(self.process.look())
        self.held_hash = self.model.hashes[-1]
        if self.model.state not in ("approved", "executing"):
            self.held_hash = None

    @rule(dies=sampled_from([None, None, "claimed", *JOURNALLED.values()]))
    def process_takes_what_it_holds(self, dies):
        before, held, self.held_hash = len(self.model.ran), self.held_hash, None
        first = [request.payload["decision"] for request in self.process.held][:1]
        if first != ["approve"] and dies in [JOURNALLED[decision] for decision in first]:
            held = None  # it dies before it comes to the approval
        self.run(self.process.take(self.now, self.model.ran, dies=dies))
        if self.model.state in ("approved", "executing") and held == self.model.hashes[-1]:
            late = self.now >= self.plan.expires_at
            ended = "expired" if late else "completed"
            self.model.state = "executing" if dies == "claimed" else ended
        assert len(self.model.ran) - before <= 1

    @rule()
    def process_is_restarted(self):
        self.process = Process(self.store, self.run_id, self.process.journal)
        self.held_hash = None

    @rule()
    def bar_passes(self):
        self.now += BAR
        if self.now >= self.plan.expires_at and self.model.state == "awaiting_approval":
            self.run(self.process.expire(self.plan, self.now))
            self.model.state = "expired"

    @precondition(lambda self: hasattr(self, "model"))
    @rule()
    def looked_at(self):
        found = self.run(self.store.plans.find(self.plan.plan_id, self.run_id))
        assert found.record.state == self.model.state
        assert [plan.content_hash for plan in found.revisions] == self.model.hashes

    def teardown(self):
        if not hasattr(self, "model"):
            return
        self.looked_at()
        assert len(self.model.ran) <= 1, "a step ran twice"
        assert set(self.model.ran) <= self.model.approved, "a step ran without the approval of its bytes"
        done = [row for row in self.run(self.process.journal.rows()) if row.kind == "plan_step"]
        assert len(done) == len(self.model.ran)
        assert all(row.known_at < EXPIRES for row in done), "a step ran after expiry"


@pytest.mark.parametrize("dialect", ["sqlite", "postgresql"])
def test_no_interleaving_runs_a_step_twice_unapproved_or_late(dialect, request, tmp_path):
    file = f"sqlite:///{tmp_path}/store.db"
    where = file if dialect == "sqlite" else request.getfixturevalue("postgres_url")

    class OnDialect(Interleavings):
        address, loop = where, asyncio.new_event_loop()

    OnDialect.store = OnDialect.loop.run_until_complete(open_store(where, create=True))
    count = int(os.environ.get("PLAN_INTERLEAVINGS", SHORT[dialect]))
    thorough = settings(
        max_examples=count, stateful_step_count=STEPS, suppress_health_check=list(HealthCheck)
    )
    try:
        run_state_machine_as_test(OnDialect, settings=thorough)
    finally:
        OnDialect.loop.run_until_complete(OnDialect.store.close())
        OnDialect.loop.close()
