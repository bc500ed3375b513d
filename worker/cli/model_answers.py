"""Whether the models of a run answered at all: a run that asked in vain says so, and fails."""

from typing import Any

import typer

from worker.cli.console import complain

Document = dict[str, Any]


def model_silence(document: Document) -> str | None:
    """That no model answered although questions were asked, and why; None where one did."""
    model = document["model"]
    questions = model["calls"] + sum(model["cut_overs"].values())
    if not questions or model["outcomes"].get("reply"):
        return None
    return f"the model answered 0 of {questions} questions: {model.get('failed_because') or 'none was asked'}"


def demand_an_answer(document: Document) -> None:
    """Leave with exit 1 when a model was asked and never answered: what decided is not what was asked for."""
    if (silence := model_silence(document)) is not None:
        complain(f"{silence}; the rules decided alone")
        raise typer.Exit(1)
