"""Timeframes: how long a bar is, written as `15m`, `2h`, `1d`, `1w` or `1M`, and when a bar of each is over.

Minutes and hours are fixed spacings that divide a day or a session. Days, weeks and months are steps of the
calendar in a zone: a day there may have 23 hours, and a month 28 to 31 days.
"""

import calendar
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import AfterValidator

from schemas.errors import nearest

NS = 1_000_000_000
DAY_S = 86_400
LAST_NS = 2**63 - 1
SESSIONS = (1_440, 510, 390, 375)  # minutes: a day, and the sessions of London, New York and Mumbai
UNITS_S = {"m": 60, "h": 3_600, "d": DAY_S, "w": 7 * DAY_S, "M": 30 * DAY_S}
# How pandas, exchanges and data vendors write the units.
SPELT = {"min": "m", "t": "m", "hour": "h", "day": "d", "wk": "w", "mo": "M", "ms": "M", "me": "M"}
USUAL = ("1m", "5m", "10m", "15m", "30m", "1h", "2h", "4h", "1d", "1w", "1M")
ALLOWED = f"{', '.join(USUAL)} or other minutes and hours that divide a day or a session"


def _name(minutes: int) -> str:
    return f"{minutes}m" if minutes % 60 else f"{minutes // 60}h"


_MINUTES = sorted({minutes for whole in SESSIONS for minutes in range(1, 721) if whole % minutes == 0})
# Every timeframe by its length in seconds, ascending; a month counts thirty days where a length is asked for.
TIMEFRAME_SECONDS: dict[str, int] = {
    **{_name(minutes): 60 * minutes for minutes in _MINUTES},
    **{f"1{unit}": UNITS_S[unit] for unit in "dwM"},
}
STEPS = ("1d", "1w", "1M")  # of the calendar
QUARTER_NS = 900 * NS  # zones lie at whole quarters of an hour
_SLACK_NS = {"1d": 3 * 3_600 * NS, "1w": 3 * 3_600 * NS, "1M": 4 * DAY_S * NS}
UNEVEN = ("1w", "1M")  # may begin at their first session, so labels need not lie evenly


def timeframe_problem(text: str) -> str | None:
    """What is wrong with the name of a timeframe, with what is allowed and the one that may be meant."""
    if text in TIMEFRAME_SECONDS:
        return None
    return f"{text!r} is not one of {ALLOWED}.{_advice(text)}"


def _advice(text: str) -> str:
    match = re.fullmatch(r"(\d{0,4})([A-Za-z]{1,4})", text)
    if match is not None and (seconds := UNITS_S.get(_unit(match[2]))) is not None:
        length = int(match[1] or 1) * seconds
        meant = next((name for name, lasts in TIMEFRAME_SECONDS.items() if lasts == length), None)
        return "" if meant is None else f" Did you mean {meant!r}?"
    return nearest(text, TIMEFRAME_SECONDS)


def _unit(written: str) -> str:
    return SPELT.get(written.lower(), written if written in UNITS_S else written.lower())


def _check_name(text: str) -> str:
    if (problem := timeframe_problem(text)) is not None:
        raise ValueError(problem)
    return text


Timeframe = Annotated[str, AfterValidator(_check_name)]


def is_fixed(timeframe: str, zone: str = "UTC") -> bool:
    """Whether every bar of a timeframe is as long as the others."""
    return timeframe not in STEPS or (zone == "UTC" and timeframe != "1M")


def after_bars(at: int, timeframe: str, zone: str = "UTC", bars: int = 1) -> int:
    """The time so many bars after another (before it where negative), ns UTC.

    Days, weeks and months keep the time of day in the zone; the last day of a month leads to the last one.

    Args:
        at: ns UTC.
        timeframe: one of `TIMEFRAME_SECONDS`.
        zone: whose calendar counts.
        bars: how many.
    """
    if is_fixed(timeframe, zone):
        return at + bars * TIMEFRAME_SECONDS[timeframe] * NS
    place = ZoneInfo(zone)
    local = datetime.fromtimestamp(at // NS, place).replace(tzinfo=None)
    if timeframe == "1M":
        year, month = divmod(local.year * 12 + local.month - 1 + bars, 12)
        last = calendar.monthrange(year, month + 1)[1]
        is_last = local.day == calendar.monthrange(local.year, local.month)[1]
        local = local.replace(year=year, month=month + 1, day=last if is_last else min(local.day, last))
    else:
        local += timedelta(seconds=bars * TIMEFRAME_SECONDS[timeframe])
    moved = int(local.replace(tzinfo=place).astimezone(UTC).timestamp()) * NS + at % NS
    return min(moved, LAST_NS)


def close_of(label: int, timeframe: str, kind: str, zone: str = "UTC") -> int:
    """When the bar of a label is over, ns UTC; `kind` says whether labels are `open` or `close`."""
    return label if kind == "close" else after_bars(label, timeframe, zone)


def close_in_run(label: int, data: Mapping[str, Any]) -> int:
    """`close_of` a label of a run, by what its row says of the bars."""
    return close_of(label, data["timeframe"], data["label"], data.get("zone", "UTC"))


def zone_entry(zone: str) -> dict[str, str]:
    """What a run's row says of the zone of its calendar; nothing where it is UTC."""
    return {} if zone == "UTC" else {"zone": zone}


def may_open(label: int, close: int, timeframe: str) -> bool:
    """Whether a bar of a timeframe may have this label and that close, in any zone."""
    off = abs(after_bars(close, timeframe, bars=-1) - label)
    return off <= _SLACK_NS.get(timeframe, 0) and off % QUARTER_NS == 0
