"""JSON from outside, read strictly: a value of ordinary size, or the place and the reason why not.

Stricter than the standard: no key twice, no NaN or Infinity, no number that a float or a 64-bit integer does
not hold, no half of a character, no nesting beyond what any contract has. Called where a person hands in a
document.
"""

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from schemas.contract_keys import Steps
from schemas.errors import DataError
from services.model_calls.quoting import visible

MAX_BYTES = 5_000_000
MAX_DEPTH = 32
LARGEST = 2**63 - 1
LONGEST_INTEGER = 20
SHOWN = 60
LONGEST_REASON = 400
T = TypeVar("T", int, float)


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
        raise refused(source, (), f"more than {MAX_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused(source, (), f"not UTF-8 at byte {error.start}: save it as UTF-8") from error
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=lambda name: _Refused(f"{name} is no number of JSON: write null for unknown"),
            parse_int=_integer,
            parse_float=lambda text: _bounded(float(text), text),
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise refused(source, (), f"not JSON: {error.msg} at {where}") from error
    except RecursionError as error:
        raise refused(source, (), f"nested deeper than {MAX_DEPTH} levels") from error
    for steps, reason in _faults(value):
        raise refused(source, steps, reason)
    return value


def refused(source: str, steps: Steps, reason: str) -> DataError:
    """The error for the value at `steps`."""
    where = place(steps)
    reason = reason if len(reason) <= LONGEST_REASON else f"{reason[: LONGEST_REASON - 3]}..."
    return DataError(f"{source}: {where + ': ' if where else ''}{reason}", place=where, reason=reason)


def place(steps: Steps) -> str:
    """`snapshot.expectations[0].hit_rate`; empty for the whole document."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{shown(step)}" for step in steps).lstrip(".")


def shown(text: str) -> str:
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
    return _bounded(int(text) if len(text) <= LONGEST_INTEGER else LARGEST + 1, text)


def _bounded(value: T, text: str) -> T | _Refused:
    if abs(value) <= LARGEST:
        return value
    return _Refused(f"{shown(text)} is beyond {LARGEST}, the largest number")


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)
