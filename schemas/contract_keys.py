"""The keys that a contract has at a place, and the words that a problem of pydantic would take instead."""

import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

Steps = tuple[int | str, ...]
_MAPPINGS = (dict, Mapping)


def known_keys(contract: type[BaseModel], steps: Steps) -> tuple[str, ...]:
    """Keys that a contract allows below a path; () where anything goes."""
    kind: Any = contract
    for step in steps:
        kind = _inside(kind, step)
    if _is_model(kind):
        return tuple(kind.model_fields)
    return tuple(get_args(get_args(kind)[0])) if get_origin(kind) in _MAPPINGS else ()


def choices(problem: ErrorDetails) -> list[str]:
    """What a closed set of words would have taken, for the nearest of them."""
    expected = str(problem.get("ctx", {}).get("expected", ""))
    return expected.replace("'", "").replace(" or ", ", ").split(", ") if expected else []


def _inside(kind: Any, step: int | str) -> Any:
    if _is_model(kind):
        field = kind.model_fields.get(str(step))
        found = None if field is None else field.annotation
    else:
        arguments = get_args(kind) or (None,)
        found = arguments[0] if isinstance(step, int) else arguments[-1]
    return get_args(found)[0] if get_origin(found) in (Union, types.UnionType) else found


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
