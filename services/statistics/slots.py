"""The slots of a calendar at which the slow loop is due."""

from typing import Literal

DAY_NS = 86_400_000_000_000
INTERVAL_NS: dict[str, int] = {"daily": DAY_NS, "weekly": 7 * DAY_NS}
FIRST_MONDAY_NS = 4 * DAY_NS

Interval = Literal["daily", "weekly"]


def next_slot(after_ns: int, interval: Interval) -> int:
    """First slot strictly after a time: 00:00 UTC each day, or each Monday."""
    length = INTERVAL_NS[interval]
    origin = FIRST_MONDAY_NS if interval == "weekly" else 0
    return origin + ((after_ns - origin) // length + 1) * length


def last_slot(at_ns: int, interval: Interval) -> int:
    """Last slot at or before a time."""
    return next_slot(at_ns, interval) - INTERVAL_NS[interval]


def is_slot(at_ns: int, interval: Interval) -> bool:
    """Whether a time is exactly a slot."""
    return next_slot(at_ns - 1, interval) == at_ns
