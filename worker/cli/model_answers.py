"""Whether the models of a run answered at all: a run that asked in vain says so, and fails."""

from typing import Any

import typer

from worker.cli.console import complain
from worker.pages.figures import counts

Document = dict[str, Any]
NOTHING_TO_CHOOSE = "nothing_to_choose"  # no model was asked


def model_silence(document: Document) -> str | None:
    """That no model gave an answer of use although questions were asked, and why; None where one did."""
    model = document["model"]
    questions, replies = model["calls"] + sum(model["cut_overs"].values()), model["outcomes"].get("reply", 0)
    if not questions:
        return None
    if replies > model["unusable"]:
        return _strategist_silence(document["strategist"])
    if replies:
        return f"the model gave a usable answer to 0 of {questions} questions: {replies} could not be read"
    return f"the model answered 0 of {questions} questions: {model.get('failed_because') or 'none was asked'}"


def _strategist_silence(strategist: Document) -> str | None:
    """That a strategist never came to an answer of its own, although other questions were answered."""
    failed = {why: count for why, count in strategist["fallbacks"].items() if why != NOTHING_TO_CHOOSE}
    if not failed or set(strategist["answers"]) - {"rules"}:
        return None
    return f"the strategist gave a usable answer to 0 of {sum(failed.values())} questions: {counts(failed)}"


def demand_an_answer(document: Document) -> None:
    """Leave with exit 1 when a model was asked and never answered: what decided is not what was asked for."""
    if (silence := model_silence(document)) is not None:
        complain(f"{silence}; the rules decided alone")
        raise typer.Exit(1)
