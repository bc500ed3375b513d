"""`thinktwice plans make`: a change plan of a report, of words, or of a typed change of the action contract.

A command a kind of change is made from the contract: its arguments, options and help are the fields there.
"""

from collections.abc import Callable
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperGroup

from schemas.errors import ConfigError, nearest
from schemas.judge import JudgeAction
from schemas.plan import CHANGE_FORMS, ChangeKind, fields_of
from worker.cli.console import print_document, print_lines
from worker.cli.options import (
    LATEST,
    RUN_HELP,
    DbOption,
    JsonOption,
    OnceCommand,
    argument,
    operator_name,
    option,
)

if TYPE_CHECKING:
    from services.store.plan_records import StoredPlan

OPPOSITE = {"eligible": "ineligible"}  # the other half of a switch, where it has a word of its own
IntoOption = Annotated[Path | None, option(metavar="DIR", help="Of a run that is over: where playbooks go.")]
RunOption = Annotated[str, option("--run", metavar="RUN", help=RUN_HELP)]
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


app = typer.Typer(
    cls=ChangeCommands,
    help="Draft a change plan, which waits for a decision and changes nothing.",
    no_args_is_help=True,
)


@app.command("report", cls=OnceCommand)
async def make_report(
    report: Annotated[
        str | None, argument(metavar="REPORT", help="Report id, or the start of one. [the newest]")
    ] = None,
    run: Annotated[str | None, option(metavar="RUN", help=RUN_HELP)] = None,
    into: IntoOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Plan what the judge decided on a report."""
    from worker.cli.open_runs import open_to_write, plan_request
    from worker.review.plan_making import plan_report
    from worker.review.report_finder import find_report, latest_report

    async with open_to_write(db, run or LATEST) as (store, record):
        if report is None:
            found = await latest_report(store, record)
        else:
            found = await find_report(store, report, None if run is None else record)
        record = await store.runs.find(found.run_id)
        made = await plan_report(store, plan_request(record, into), found)
        stored = await store.plans.find(made.plan_id, made.run_id)
    print_plan(stored, json=json)


@app.command("text", cls=OnceCommand)
async def make_text(
    text: Annotated[str, argument(metavar="TEXT", help="What to change, in words of yours.")],
    run: RunOption = LATEST,
    config: Annotated[
        Path | None,
        option("--config", metavar="FILE", help="TOML file with a model. [the run's own settings]"),
    ] = None,
    two_phase: Annotated[
        bool, typer.Option("--two-phase", help="Note that two phases were asked for.")
    ] = False,
    into: IntoOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Plan a change in words, which a model reads."""
    from worker.cli.open_runs import open_to_write, plan_request
    from worker.review.plan_making import plan_text
    from worker.settings import load_settings

    reader = None if config is None else load_settings(config).settings
    async with open_to_write(db, run) as (store, record):
        request = plan_request(record, into)
        made = await plan_text(store, request, text, forced=two_phase, reader=reader)
        stored = await store.plans.find(made.plan_id, made.run_id)
    print_plan(stored, json=json)


async def _make_change(kind: ChangeKind, given: dict[str, Any]) -> None:
    """Plan a typed change; `given` is what its command was given."""
    from agents.change_reader import check_characters
    from worker.cli.open_runs import open_to_write, plan_request
    from worker.review.plan_making import plan_change

    fields = {name: given[name] for name in fields_of(kind)}
    reason = check_characters(given["reason"] or f"{operator_name(None)} asks for it")
    async with open_to_write(given["db"], given["run"]) as (store, record):
        made = await plan_change(store, plan_request(record, given["into"]), kind, fields, reason)
        stored = await store.plans.find(made.plan_id, made.run_id)
    print_plan(stored, json=given["json"])


def _take_shared(
    run: RunOption = LATEST,
    reason: ReasonOption = None,
    into: IntoOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """What every typed change takes besides its fields."""


def _command_of(kind: ChangeKind) -> Callable[..., Any]:
    """The command of a kind of change."""

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
    app.command(_kind.replace("_", "-"), cls=OnceCommand)(_command_of(_kind))


def print_plan(stored: "StoredPlan", *, json: bool, revision: int | None = None) -> None:
    """Print a plan, or its document."""
    from worker.review.plan_document import document_of, plan_lines

    document = document_of(stored, revision)
    print_document(document, json, lambda found: print_lines(plan_lines(stored, found)))
