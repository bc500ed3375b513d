"""How the labels of one symbol's bars are spaced: which bars overlap, and which stand off the others' phase.

Pure: UTC ns in, positions out. A day or a session that is short because its zone moved its clock is as long
as the others by that clock. Bars carry no zone, so any zone that moved its clock then by so much explains it.
"""

from datetime import datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
NS = 1_000_000_000
QUARTER_NS = 900 * NS  # sessions begin, and zones lie, at whole quarters of an hour
WIDEST_MOVE_NS = 7_200 * NS  # of a clock in summer
RARE = 50  # labels among which one of another phase is no habit of the market


def show_label(label: int) -> str:
    """A label as ISO 8601 in UTC, to the second."""
    return str(np.datetime64(label, "ns"))[:19] + "Z"


def overlaps(before: int, label: int, bar_ns: int) -> bool:
    """Whether the bar of a label begins before the one in front of it is over."""
    missing = bar_ns - (label - before)
    return missing > 0 and not _clock_moved(before, label, (missing,))


def find_overlap(times: IntArray, bar_ns: int, label: str) -> int | None:
    """The position of the first bar that overlaps the one in front of it; None where there is none.

    Args:
        times: int64 (n,), the ascending labels of one symbol.
        bar_ns: length of a bar.
        label: `open`, or `close`: then the last bar before a pause may be a short one, as sessions end.
    """
    steps = np.diff(times)
    short = steps < bar_ns
    if label == "close":
        short &= np.append(steps[1:] <= bar_ns, False)
    positions = (np.flatnonzero(short) + 1).tolist()
    return next((k for k in positions if overlaps(int(times[k - 1]), int(times[k]), bar_ns)), None)


def off_phase(times: IntArray, bar_ns: int) -> IntArray:
    """Positions of labels off the phase of their neighbours, ascending.

    Such are labels that lie elsewhere within the quarter of an hour (within a shorter bar) than most, and
    single ones that break the spacing of both neighbours, as no session does whose hours recur.

    Args:
        times: int64 (n,), the ascending labels of one symbol.
        bar_ns: length of a bar.
    """
    fine, phase = times % min(bar_ns, QUARTER_NS), times % bar_ns
    if (phase == phase[0]).all():
        return np.empty(0, dtype=np.int64)
    values, counts = np.unique(fine, return_counts=True)
    odd = fine != values[int(np.argmax(counts))]
    values, where, counts = np.unique(phase, return_inverse=True, return_counts=True)
    rare = counts[where] <= max(1, times.size // RARE)
    odd[1:-1] |= rare[1:-1] & (phase[1:-1] != phase[:-2]) & (phase[:-2] == phase[2:])
    ahead = int(times[-2] - times[-1]) % bar_ns
    if times.size > 2 and ahead and counts[where[-1]] == 1:
        odd[-1] |= not _clock_moved(int(times[-2]), int(times[-1]), (ahead, ahead - bar_ns))
    return np.flatnonzero(odd)


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
