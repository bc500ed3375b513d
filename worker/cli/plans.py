"""`thinktwice plans`: change plans, made, shown, edited and decided.

`plans make` has a command for each kind of change of the action contract: its arguments, options and help are
the fields there.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperGroup

from schemas.errors import ConfigError, nearest
from schemas.judge import JudgeAction
from schemas.plan import CHANGE_FORMS, ChangeKind, fields_of
from worker.cli import options
from worker.cli.options import LATEST, RUN_HELP, OnceCommand, argument, operator_name, option
from worker.cli.printing import complain, print_document, print_line
from worker.cli.stores import open_for_run, open_for_writing, open_to_read, open_to_write, store_address
from worker.pages.figures import shown_time
from worker.pages.text_parts import rows_table
from worker.settings import load_settings

if TYPE_CHECKING:
    from services.store import Store
    from services.store.plan_records import StoredPlan
    from worker.review.plan_decisions import OperatorDecision

State = Literal[
    "awaiting_approval", "approved", "executing", "completed", "cancelled", "declined", "expired", "stale",
    "failed", "rolled_back",
]  # fmt: skip
UNDONE = ("failed", "stale")
COLUMNS = {
    "plan": "plan_id",
    "run": "run_id",
    "revision": "revision",
    "state": "state",
    "from": "trigger",
    "made": lambda plan: shown_time(plan["made_at"]),
    "expires": lambda plan: shown_time(plan["expires_at"]),
}
OPPOSITE = {"eligible": "ineligible"}  # the other half of a switch, where it has a word of its own
IntoOption = Annotated[Path | None, option(metavar="DIR", help="Of a run that is over: where playbooks go.")]
ReasonOption = Annotated[str | None, option(metavar="TEXT", help="Why, as the plan shows it.")]


class ChangeCommands(TyperGroup):
    """The commands of a plan; for a first word that is none the error names where words and reports go."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command and the words that are left for it.

        Raises:
            ConfigError: there is no such command.
        """
        if args[0] not in self.commands:
            raise ConfigError(
                f"plans make {args[0]!r}: there is no such change.{nearest(args[0], self.commands)} "
                "Words go to `thinktwice plans make text TEXT`, a report to `thinktwice plans make report "
                "REPORT`"
            )
        return super().resolve_command(ctx, args)


make_app = typer.Typer(
    cls=ChangeCommands,
    help="Draft a change plan, which waits for a decision and changes nothing.",
    no_args_is_help=True,
)


@make_app.command("report", cls=OnceCommand)
async def make_report(
    report: Annotated[
        str | None, argument(metavar="REPORT", help="Report id, or the start of one. [the newest]")
    ] = None,
    run: Annotated[str | None, option(metavar="RUN", help=RUN_HELP)] = None,
    into: IntoOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Plan what the judge decided on a report."""
    from worker.review.plan_making import plan_report
    from worker.review.report_finder import find_report, latest_report
    from worker.review.run_requests import plan_request

    async with open_to_write(db, run or LATEST) as (store, record):
        if report is None:
            found = await latest_report(store, record)
        else:
            found = await find_report(store, report, None if run is None else record)
        record = await store.runs.find(found.run_id)
        stored = await plan_report(store, plan_request(record, into, operator_name()), found)
    print_plan(stored, json=json)


@make_app.command("text", cls=OnceCommand)
async def make_text(
    text: Annotated[str, argument(metavar="TEXT", help="What to change, in words of yours.")],
    run: options.RunOption = LATEST,
    config: options.ModelConfig = None,
    two_phase: Annotated[
        bool, typer.Option("--two-phase", help="Note that two phases were asked for.")
    ] = False,
    into: IntoOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Plan a change in words, which a model reads."""
    from worker.review.plan_making import plan_text
    from worker.review.run_requests import plan_request

    reader = None if config is None else load_settings(config).settings
    async with open_to_write(db, run) as (store, record):
        request = plan_request(record, into, operator_name())
        stored = await plan_text(store, request, text, forced=two_phase, reader=reader)
    print_plan(stored, json=json)


async def _make_change(kind: ChangeKind, given: dict[str, Any]) -> None:
    from agents.change_reader import check_characters
    from worker.review.plan_making import plan_change
    from worker.review.run_requests import plan_request

    fields = {name: given[name] for name in fields_of(kind)}
    reason = check_characters(given["reason"] or f"{operator_name()} asks for it")
    async with open_to_write(given["db"], given["run"]) as (store, record):
        request = plan_request(record, given["into"], operator_name())
        stored = await plan_change(store, request, kind, fields, reason)
    print_plan(stored, json=given["json"])


def _take_shared(
    run: options.RunOption = LATEST,
    reason: ReasonOption = None,
    into: IntoOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """What every typed change takes besides its fields."""


def _command_of(kind: ChangeKind) -> Callable[..., Any]:
    async def make(**given: Any) -> None:
        await _make_change(kind, given)

    shared = signature(_take_shared).parameters.values()
    shown = Signature([*(_parameter_of(kind, name) for name in fields_of(kind)), *shared])
    make.__doc__ = CHANGE_FORMS[kind].effect
    make.__signature__ = shown  # type: ignore[attr-defined]  # what typer asks a function for
    return make


def _parameter_of(kind: ChangeKind, name: str) -> Parameter:
    """A field of the contract as an argument or option of a command; a life has a default of the settings."""
    field, words = JudgeAction.model_fields[name], name.replace("_", "-")
    type_ = get_args(field.annotation)[0]
    text = f"{field.description}."
    made: Any
    if name == "playbook_id":
        made = argument(metavar="PLAYBOOK", help=text)
    elif type_ is bool:
        made = option(f"--{words}/--{OPPOSITE.get(name, f'no-{words}')}", help=text)
    else:
        made = option(f"--{words}", help=text, metavar=None if get_origin(type_) is Literal else name.upper())
    is_needed = name in CHANGE_FORMS[kind].needed and name != "life_blocks"
    shown: Any = type_ if is_needed else field.annotation
    annotation: Any = Annotated[shown, made]
    default = Parameter.empty if is_needed else None
    return Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation)


for _kind in CHANGE_FORMS:
    make_app.command(_kind.replace("_", "-"), cls=OnceCommand)(_command_of(_kind))


app = typer.Typer(help="Change plans: what would change, for one decision.", no_args_is_help=True)
app.add_typer(make_app, name="make")
PlanArgument = Annotated[str, argument(metavar="PLAN", help="Plan id, or the start of one.")]
PlanRunOption = Annotated[
    str | None, option("--run", metavar="RUN", help="The run of PLAN. [the newest that has it]")
]


@app.command("list")
async def list_plans(
    run: Annotated[
        str | None, option("--run", metavar="RUN", help="Only plans of this run. [every run]")
    ] = None,
    state: Annotated[State | None, option(help="Only plans in this state.")] = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """List change plans, the newest first, with how each stands."""
    from services.store.plan_records import summary_of

    async with _open_of_run(run, db) as (store, run_id):
        plans = await store.plans.all(run_id, now=time.time_ns())
    found = [summary_of(record) for record in plans if state in (None, record.state)]
    print_document(found, json, lambda listed: [rows_table(listed, COLUMNS)])
    if not found and not json:
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


@app.command("show")
async def show(
    plan: PlanArgument,
    revision: Annotated[
        int | None, option(metavar="N", min=1, help="An earlier revision. [the newest]")
    ] = None,
    run: PlanRunOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Show a change plan: its steps, what they change, its hash, its deadline, and what became of it."""
    stored = await _find(plan, run, db)
    newest = stored.record.revision
    if revision is not None and revision > newest:
        raise ConfigError(f"plan {stored.record.plan_id} has no revision {revision}: the newest is {newest}")
    print_plan(stored, json=json, revision=revision)


@app.command("diff")
async def diff(
    plan: PlanArgument, run: PlanRunOption = None, db: options.Db = None, json: options.Json = False
) -> None:
    """Show what each edit of a change plan has changed."""
    from worker.review.plan_document import revision_changes, revision_lines

    stored = await _find(plan, run, db)
    ids = {"plan_id": stored.record.plan_id, "run_id": stored.record.run_id}
    print_document(ids | {"revisions": revision_changes(stored)}, json, revision_lines)


async def _find(plan: str, run: str | None, db: str | None) -> "StoredPlan":
    async with _open_of_run(run, db) as (store, run_id):
        return await store.plans.find(plan, run_id, now=time.time_ns())


@asynccontextmanager
async def _open(
    plan: str, by: str | None, run: str | None, db: str | None
) -> "AsyncIterator[OperatorDecision]":
    from worker.review.plan_decisions import OperatorDecision

    named = operator_name(by)
    stored = await _find(plan, run, db)
    async with await open_for_writing(store_address(db)) as store:
        yield OperatorDecision(store, await store.runs.find(stored.record.run_id), stored, named)


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
    by: options.By = None,
    run: PlanRunOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Change values of a change plan or drop steps: a new revision, which waits for a decision of its own."""
    if bool(assignments or drop) == (file is not None):
        raise ConfigError("plans edit: give --set steps.N.FIELD=VALUE and --drop N, or --file FILE")
    async with _open(plan, by, run, db) as decided:
        after = await decided.edit(assignments or [], drop or [], file)
    print_plan(after, json=json, before=decided.stored)


@app.command("approve")
async def approve(
    plan: PlanArgument,
    digits: Annotated[str, option("--hash", metavar="HASH", help="Of what was shown, 12 digits at least.")],
    by: options.By = None,
    run: PlanRunOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Approve a change plan as it was shown: a process takes it at its next bar, a folder is written now."""
    async with _open(plan, by, run, db) as decided:
        ended = await decided.approve(digits.strip().lower())
    _end(ended, json=json)


@app.command("cancel")
async def cancel(
    plan: PlanArgument,
    by: options.By = None,
    run: PlanRunOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Cancel a change plan that waits; nothing of it happens."""
    async with _open(plan, by, run, db) as decided:
        ended = await decided.cancel()
    _end(ended, json=json)


@app.command("rollback")
async def rollback(
    plan: PlanArgument,
    by: options.By = None,
    run: PlanRunOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Return every playbook that a change plan changed to its version of before."""
    async with _open(plan, by, run, db) as decided:
        ended = await decided.roll_back()
    run_id = ended.record.run_id
    next_step = (
        f"asked of run {run_id}: its process does it at the next bar close, the result shows in "
        f"`thinktwice requests {run_id}`"
    )
    _end(ended, next_step if ended.folder is None else "", json=json)


def _end(stored: "StoredPlan", next_step: str = "", *, json: bool) -> None:
    print_plan(stored, json=json)
    if next_step and not json:
        print_line(next_step)
    if stored.record.state in UNDONE:
        raise typer.Exit(1)


def print_plan(
    stored: "StoredPlan", *, json: bool, revision: int | None = None, before: "StoredPlan | None" = None
) -> None:
    """Print a plan, or its document; behind it what differs from an earlier revision."""
    from services.plans.same_change import plan_diff
    from worker.review.plan_document import diff_lines, document_of, plan_lines

    differences = [] if before is None else plan_diff(before.plan, stored.plan)
    print_document(
        document_of(stored, revision),
        json,
        lambda found: [*plan_lines(stored, found), *diff_lines(differences)],
    )
