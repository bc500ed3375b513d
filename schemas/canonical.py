"""Canonical JSON and content hashes: the one byte form in which anything is hashed or journalled.

Sorted keys, no spaces, shortest round-trip floats, -0.0 written 0.0, non-finite numbers refused (an unknown
value is null), times as integer nanoseconds.
"""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import Enum, StrEnum
from typing import Any

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ID_LENGTH = 16


def datetime_to_ns(moment: datetime) -> int:
    """Nanoseconds since the epoch of an aware datetime; exact, no float on the way.

    Raises:
        ValueError: the datetime is naive.
    """
    if moment.tzinfo is None:
        raise ValueError(f"naive time {moment!r}: give it a time zone")
    delta = moment - EPOCH
    return ((delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds) * 1_000


def ns_to_datetime(ns: int) -> datetime:
    """Aware UTC datetime of integer nanoseconds, cut to microseconds."""
    seconds, rest = divmod(ns, 1_000_000_000)
    return datetime.fromtimestamp(seconds, tz=UTC).replace(microsecond=rest // 1_000)


PLAIN = frozenset({type(None), bool, int, str})
# One encoder for all: `json.dumps` makes a new one for every call with settings of its own.
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_TEXT = frozenset({str})
_WRITTEN_AS_IT_IS = PLAIN | {float}
_NEGATIVE_ZERO = re.compile(r"-0\.0(?![0-9])")


def _encodable(value: Any) -> bool:
    """Whether the encoder alone writes the value canonically, but for -0.0 and numbers that it refuses."""
    kind = type(value)
    if kind is dict:
        if not _TEXT.issuperset(map(type, value)):
            return False
        value = value.values()
    elif kind is not list and kind is not tuple:
        return kind in _WRITTEN_AS_IT_IS or isinstance(value, StrEnum)
    for item in value:
        if type(item) not in _WRITTEN_AS_IT_IS and not _encodable(item):
            break
    else:
        return True
    return False


def _quickly(value: Any) -> str | None:
    """Canonical JSON of a value that needs no rewriting; None of any other."""
    if not _encodable(value):
        return None
    try:
        text = _ENCODER.encode(value)
    except ValueError:  # a number that is not finite: the other way names it
        return None
    return None if "-0.0" in text and _NEGATIVE_ZERO.search(text) else text


def _plain(value: Any) -> Any:
    """The value in plain types; the exact types that need nothing are answered first, because most are."""
    kind = type(value)
    if kind in PLAIN:
        return value
    if kind is dict:
        return {key if type(key) is str else str(key): _plain(item) for key, item in value.items()}
    if kind is tuple or kind is list:
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return _plain(value.value)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"non-finite number {value!r} has no canonical form: write null for unknown")
        return 0.0 if value == 0.0 else float(value)
    if isinstance(value, datetime):
        return datetime_to_ns(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(_plain(item) for item in value)
    raise TypeError(f"no canonical form for {type(value).__name__} {value!r}")


def canonical_json(value: Any) -> str:
    """Canonical JSON text of plain data (mappings, sequences, numbers, strings, enums, aware datetimes).

    Raises:
        ValueError: a number is not finite, or a time is naive.
        TypeError: a value has no canonical form.
    """
    text = _quickly(value)
    return _ENCODER.encode(_plain(value)) if text is None else text


def content_hash(value: Any) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def content_id(value: Any) -> str:
    """First 16 hex digits of `content_hash`: the readable id of an order, fill, episode or artifact."""
    return content_hash(value)[:ID_LENGTH]
