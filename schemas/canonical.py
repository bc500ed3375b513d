"""Canonical JSON and content hashes: the one byte form in which anything is hashed or journalled.

Sorted keys, no spaces, shortest round-trip floats, -0.0 written 0.0, non-finite numbers refused (an unknown
value is null), times as integer nanoseconds.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from json.encoder import encode_basestring as _quoted
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ID_LENGTH = 16
LAST_SECOND = time(23, 59, 59)


def datetime_to_ns(moment: datetime) -> int:
    """Nanoseconds since the epoch of an aware datetime; exact, no float on the way.

    Raises:
        ValueError: the datetime is naive.
    """
    if moment.tzinfo is None:
        raise ValueError(f"naive time {moment!r}: give it a time zone")
    delta = moment - EPOCH
    return ((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds) * 1_000


def text_to_ns(text: str) -> int:
    """Nanoseconds since the epoch of an ISO time: UTC without an offset, midnight where it is a date.

    The last second of a day stands for the end of it, at which its last bar closes.

    Raises:
        ValueError: it is no such time.
    """
    moment = datetime.fromisoformat(text.strip())
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
    if moment.time() >= LAST_SECOND and moment.date() < date.max:
        moment += timedelta(days=1)
        moment = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    return datetime_to_ns(moment)


def ns_to_datetime(ns: int) -> datetime:
    """Aware UTC datetime of integer nanoseconds, cut to microseconds."""
    seconds, rest = divmod(ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, tz=UTC).replace(microsecond=rest // 1_000)


_TEXT = frozenset({str})


def _number(value: float) -> str:
    if value == 0.0:
        return "0.0"
    text = float.__repr__(value)
    if text[-1] in "nf":
        raise ValueError(f"non-finite number {value!r} has no canonical form: write null for unknown")
    return text


def _object(value: Mapping[Any, Any]) -> str:
    if not _TEXT.issuperset(map(type, value)):
        value = {str(key): item for key, item in value.items()}
    parts = [f"{_quoted(key)}:{WRITERS[type(item := value[key])](item)}" for key in sorted(value)]
    return "{" + ",".join(parts) + "}"


def _array(value: Iterable[Any]) -> str:
    return "[" + ",".join([WRITERS[type(item)](item) for item in value]) + "]"


def _set(value: Iterable[Any]) -> str:
    return _array(sorted(item.value if isinstance(item, Enum) else item for item in value))


class _Writers(dict[type, Callable[[Any], str]]):
    """How a value of each type is written; a type is asked for its kind once, at its first value."""

    def __missing__(self, kind: type) -> Callable[[Any], str]:
        if hasattr(kind, "canonical_text"):
            self[kind] = kind.canonical_text
        else:
            self[kind] = next((writer for wide, writer in _WIDE if issubclass(kind, wide)), _describe_refused)
        return self[kind]


def _describe_refused(value: Any) -> str:
    raise TypeError(f"no canonical form for {type(value).__name__} {value!r}")


WRITERS = _Writers(
    {
        type(None): lambda _: "null",
        bool: lambda value: "true" if value else "false",
        int: int.__repr__,
        float: _number,
        str: _quoted,
        dict: _object,
        list: _array,
        tuple: _array,
    }
)
# Of types that are not exactly one of those, the first that fits.
_WIDE: tuple[tuple[type | tuple[type, ...], Callable[[Any], str]], ...] = (
    (Enum, lambda value: canonical_json(value.value)),
    (str, lambda value: _quoted(str(value))),
    (int, int.__repr__),
    (float, _number),
    (datetime, lambda value: int.__repr__(datetime_to_ns(value))),
    (Mapping, _object),
    ((list, tuple), _array),
    ((set, frozenset), _set),
)


def canonical_json(value: Any) -> str:
    """Canonical JSON text of plain data (mappings, sequences, numbers, strings, enums, aware datetimes).

    A contract among them writes its own hashed part.

    Raises:
        ValueError: a number is not finite, or a time is naive.
        TypeError: a value has no canonical form.
    """
    return WRITERS[type(value)](value)


def content_hash(value: Any) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def content_id(value: Any) -> str:
    """First 16 hex digits of `content_hash`: the readable id of an order, fill, episode or artifact."""
    return content_hash(value)[:ID_LENGTH]
