"""What is wrong with a playbook file, as one field and one reason a trader can act on.

Turns pydantic's errors into words: unknown and missing keys get the nearest name that the contract has at
that place.
"""

import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from schemas.errors import nearest
from schemas.playbook import PlaybookDefinition

Steps = tuple[int | str, ...]
MAPPINGS = (dict, Mapping)


def explain(document: dict[str, Any], error: ValidationError) -> tuple[str, str]:
    """Dotted field and reason of the first problem of `document`; the reason says how many more there are."""
    problems = error.errors(include_url=False)
    first = problems[0]
    steps = tuple(step for step in first["loc"] if step != "[key]")
    more = f" ({len(problems) - 1} more problem(s) in this file)" if len(problems) > 1 else ""
    return ".".join(map(str, steps)) or "the file", _reason(document, steps, first) + more


def _reason(document: dict[str, Any], steps: Steps, problem: ErrorDetails) -> str:
    if problem["type"] == "extra_forbidden":
        known = known_names(steps[:-1])
        return "unknown key." + (nearest(str(steps[-1]), known) or f" Known here: {', '.join(known)}.")
    if problem["type"] == "missing":
        return "missing: every playbook needs it." + _misspelt(document, steps)
    reason, given = problem["msg"].removeprefix("Value error, "), problem["input"]
    if problem["type"] == "value_error" or isinstance(given, dict):
        return reason
    expected = str(problem.get("ctx", {}).get("expected", ""))
    options = expected.replace("'", "").replace(" or ", ", ").split(", ")
    return f"{reason}, not {_short(given)}.{nearest(str(given), options)}"


def _short(given: Any) -> str:
    text = repr(given)
    return text if len(text) <= 80 else text[:77] + "..."


def _misspelt(document: dict[str, Any], steps: Steps) -> str:
    """A hint when a key beside the missing one looks like it."""
    inside: Any = document
    for step in steps[:-1]:
        inside = inside[step]
    known = known_names(steps[:-1])
    return nearest(str(steps[-1]), [key for key in inside if key not in known]).replace(
        "Did you mean", "Is it"
    )


def known_names(steps: Steps) -> tuple[str, ...]:
    """Keys that the contract allows below a path; () where anything goes."""
    kind: Any = PlaybookDefinition
    for step in steps:
        kind = _inside(kind, step)
    if _is_model(kind):
        return tuple(name for name in kind.model_fields if name != "known_at")
    return tuple(get_args(get_args(kind)[0])) if get_origin(kind) in MAPPINGS else ()


def _inside(kind: Any, step: int | str) -> Any:
    if _is_model(kind):
        field = kind.model_fields.get(str(step))
        found = field.annotation if field else None
    else:
        found = get_args(kind)[1] if get_origin(kind) in MAPPINGS else None
    return get_args(found)[0] if get_origin(found) in (Union, types.UnionType) else found


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
