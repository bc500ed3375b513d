"""Printing the summary of a run, with notes beside it."""

from collections.abc import Sequence

import typer

from worker.cli.console import complain, print_json, stdout_console
from worker.runs.model_silence import is_silent, model_silence
from worker.runs.run_text import Document, render
from worker.session import MODEL_LOST


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
    early = document["ended_early"]
    if early is not None:
        complain(early["message"])
        if early["reason"] == MODEL_LOST:
            raise typer.Exit(1)
    if document["errors"]:
        run_id = document["run_id"]
        complain(
            f"{document['errors']} errors in run {run_id}: see `thinktwice journal {run_id} --kind error`"
        )
        raise typer.Exit(1)
    demand_an_answer(document)


def demand_an_answer(document: Document) -> None:
    """Say when rules answered for a model; leave with exit 1 when it never answered at all."""
    if (silence := model_silence(document)) is not None:
        complain(f"{silence}; the rules decided {'alone' if is_silent(document) else 'the others'}")
        if is_silent(document):
            raise typer.Exit(1)
