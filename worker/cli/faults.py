"""`thinktwice faults`: known faults planted into right plans, and what each check stops."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli.options import (
    DbOption,
    JsonOption,
    argument,
    open_for_run,
    option,
    run_settings,
    takes,
)
from worker.cli.printing import Part, complain, print_document, rows_table
from worker.pages.figures import DASH, counts, percent
from worker.runs.interrupts import run_async
from worker.runs.progress import step

if TYPE_CHECKING:
    from schemas.settings import Settings
    from worker.studies.faults.right_plans import Source

Document = dict[str, Any]
SHOWN_CODES = 2  # of a kind: the most frequent
COLUMNS = {
    "kind": "name",
    "planted": "planted",
    "stopped": lambda kind: kind["stopped"] if kind["planted"] else None,
    "no effect": lambda kind: kind["no_effect"] if kind["planted"] else None,
    "passed": lambda kind: kind["passed"] if kind["planted"] else None,
    "95 %": lambda kind: _range(kind["interval"]),
    "by code": lambda kind: _codes(kind),
}


@takes("llm", "cassette", after="least")
def faults(
    context: typer.Context,
    run: Annotated[
        str | None, argument(metavar="RUN", help="Run id, prefix or 'latest'. [a run over embedded bars]")
    ] = None,
    config: Annotated[
        Path | None, option("--config", metavar="FILE", help="TOML file: a model, and what a new run needs.")
    ] = None,
    bank: Annotated[
        Path | None, option(metavar="FILE", help="Faults of your own, beside the forty. [none]")
    ] = None,
    plans: Annotated[int, typer.Option(min=1, max=10_000, help="Plans to plant each into.")] = 40,
    reader: Annotated[
        bool, typer.Option("--reader", help="Ask the second reader, too, where rules let a plan pass.")
    ] = False,
    strategist: Annotated[
        bool,
        typer.Option("--strategist", help="Plant into plans that a model proposes, not those of the run."),
    ] = False,
    least: Annotated[
        float | None, option(min=0.0, max=1.0, help="Exit 1 if less of a kind is stopped. [nothing is asked]")
    ] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Plant known faults into plans that pass, and show which check stops each.

    Plans are those of a run, or of a run by rules over embedded bars. --least asks nothing of kinds that a
    second reader alone is expected to stop, and of kinds that were planted nowhere. Where nothing was
    planted, or the reader gave no verdict, it exits 1 and says so. Nothing is stored.
    """
    from worker.studies.faults.bank import read_bank
    from worker.studies.faults.study import Asking, study_faults

    request = {"reflection": "full" if reader else None, "strategist": "model" if strategist else None}
    context.params |= request
    given, kinds = run_settings(context).settings, read_bank(bank)
    with step("planting faults"):
        found, settings = run_async(_plans(run, given, db, strategist))
        asking = Asking(reader, strategist, plans)
        document = run_async(study_faults(found, kinds, settings, os.environ, asking, least))
    print_document(document, json, _describe)
    if document["unmeasured"] is not None:
        complain(document["unmeasured"])
        raise typer.Exit(1)
    if document["below_least"]:
        complain(f"less than {percent(least)} stopped: {', '.join(document['below_least'])}")
        raise typer.Exit(1)


async def _plans(
    run: str | None, given: "Settings", db: str | None, strategist: bool
) -> "tuple[Sequence[Source], Settings]":
    """The plans, and the settings to ask with: the run's, with the models that are given now."""
    from services.journal.index import JournalIndex
    from worker.runs.readiness import ready_engine
    from worker.runs.stored_settings import stored_settings
    from worker.studies.faults.right_plans import embedded_index, plans_of_run

    if run is None:
        ready_engine()
        return plans_of_run(await embedded_index(given), given, strategist=strategist), given
    async with open_for_run(db, run, read_only=True) as (store, record):
        settings = stored_settings(record).model_copy(update={"llm": given.llm, "runtime": given.runtime})
        index = await JournalIndex.read(store.journal.rows(record.run_id))
    return plans_of_run(index, settings, strategist=strategist), settings


def _describe(document: Document) -> Iterator[Part]:
    right, request = document["right"], document["asked"]
    yield rows_table(document["kinds"], COLUMNS)
    yield ""
    by = f" by {counts(right['codes'])}" if right["codes"] else ""
    proposed = f", proposed at {right['plans']} of {request} questions" if document["strategist"] else ""
    refused = f"{right['refused']} of {right['plans']} refused{by} (95 %: {_range(right['interval'])})"
    yield f"right plans, as they are: {refused}{proposed}"
    if (model := document["model"]) is not None:
        yield f"models: {counts(model['outcomes'])}   {model['usd']:.6f} USD"
    for kind in document["kinds"]:
        yield from (f"passed, {kind['name']}: {text}" for text in kind["passed_texts"][:1])


def _codes(kind: Document) -> str:
    if not kind["planted"]:
        return f"does not apply: {', '.join(kind['why_not']) or 'no right plan'}"
    codes = counts(dict(list(kind["codes"].items())[:SHOWN_CODES]))
    return f"{codes} BROKEN {counts(kind['why_broken'])}" if kind["broken"] else codes


def _range(interval: tuple[float, float] | None) -> str:
    return DASH if interval is None else " to ".join(percent(bound) for bound in interval)
