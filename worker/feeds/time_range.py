"""The ends of a `--from/--to` range: UTC, inclusive, a date alone standing for its whole day.

Pure: the operator's words in, nanoseconds out.
"""

import re
from datetime import UTC, date, datetime, timedelta

from schemas.errors import DataError

Moment = str | date | datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_NS = 86_400_000_000_000
_LIMIT_NS = 2**63 - 1


def range_ns(start: Moment | None, end: Moment | None) -> tuple[int | None, int | None]:
    """Inclusive ends in UTC nanoseconds of two ISO 8601 dates or datetimes; None leaves an end open.

    Raises:
        DataError: an unreadable time, or a start after the end.
    """
    first = None if start is None else _check_bounds(_instant(start, "--from")[0])
    last = None
    if end is not None:
        instant, is_date = _instant(end, "--to")
        last = _check_bounds(instant + _DAY_NS - 1 if is_date else instant)
    if first is not None and last is not None and first > last:
        raise DataError(f"--from {start!s} lies after --to {end!s}: swap them")
    return first, last


def _instant(moment: Moment, option: str) -> tuple[int, bool]:
    text = moment.isoformat() if isinstance(moment, date) else moment.strip()
    try:
        parsed = datetime.fromisoformat(text)
        aware = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
        microseconds = (aware - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{option} {text!r} is no time: give a UTC date like 2012-01-31 or a time like 2012-01-31T16:00"
        ) from error
    return microseconds * 1_000, re.fullmatch(r"\d{4}-\d{2}-\d{2}", text) is not None


def _check_bounds(nanoseconds: int) -> int:
    return max(-_LIMIT_NS, min(nanoseconds, _LIMIT_NS))
