"""What a run says first where rules answered for its models, from its JSON document."""

from typing import Any

from worker.pages.figures import counts

Document = dict[str, Any]
MOST_BY_RULES = 0.1  # of the questions to a model, before its absence is the first thing that is said
UNNEEDED = ("nothing_to_choose", "position_open")  # the rules answer, and no model was needed


def model_silence(document: Document) -> str | None:
    """That rules answered a tenth of the questions to a model, or more, since when, and why."""
    model = document["model"]
    questions = model["calls"] + sum(model["cut_overs"].values())
    if not questions:
        return None
    answered = model["outcomes"].get("reply", 0) - model["unusable"]
    unused = _strategist_silence(document["strategist"])
    if answered > (1.0 - MOST_BY_RULES) * questions or (
        answered and _is_strategist_silent(document["strategist"])
    ):
        return unused
    since = f", the last on {model['last_reply'][:10]}" if answered else ""
    limits = counts(model["cut_overs"]) if model["cut_overs"] else "none was asked"
    why = model["last_failure"] or limits
    return f"the model answered {answered:,} of {questions:,} questions{since}: {why}"


def is_silent(document: Document) -> bool:
    """Whether a model was asked and none of its answers was of use, so that something else decided."""
    model = document["model"]
    if not model["calls"] and not model["cut_overs"]:
        return False
    answered = model["outcomes"].get("reply", 0) > model["unusable"]
    return not answered or _is_strategist_silent(document["strategist"])


def _strategist_answers(strategist: Document) -> tuple[int, dict[str, int]]:
    """Answers that the strategist's model gave, and those that rules gave in its place, by why."""
    given = sum(count for who, count in strategist["answers"].items() if who != "rules")
    return given, {why: count for why, count in strategist["fallbacks"].items() if why not in UNNEEDED}


def _is_strategist_silent(strategist: Document) -> bool:
    """Whether a strategist never came to an answer of its own, although it was asked."""
    given, failed = _strategist_answers(strategist)
    return bool(failed) and not given


def _strategist_silence(strategist: Document) -> str | None:
    """That rules gave a tenth of a strategist's answers, or more: replies came, and could not be used."""
    given, failed = _strategist_answers(strategist)
    questions = given + sum(failed.values())
    if not failed or given > (1.0 - MOST_BY_RULES) * questions:
        return None
    return f"the strategist gave a usable answer to {given:,} of {questions:,} questions: {counts(failed)}"
