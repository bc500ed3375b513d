"""How labels of bars are spaced: which overlap, stand off the others' phase, or lie in one longer bar.

Pure: UTC ns in, positions out. A day or a session that is short because its zone moved its clock is as long
as the others by that clock. Bars carry no zone, so any zone that moved its clock then by so much explains it.
"""

from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import numpy.typing as npt

from schemas.timeframes import DAY_S, STEPS, TIMEFRAME_SECONDS

IntArray = npt.NDArray[np.int64]
NS = 1_000_000_000
QUARTER_NS = 900 * NS  # sessions begin, and zones lie, at whole quarters of an hour
WIDEST_MOVE_NS = 7_200 * NS  # of a clock in summer
DAY_NS = 86_400 * NS
LEAST_MOVED_NS = 14 * DAY_NS  # no clock that moves is back sooner
MONDAY_NS = 3 * DAY_NS  # 1970-01-01 was a Thursday: three days after a Monday
RARE = 50  # labels among which one of another phase is no habit of the market
FEW = 8  # the same of labels that stand together, and of pauses among which one begins with a short bar

HIGHER_SECONDS: dict[str, int] = {
    name: seconds
    for name, seconds in list(TIMEFRAME_SECONDS.items())[1:]
    if DAY_S % seconds == 0 or name in STEPS
}
"""Timeframes of higher bars in seconds, ascending: what divides a day, and steps of the calendar; `1w` is
the ISO week."""


def show_label(label: int) -> str:
    """A label as ISO 8601 in UTC, to the second."""
    return str(np.datetime64(label, "ns"))[:19] + "Z"


def overlaps(before: int, label: int, bar_ns: int) -> bool:
    """Whether the bar of a label begins before the one in front of it is over."""
    missing = bar_ns - (label - before)
    return missing > 0 and not _clock_moved(before, label, (missing,))


def find_overlap(times: IntArray, bar_ns: int, label: str, *, whole: bool = False) -> int | None:
    """The position of the first bar that overlaps the one in front of it; None where there is none.

    Args:
        times: int64 (n,), the ascending labels of one symbol.
        bar_ns: length of a bar.
        label: `open`, or `close`: then the last bar before a pause may be a short one, as sessions end.
        whole: no bar follows the last, so that only sessions before it say whether a short one ends its own.
    """
    steps = np.diff(times)
    short = steps < bar_ns
    if label == "close" and short.any():
        last = not whole or ends_session(times[:-1], int(times[-2]), int(times[-1]), bar_ns)
        short &= np.append(steps[1:] <= bar_ns, not last)
    positions = (np.flatnonzero(short) + 1).tolist()
    return next((k for k in positions if overlaps(int(times[k - 1]), int(times[k]), bar_ns)), None)


def ends_session(times: IntArray, before: int, label: int, bar_ns: int) -> bool:
    """Whether sessions end with so short a bar, labelled by its close, at that time of day.

    Args:
        times: int64 (n,), the ascending labels in front of it.
        before: label of the bar in front of it.
        label: of the short bar.
        bar_ns: length of a bar.
    """
    steps = np.diff(times)
    same = times[1:-1][(steps[:-1] == label - before) & (steps[1:] > bar_ns)]
    if same.size == 0 or same.size * FEW < (steps > bar_ns).sum():
        return False
    ahead = (int(same[-1]) - label) % DAY_NS
    return not ahead or _clock_moved(int(same[-1]), label, (ahead, ahead - DAY_NS))


def off_phase(times: IntArray, bar_ns: int) -> IntArray:
    """Positions of labels off the phase of their neighbours, ascending.

    Such are labels that lie elsewhere within the quarter of an hour (within a shorter bar) than most, and
    few that break the spacing of the nearest common ones on both sides, as no session does whose hours recur.

    Args:
        times: int64 (n,), the ascending labels of one symbol.
        bar_ns: length of a bar.
    """
    fine, phase = times % min(bar_ns, QUARTER_NS), times % bar_ns
    if (phase == phase[0]).all():
        return np.empty(0, dtype=np.int64)
    values, counts = np.unique(fine, return_counts=True)
    odd = fine != values[int(np.argmax(counts))]
    _, where, counts = np.unique(phase, return_inverse=True, return_counts=True)
    firsts = np.append(0, np.flatnonzero(np.diff(where)) + 1)  # of stretches of one phase
    ends = np.append(firsts[1:], times.size)
    once = np.bincount(where[firsts]) == 1
    rare = (counts <= max(1, times.size // RARE)) | (once & (counts <= times.size // FEW))
    common = np.flatnonzero(~rare[where])
    for first, end in zip(firsts.tolist(), ends.tolist(), strict=True):
        if rare[where[first]] and not odd[first]:
            at = int(np.searchsorted(common, first))
            around = times[[*common[max(0, at - 1) : at + 1]]].tolist()
            odd[first:end] |= _stands_off(around, int(times[first]), bar_ns)
    return np.flatnonzero(odd)


def local_times(times: IntArray, zone: str) -> IntArray:
    """What the clock of a zone shows at times in UTC ns, in ns since 1970 by that clock, int64 (N,)."""
    if zone == "UTC":
        return times
    import pandas as pd

    return pd.DatetimeIndex(times, tz="UTC").tz_convert(zone).tz_localize(None).asi8


def bucket_numbers(higher: str, close_times: IntArray, zone: str = "UTC") -> IntArray:
    """The number of the higher bar in which each bar ends, int64 (N,); ascending by one from bar to bar."""
    inside = local_times(close_times - 1, zone if higher in STEPS else "UTC")
    if higher == "1M":
        return inside.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64)
    return (inside + (MONDAY_NS if higher == "1w" else 0)) // (HIGHER_SECONDS[higher] * NS)


def bucket_starts(higher: str, numbers: IntArray, zone: str = "UTC") -> IntArray:
    """When the higher bars of these numbers begin, UTC ns; each ends where the next one begins."""
    if higher == "1M":
        starts = numbers.astype("datetime64[M]").astype("datetime64[ns]").astype(np.int64)
    else:
        starts = numbers * (HIGHER_SECONDS[higher] * NS) - (MONDAY_NS if higher == "1w" else 0)
    if zone == "UTC" or higher not in STEPS:
        return starts
    import pandas as pd

    local = pd.DatetimeIndex(starts).tz_localize(
        zone, ambiguous=np.ones(starts.size, dtype=np.bool_), nonexistent="shift_forward"
    )
    return local.tz_convert("UTC").asi8


def _stands_off(around: list[int], label: int, bar_ns: int) -> bool:
    """Whether a label has the phase of none of the common ones around it, by any clock."""
    if not around:
        return False
    ahead = [(other - label) % bar_ns for other in around]
    agree = len(set(ahead)) < len(ahead)
    if agree and around[1] - around[0] < LEAST_MOVED_NS:
        return True
    explained = [
        _clock_moved(other, label, (move, move - bar_ns))
        if other < label
        else _clock_moved(label, other, (-move, bar_ns - move))
        for other, move in zip(around, ahead, strict=True)
    ]
    return not (
        all(explained) if agree else any(explained)
    )  # between equal ones a clock moves forth and back


def _clock_moved(before: int, label: int, moves: tuple[int, ...]) -> bool:
    """Whether a zone moved its clock by one of these, ns, between two labels."""
    wanted = [timedelta(microseconds=move // 1_000) for move in moves if abs(move) <= WIDEST_MOVE_NS]
    zones = map(_zone, _names() if wanted else ())
    return any(_offset(zone, label) - _offset(zone, before) in wanted for zone in zones)


def _offset(zone: ZoneInfo, label: int) -> timedelta:
    return datetime.fromtimestamp(label // NS, zone).utcoffset() or timedelta()


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(available_timezones()))


@cache
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)
