"""The door of `thinktwice check`: any bytes become a request that the checks can weigh, or one clear error.

Whatever is refused here is a mistake of the file, not of the plan: plans that are merely wrong pass, and the
checks find what is wrong with them.
"""

import json
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from schemas.errors import ConfigError, DataError, RuleError, nearest
from schemas.reflection import PolicyLevelReflectionRequest
from schemas.snapshot import PolicySnapshot
from worker.studies.given_text import given_bytes, source_of
from worker.studies.plan_check.strict_json import MAX_BYTES, Steps, read_json, refused, shown

NEXT = (
    f"See `thinktwice schema {PolicyLevelReflectionRequest.__name__}`, or start from `thinktwice check "
    "--example`."
)
LONGEST_KNOWN = 12


def read_request(file: str) -> PolicyLevelReflectionRequest:
    """The request in a file, `-` being standard input.

    Raises:
        DataError: it cannot be read, or holds no request.
    """
    hint = ", or make one with `thinktwice check --example > plan.json`"
    data = given_bytes(file, MAX_BYTES, wanted="a request", hint=hint)
    return parse_request(data, source_of(file))


def parse_request(data: bytes, source: str) -> PolicyLevelReflectionRequest:
    """The request that `data` holds; `source` is for messages only.

    Raises:
        DataError: naming place, value and the next step.
    """
    try:
        return _request(read_json(data, source), source)
    except DataError as error:
        raise DataError(f"{str(error).rstrip('.')}. {NEXT}", **error.context) from error


def _request(document: Any, source: str) -> PolicyLevelReflectionRequest:
    try:
        # Text again, because only from JSON does strict mode read lists as tuples and words as enums.
        request = PolicyLevelReflectionRequest.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        raise _explained(error, source) from error
    _check_playbook(request, source)
    _check_features(request.snapshot, source)
    return request


def _check_features(snapshot: PolicySnapshot, source: str) -> None:
    """A run takes features from their recurrences, which know no other names and keep within their bounds."""
    from trading_core.features.registry import check_timeframes, resolve

    for name, value in snapshot.features.items():
        steps = ("snapshot", "features", name)
        try:
            check_timeframes((name,), snapshot.timeframe)
        except RuleError as error:
            raise refused(source, steps, str(error)) from error
        lowest, highest = resolve(name).bounds
        if value is not None and not lowest <= value <= highest:
            raise refused(source, steps, f"{value!r} lies outside {lowest:g} to {highest:g}")


def _check_playbook(request: PolicyLevelReflectionRequest, source: str) -> None:
    """A run takes playbooks from files only, and their loader has seen that every rule of theirs works."""
    from services.playbooks.loader import check_definition

    try:
        check_definition(request.playbook, Path(source))
    except ConfigError as error:
        steps = ("playbook", *str(error.context["field"]).split("."))
        raise refused(source, steps, str(error.context["reason"])) from error
    _check_version(request, source)


def _check_version(request: PolicyLevelReflectionRequest, source: str) -> None:
    """A run asks about a version that its snapshot knows; only a late answer meets a newer one."""
    playbook, snapshot = request.playbook, request.snapshot
    if playbook.known_at is not None and playbook.known_at > snapshot.known_at:
        reason = f"{playbook.known_at} lies after snapshot.known_at {snapshot.known_at}"
        raise refused(source, ("playbook", "known_at"), reason)
    known = [seen.playbook_version for seen in snapshot.expectations if seen.playbook_id == playbook.id]
    if known and playbook.version not in known:
        reason = f"{playbook.version} is unknown to snapshot.expectations, which hold version {known[0]}"
        raise refused(source, ("playbook", "version"), reason)


def _explained(error: ValidationError, source: str) -> DataError:
    problems = error.errors(include_url=False)
    # A misspelt key is missing under its right name too; the misspelling is what to say.
    first = next((one for one in problems if one["type"] == "extra_forbidden"), problems[0])
    steps = tuple(step for step in first["loc"] if step != "[key]")
    more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
    return refused(source, steps, _reason(first, steps) + more)


def _reason(problem: ErrorDetails, steps: Steps) -> str:
    if problem["type"] == "extra_forbidden":
        known = _known_names(steps[:-1])
        some = ", ".join(known[:LONGEST_KNOWN]) + (", ..." if len(known) > LONGEST_KNOWN else "")
        return "unknown key." + (nearest(str(steps[-1]), known) or f" Known here: {some}.")
    if problem["type"] == "missing":
        return "missing"
    given = problem["input"]
    message = problem["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if problem["type"] == "value_error" or isinstance(given, dict | list):
        return message
    expected = str(problem.get("ctx", {}).get("expected", ""))
    options = expected.replace("'", "").replace(" or ", ", ").split(", ")
    guess = nearest(given, options) if isinstance(given, str) else ""
    return f"{_value(given)}: {message}.{guess}".removesuffix(".")


def _value(given: Any) -> str:
    """As JSON writes it, which is how it stands in the file."""
    return shown(json.dumps(given, ensure_ascii=False, default=str))


def _known_names(steps: Steps) -> tuple[str, ...]:
    """Keys that the request allows below a path."""
    kind: Any = PolicyLevelReflectionRequest
    for step in steps:
        kind = _inside(kind, step)
    if _is_model(kind):
        return tuple(sorted(kind.model_fields))
    return tuple(get_args(get_args(kind)[0])) if get_origin(kind) is Mapping else ()


def _inside(kind: Any, step: int | str) -> Any:
    if _is_model(kind):
        field = kind.model_fields.get(str(step))
        found = None if field is None else field.annotation
    elif isinstance(step, int):
        found = (get_args(kind) or (None,))[0]
    else:
        found = (get_args(kind) or (None,))[-1]
    return get_args(found)[0] if get_origin(found) in (Union, types.UnionType) else found


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)
