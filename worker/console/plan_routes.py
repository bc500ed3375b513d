"""Change plans in the API of the console: listed, shown, edited, decided once, rolled back."""

import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import Field, StringConstraints
from starlette.exceptions import HTTPException

from schemas.plan import PlanState
from services.store.plan_records import StoredPlan, summary_of
from worker.console.api import ERRORS, ApiDesk, Operator, RunName, Strict
from worker.console.desk import Desk
from worker.console.people import Person
from worker.review.plan_decisions import OperatorDecision
from worker.review.plan_document import document_of, revision_changes

PlanId = Annotated[str, Path(pattern=r"^[0-9a-f]{4,64}$")]
RunOf = Annotated[RunName | None, Query(description="the run of the plan; none: the newest that has it")]
plan_routes = APIRouter(prefix="/api", responses=ERRORS)


class Approval(Strict):
    """The hash that the page showed."""

    hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12,64}$")]


class Edit(Strict):
    """Values as `steps.N.FIELD=VALUE` and steps to leave out, of the revision with this hash."""

    hash: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{12,64}$")]
    set: tuple[Annotated[str, StringConstraints(max_length=200)], ...] = Field(default=(), max_length=50)
    drop: tuple[Annotated[int, Field(ge=1, le=999)], ...] = Field(default=(), max_length=50)


@plan_routes.get("/plans")
async def plans(
    desk: ApiDesk, state: PlanState | None = None, run: Annotated[RunName | None, Query()] = None
) -> list[dict[str, Any]]:
    """Change plans, newest first, with how each stands."""
    run_id = None if run is None else (await desk.run(run)).run_id
    found = await desk.store.plans.all(run_id, now=time.time_ns())
    return [summary_of(record) for record in found if state in (None, record.state)]


@plan_routes.get("/plans/{plan}")
async def plan(plan: PlanId, desk: ApiDesk, run: RunOf = None) -> dict[str, Any]:
    """A change plan: steps, hash, what became of it, each edit, and by which clock, ns, it expires."""
    stored = await desk.plan(plan, run, time.time_ns())
    return document_of(stored) | {"revisions": revision_changes(stored), "clock": stored.record.clock}


@plan_routes.post("/plans/{plan}/approve")
async def approve(
    plan: PlanId, given: Approval, desk: ApiDesk, person: Operator, run: RunOf = None
) -> dict[str, Any]:
    """Approve the revision with this hash; another one is 409."""
    stored = await desk.plan(plan, run, time.time_ns())
    decision = await _decision(desk, person, stored)
    done = await desk.decide(person.name, "approve", _describe_plan(stored), decision.approve(given.hash))
    return document_of(done)


@plan_routes.post("/plans/{plan}/cancel")
async def cancel(plan: PlanId, desk: ApiDesk, person: Operator, run: RunOf = None) -> dict[str, Any]:
    """Cancel a plan that waits; nothing of it happens."""
    stored = await desk.plan(plan, run, time.time_ns())
    decision = await _decision(desk, person, stored)
    return document_of(await desk.decide(person.name, "cancel", _describe_plan(stored), decision.cancel()))


@plan_routes.post("/plans/{plan}/rollback")
async def rollback(plan: PlanId, desk: ApiDesk, person: Operator, run: RunOf = None) -> dict[str, Any]:
    """Return every playbook that a plan changed to its version of before."""
    stored = await desk.plan(plan, run, time.time_ns())
    decision = await _decision(desk, person, stored)
    return document_of(
        await desk.decide(person.name, "roll back", _describe_plan(stored), decision.roll_back())
    )


@plan_routes.post("/plans/{plan}/edit")
async def edit(
    plan: PlanId, given: Edit, desk: ApiDesk, person: Operator, run: RunOf = None
) -> dict[str, Any]:
    """Change values or drop steps of the revision with this hash: a new one, which waits anew."""
    stored = await desk.plan(plan, run, time.time_ns())
    if not given.set and not given.drop:
        raise HTTPException(422, "give values (`set`) or steps to leave out (`drop`)")
    if not stored.record.hash.startswith(given.hash):
        raise HTTPException(409, f"it was edited meanwhile: revision {stored.record.revision} stands now")
    decision = await _decision(desk, person, stored)
    edited = decision.edit(list(given.set), list(given.drop), None)
    return document_of(await desk.decide(person.name, "edit", _describe_plan(stored), edited))


async def _decision(desk: Desk, person: Person, stored: StoredPlan) -> OperatorDecision:
    """A plan with who decides on it."""
    record = await desk.store.runs.find(stored.record.run_id)
    return OperatorDecision(desk.store, record, stored, person.name)


def _describe_plan(stored: Any) -> str:
    return f"plan {stored.record.plan_id} of run {stored.record.run_id}"
