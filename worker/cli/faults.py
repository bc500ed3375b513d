"""`thinktwice faults`: known faults planted into right plans, and what each check stops."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli import options
from worker.cli.options import argument, option, run_settings, takes
from worker.cli.printing import complain, print_document
from worker.cli.stores import open_for_run
from worker.pages.figures import percent
from worker.pages.study_text import faults_parts
from worker.runs.interrupts import run_async
from worker.runs.progress import step

if TYPE_CHECKING:
    from schemas.settings import Settings
    from worker.studies.faults.right_plans import Source

Document = dict[str, Any]


@takes("llm", "cassette", after="least")
def faults(
    context: typer.Context,
    run: Annotated[
        str | None, argument(metavar="RUN", help="Run id, prefix or 'latest'. [a run over embedded bars]")
    ] = None,
    config: options.ModelConfig = None,
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
    db: options.Db = None,
    json: options.Json = False,
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
    print_document(document, json, faults_parts)
    if document["unmeasured"] is not None:
        complain(document["unmeasured"])
        raise typer.Exit(1)
    if document["below_least"]:
        complain(f"less than {percent(least)} stopped: {', '.join(document['below_least'])}")
        raise typer.Exit(1)


async def _plans(
    run: str | None, given: "Settings", db: str | None, strategist: bool
) -> "tuple[Sequence[Source], Settings]":
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
