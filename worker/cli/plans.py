"""`thinktwice plans`: change plans, made, shown, edited and decided."""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from schemas.errors import ConfigError
from services.model_calls.quoting import visible
from worker.cli.console import complain, print_json, print_line, print_lines, print_page
from worker.cli.options import (
    ByOption,
    DbOption,
    JsonOption,
    argument,
    open_for_run,
    open_for_writing,
    open_to_read,
    operator_name,
    option,
    store_address,
)
from worker.cli.plans_make import app as make_app
from worker.cli.plans_make import print_plan

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.change_plans import Operator
    from services.store.plan_records import PlanRecord, StoredPlan

State = Literal[
    "awaiting_approval", "approved", "executing", "completed", "cancelled", "declined", "expired", "stale",
    "failed", "rolled_back",
]  # fmt: skip
UNDONE = ("failed", "stale")

app = typer.Typer(help="Change plans: what would change, for one decision.", no_args_is_help=True)
PlanArgument = Annotated[str, argument(metavar="PLAN", help="Plan id, or the start of one.")]
RunOption = Annotated[
    str | None, option("--run", metavar="RUN", help="The run of PLAN. [the newest that has it]")
]


app.add_typer(make_app, name="make")


@app.command("list")
async def list_plans(
    run: Annotated[
        str | None, option("--run", metavar="RUN", help="Only plans of this run. [every run]")
    ] = None,
    state: Annotated[State | None, option(help="Only plans in this state.")] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """List change plans, the newest first, with how each stands."""
    async with _open_of_run(run, db) as (store, run_id):
        plans = await store.plans.all(run_id, now=time.time_ns())
    found = [record for record in plans if state in (None, record.state)]
    if json:
        from worker.review.plan_document import summary_of

        print_json([summary_of(record) for record in found])
    elif found:
        _render(found)
    else:
        complain("no such plan is stored: `thinktwice plans make --help` has what makes one")


@asynccontextmanager
async def _open_of_run(run: str | None, db: str | None) -> "AsyncIterator[tuple[Store, str | None]]":
    """The store, and the run of which plans are asked for; None: of every run."""
    if run is not None:
        async with open_for_run(db, run) as (store, record):
            yield store, record.run_id
        return
    async with await open_to_read(store_address(db)) as store:
        yield store, None


def _render(found: "Sequence[PlanRecord]") -> None:
    """A line for each plan; thousands of them are no table that has to be measured."""
    from worker.pages.figures import shown_time

    rows = [("plan", "run", "revision", "state", "from", "made", "expires")]
    rows += [
        (
            *(record.plan_id, record.run_id, str(record.revision), record.state, record.trigger),
            *(shown_time(record.made_at), shown_time(record.expires_at)),
        )
        for record in found
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    print_page("".join(f"{visible(line)}\n" for line in lines))


@app.command("show")
async def show(
    plan: PlanArgument,
    revision: Annotated[
        int | None, option(metavar="N", min=1, help="An earlier revision. [the newest]")
    ] = None,
    run: RunOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Show a change plan: its steps, what they change, its hash, its deadline, and what became of it."""
    stored = await _find(plan, run, db)
    if revision is not None and revision > stored.record.revision:
        newest = stored.record.revision
        raise ConfigError(f"plan {stored.record.plan_id} has no revision {revision}: the newest is {newest}")
    print_plan(stored, json=json, revision=revision)


@app.command("diff")
async def diff(
    plan: PlanArgument, run: RunOption = None, db: DbOption = None, json: JsonOption = False
) -> None:
    """Show what each edit of a change plan has changed."""
    from worker.review.plan_document import diff_lines, revision_changes

    stored = await _find(plan, run, db)
    found = revision_changes(stored)
    if json:
        print_json({"plan_id": stored.record.plan_id, "run_id": stored.record.run_id, "revisions": found})
        return
    if not found:
        print_line(f"plan {stored.record.plan_id} was not edited")
    for item in found:
        print_line(f"revision {item['revision']}, hash {item['hash']}")
        print_lines(diff_lines(item["changes"]))


async def _find(plan: str, run: str | None, db: str | None) -> "StoredPlan":
    async with _open_of_run(run, db) as (store, run_id):
        return await store.plans.find(plan, run_id, now=time.time_ns())


@app.command("edit")
async def edit(
    plan: PlanArgument,
    assignments: Annotated[
        list[str] | None, option("--set", metavar="steps.N.FIELD=VALUE", help="A value; repeatable.")
    ] = None,
    drop: Annotated[list[int] | None, option(metavar="N", help="Leave a step out; repeatable.")] = None,
    file: Annotated[
        Path | None, option(metavar="FILE", help="What `show --json` printed, with other values.")
    ] = None,
    by: ByOption = None,
    run: RunOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Change values of a change plan or drop steps: a new revision, which waits for a decision of its own."""
    if bool(assignments or drop) == (file is not None):
        raise ConfigError("plans edit: give --set steps.N.FIELD=VALUE and --drop N, or --file FILE")
    before, after = await _edit(plan, assignments or [], drop or [], file, operator_name(by), run, db)
    print_plan(after, json=json)
    if not json:
        from services.plans.same_change import plan_diff
        from worker.review.plan_document import diff_lines

        print_lines(diff_lines(plan_diff(before, after.plan)))


async def _edit(
    plan: str,
    assignments: list[str],
    drop: list[int],
    file: Path | None,
    by: str,
    run: str | None,
    db: str | None,
) -> Any:
    from schemas.settings import JudgeSettings
    from schemas.settings.plans import PlansSettings
    from services.plans.editing import revise
    from worker.review.plan_document import document_of, edits_of_file, typed_edit

    edits = [typed_edit(text) for text in assignments]
    async with _open(plan, run, db) as (store, record, stored):
        if not PlansSettings.model_validate(record.config.get("plans") or {}).allow_edit:
            raise ConfigError(f"plans of run {record.run_id} are not edited: its plans.allow_edit is off")
        if file is not None:
            edits, drop = edits_of_file(file, stored, document_of(stored))
        judge = JudgeSettings.model_validate(record.config["judge"])
        revised = revise(stored.plan, edits=edits, drop=drop, judge=judge)
        who = await _operator(store, record, stored, by)
        await store.plans.revise(record.run_id, revised, stored.record.hash, who)
        return stored.plan, await store.plans.find(stored.record.plan_id, record.run_id)


@app.command("approve")
async def approve(
    plan: PlanArgument,
    digits: Annotated[str, option("--hash", metavar="HASH", help="Of what was shown, 12 digits at least.")],
    by: ByOption = None,
    run: RunOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Approve a change plan as it was shown: a process takes it at its next bar, a folder is written now."""
    named = operator_name(by)
    async with _open(plan, run, db) as (store, record, stored):
        if stored.folder is not None:
            from worker.review.playbook_files import carry_out, demand_place, versions_at

            demand_place(stored.plan)
            versions = await versions_at(store, record.run_id, stored.plan.basis.at)
            on_newest = stored.plan.report_id is None
            present = await versions_at(store, record.run_id, None) if on_newest else ()
        who = await _operator(store, record, stored, named)
        plan_id = stored.record.plan_id
        approved = await store.plans.approve(record.run_id, plan_id, digits.strip().lower(), who)
        if approved.state == "executing":
            await store.plans.carry_out(
                record.run_id,
                plan_id,
                lambda plan: carry_out(plan, versions, record.run_id, present=present),
            )
        ended = await store.plans.find(plan_id, record.run_id)
    _end(ended, json=json)


@app.command("cancel")
async def cancel(
    plan: PlanArgument,
    by: ByOption = None,
    run: RunOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Cancel a change plan that waits; nothing of it happens."""
    named = operator_name(by)
    async with _open(plan, run, db) as (store, record, stored):
        who = await _operator(store, record, stored, named)
        await store.plans.cancel(record.run_id, stored.record.plan_id, who)
        ended = await store.plans.find(stored.record.plan_id, record.run_id)
    _end(ended, json=json)


@app.command("rollback")
async def rollback(
    plan: PlanArgument,
    by: ByOption = None,
    run: RunOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Return every playbook that a change plan changed to its version of before."""
    named = operator_name(by)
    async with _open(plan, run, db) as (store, record, stored):
        who = await _operator(store, record, stored, named)
        run_id, plan_id = record.run_id, stored.record.plan_id
        if stored.folder is None:
            await store.plans.ask_rollback(run_id, plan_id, who)
        else:
            from worker.review.playbook_files import demand_place, roll_back, versions_at

            demand_place(stored.plan)
            versions = await versions_at(store, run_id, stored.plan.basis.at)
            await store.plans.carry_out(
                run_id, plan_id, lambda plan: roll_back(plan, versions, run_id),
                state="completed", who=who,
            )  # fmt: skip
        ended = await store.plans.find(plan_id, run_id)
    _end(ended, json=json)
    if ended.folder is None and not json:
        print_line(
            f"asked of run {run_id}: its process does it at the next bar close, the result shows in "
            f"`thinktwice requests {run_id}`"
        )


@asynccontextmanager
async def _open(
    plan: str, run: str | None, db: str | None
) -> "AsyncIterator[tuple[Store, RunRecord, StoredPlan]]":
    """The store with every table, the plan in it and its run."""
    stored = await _find(plan, run, db)
    async with await open_for_writing(store_address(db)) as store:
        yield store, await store.runs.find(stored.record.run_id), stored


async def _operator(store: "Store", record: "RunRecord", stored: "StoredPlan", by: str) -> "Operator":
    """Who decides now; a plan of a process expires by its bars."""
    from services.store.change_plans import Operator
    from worker.cli.open_runs import will_go_on
    from worker.review.plan_facts import last_close

    now = time.time_ns()
    if stored.folder is not None or not (record.status == "running" or will_go_on(record)):
        await store.plans.expire(record.run_id, stored.record.plan_id, now)
        return Operator(by, now, now)
    return Operator(by, now, await last_close(store, record))


def _end(stored: "StoredPlan", *, json: bool) -> None:
    """What came of a decision; exit 1 where an approved plan did not come about."""
    print_plan(stored, json=json)
    if stored.record.state in UNDONE:
        raise typer.Exit(1)
