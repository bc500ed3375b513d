"""The door of `thinktwice check`: any bytes become a request that the checks can weigh, or one clear error.

Whatever is refused here is a mistake of the file, not of the plan: plans that are merely wrong pass, and the
checks find what is wrong with them.

JSON from outside, read strictly: a value of ordinary size, or the place and the reason why not.

Stricter than the standard: no key twice, no NaN or Infinity, no number that a float or a 64-bit integer does
not hold, no half of a character, no nesting beyond what any contract has.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from schemas.contract_keys import Steps, choices, known_keys
from schemas.errors import ConfigError, DataError, RuleError, nearest
from schemas.reflection import PolicyLevelReflectionRequest
from schemas.snapshot import PolicySnapshot
from services.model_calls.quoting import visible
from worker.studies.given_text import given_bytes, source_of

NEXT = (
    f"See `thinktwice schema {PolicyLevelReflectionRequest.__name__}`, or start from `thinktwice check "
    "--example`."
)
LONGEST_KNOWN = 12
MAX_BYTES = 5_000_000
MAX_DEPTH = 32
LARGEST = 2**63 - 1
LONGEST_INTEGER = 20
SHOWN = 60
LONGEST_REASON = 400
T = TypeVar("T", int, float)


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
        raise _explain(error, source) from error
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
            raise refuse(source, steps, str(error)) from error
        lowest, highest = resolve(name).bounds
        if value is not None and not lowest <= value <= highest:
            raise refuse(source, steps, f"{value!r} lies outside {lowest:g} to {highest:g}")


def _check_playbook(request: PolicyLevelReflectionRequest, source: str) -> None:
    """A run takes playbooks from files only, and their loader has seen that every rule of theirs works."""
    from services.playbooks.loader import check_definition

    try:
        check_definition(request.playbook, Path(source))
    except ConfigError as error:
        steps = ("playbook", *str(error.context["field"]).split("."))
        raise refuse(source, steps, str(error.context["reason"])) from error
    _check_version(request, source)


def _check_version(request: PolicyLevelReflectionRequest, source: str) -> None:
    """A run asks about a version that its snapshot knows; only a late answer meets a newer one."""
    playbook, snapshot = request.playbook, request.snapshot
    if playbook.known_at is not None and playbook.known_at > snapshot.known_at:
        reason = f"{playbook.known_at} lies after snapshot.known_at {snapshot.known_at}"
        raise refuse(source, ("playbook", "known_at"), reason)
    known = [seen.playbook_version for seen in snapshot.expectations if seen.playbook_id == playbook.id]
    if known and playbook.version not in known:
        reason = f"{playbook.version} is unknown to snapshot.expectations, which hold version {known[0]}"
        raise refuse(source, ("playbook", "version"), reason)


def _explain(error: ValidationError, source: str) -> DataError:
    problems = error.errors(include_url=False)
    # A misspelt key is missing under its right name too; the misspelling is what to say.
    first = next((problem for problem in problems if problem["type"] == "extra_forbidden"), problems[0])
    steps = tuple(step for step in first["loc"] if step != "[key]")
    more = f" ({len(problems) - 1} more)" if len(problems) > 1 else ""
    return refuse(source, steps, _reason(first, steps) + more)


def _reason(problem: ErrorDetails, steps: Steps) -> str:
    if problem["type"] == "extra_forbidden":
        known = sorted(known_keys(PolicyLevelReflectionRequest, steps[:-1]))
        some = ", ".join(known[:LONGEST_KNOWN]) + (", ..." if len(known) > LONGEST_KNOWN else "")
        return "unknown key." + (nearest(str(steps[-1]), known) or f" Known here: {some}.")
    if problem["type"] == "missing":
        return "missing"
    given = problem["input"]
    message = problem["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if problem["type"] == "value_error" or isinstance(given, dict | list):
        return message
    guess = nearest(given, choices(problem)) if isinstance(given, str) else ""
    as_written = show_value(json.dumps(given, ensure_ascii=False, default=str))
    return f"{as_written}: {message}.{guess}".removesuffix(".")


class _Refused:
    """What stands in place of a value that JSON must not hold here."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


def read_json(data: bytes, source: str) -> Any:
    """The value that `data` holds.

    Args:
        data: UTF-8 text, with or without a byte order mark.
        source: what to call it in messages.

    Raises:
        DataError: it is not such a text; the context has `place` and `reason`.
    """
    if len(data) > MAX_BYTES:
        raise refuse(source, (), f"more than {MAX_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refuse(source, (), f"not UTF-8 at byte {error.start}: save it as UTF-8") from error
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=lambda name: _Refused(f"{name} is no number of JSON: write null for unknown"),
            parse_int=_integer,
            parse_float=lambda text: _check_bounds(float(text), text),
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise refuse(source, (), f"not JSON: {error.msg} at {where}") from error
    except RecursionError as error:
        raise refuse(source, (), f"nested deeper than {MAX_DEPTH} levels") from error
    for steps, reason in _faults(value):
        raise refuse(source, steps, reason)
    return value


def refuse(source: str, steps: Steps, reason: str) -> DataError:
    """The error for the value at `steps`."""
    where = place(steps)
    reason = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 3]}..."
    return DataError(f"{source}: {where + ': ' if where else ''}{reason}", place=where, reason=reason)


def place(steps: Steps) -> str:
    """`snapshot.expectations[0].hit_rate`; empty for the whole document."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{show_value(step)}" for step in steps).lstrip(
        "."
    )


def show_value(text: str) -> str:
    """A key or value as it may be printed: short, on one line, without what a terminal would obey."""
    plain = visible(text)
    return plain if len(plain) <= SHOWN else f"{plain[: SHOWN - 3]}..."


def _faults(value: Any, steps: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Places and reasons of what must not be there, in the order of the document."""
    if isinstance(value, _Refused):
        yield steps, value.reason
    elif isinstance(value, str) and not _is_whole(value):
        yield steps, "half of a surrogate pair: it is no character"
    elif isinstance(value, dict | list) and len(steps) >= MAX_DEPTH:
        yield steps[:1], f"nested deeper than {MAX_DEPTH} levels"
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _faults(key, (*steps, key))
            yield from _faults(item, (*steps, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _faults(item, (*steps, index))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        found[key] = _Refused("the key stands twice: keep one") if key in found else value
    return found


def _integer(text: str) -> int | _Refused:
    return _check_bounds(int(text) if len(text) <= LONGEST_INTEGER else LARGEST + 1, text)


def _check_bounds(value: T, text: str) -> T | _Refused:
    if abs(value) <= LARGEST:
        return value
    return _Refused(f"{show_value(text)} is beyond {LARGEST}, the largest number")


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)
