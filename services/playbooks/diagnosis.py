"""What is wrong with a playbook file, as one field and one reason a trader can act on.

Turns pydantic's errors into words: unknown and missing keys get the nearest name that the contract has at
that place.
"""

from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.contract_keys import Steps, choices, known_keys
from schemas.errors import nearest
from schemas.playbook import PlaybookDefinition


def explain(document: dict[str, Any], error: ValidationError) -> tuple[str, str]:
    """Dotted field and reason of the first problem of `document`; the reason says how many more there are."""
    problems = error.errors(include_url=False)
    first = problems[0]
    steps = tuple(step for step in first["loc"] if step != "[key]")
    more = f" ({len(problems) - 1} more problem(s) in this file)" if len(problems) > 1 else ""
    return ".".join(map(str, steps)) or "the file", _reason(document, steps, first) + more


def _reason(document: dict[str, Any], steps: Steps, problem: ErrorDetails) -> str:
    if problem["type"] == "extra_forbidden":
        known = _known(steps[:-1])
        return "unknown key." + (nearest(str(steps[-1]), known) or f" Known here: {', '.join(known)}.")
    if problem["type"] == "missing":
        return "missing: every playbook needs it." + _misspelt(document, steps)
    reason, given = problem["msg"].removeprefix("Value error, "), problem["input"]
    if problem["type"] == "value_error" or isinstance(given, dict):
        return reason
    return f"{reason}, not {_short(given)}.{nearest(str(given), choices(problem))}"


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."


def _misspelt(document: dict[str, Any], steps: Steps) -> str:
    """A hint when a key beside the missing one looks like it."""
    inside: Any = document
    for step in steps[:-1]:
        inside = inside[step]
    known = _known(steps[:-1])
    return nearest(str(steps[-1]), [key for key in inside if key not in known]).replace(
        "Did you mean", "Is it"
    )


def _known(steps: Steps) -> tuple[str, ...]:
    """Keys of a playbook file; what its loader sets is none."""
    return tuple(name for name in known_keys(PlaybookDefinition, steps) if name != "known_at")
