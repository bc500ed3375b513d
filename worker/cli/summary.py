"""Printing the summary of a run, with notes beside it."""

from collections.abc import Sequence

import typer

from worker.cli.console import complain, print_json, stdout_console
from worker.runs.run_text import Document, model_silence, render


def show_run(
    document: Document,
    failures: Sequence[str] = (),
    notes: Sequence[str] = (),
    *,
    json: bool,
    full: bool = False,
) -> None:
    """Print the document of a run, and leave with exit 1 where it has errors or no model answered."""
    if json:
        print_json(document)
    else:
        render(document, stdout_console(), failures, notes, full=full)
    if document["ended_early"] is not None:
        complain(document["ended_early"]["message"])
    if document["errors"]:
        run_id = document["run_id"]
        complain(
            f"{document['errors']} errors in run {run_id}: see `thinktwice journal {run_id} --kind error`"
        )
        raise typer.Exit(1)
    demand_an_answer(document)


def demand_an_answer(document: Document) -> None:
    """Leave with exit 1 when a model was asked and never answered: what decided is not what was asked for."""
    if (silence := model_silence(document)) is not None:
        complain(f"{silence}; the rules decided alone")
        raise typer.Exit(1)
