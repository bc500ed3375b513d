"""Columns that come from a bar's times alone: calendar fields, sessions, and the higher bar a bar belongs to.

Calendar fields read the label by the clock of the bars' zone. Sessions, weeks and higher bars go by the close
time less one nanosecond, so a bar that ends at midnight belongs to the day it covers, and both label
conventions give the same groups. Every value needs the one bar only, so a column grows bar by bar.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from schemas.errors import RuleError
from schemas.timeframes import DAY_S, TIMEFRAME_SECONDS, USUAL
from trading_core.spacing import HIGHER_SECONDS, MONDAY_NS, bucket_numbers, bucket_starts, local_times

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
_NS = 1_000_000_000
_MINUTE = 60 * _NS
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY

COMPLETES = 0.5
"""Added to the number of a higher bar on the own bar whose close is that higher bar's end."""


def bucket_column(timeframe: str) -> str:
    """Name of the raw column that says which higher bar an own bar belongs to."""
    return f"bucket_{timeframe}"


def check_above(higher: str, timeframe: str) -> None:
    """Make sure that higher bars can be made of bars of a timeframe.

    Raises:
        RuleError: they cannot; says which can.
    """
    if not _is_above(higher, timeframe):
        possible = ", ".join(name for name in USUAL if _is_above(name, timeframe))
        advice = f"use one of {possible}" if possible else "they need shorter bars"
        raise RuleError(f"no {higher!r} bars can be made of {timeframe!r} bars: {advice}", timeframe=higher)


def _is_above(higher: str, timeframe: str) -> bool:
    """Whether whole bars of a timeframe make one of a higher one: within a day by their length."""
    own, length = TIMEFRAME_SECONDS[timeframe], HIGHER_SECONDS.get(higher, 0)
    return own < length and (length % own == 0 if length < DAY_S else own <= DAY_S)


def raw_column(
    column: str, labels: IntArray, close_times: IntArray, timeframe: str, zone: str = "UTC"
) -> IntArray | FloatArray:
    """One calendar column of bars of one symbol.

    Args:
        column: one of `CALENDAR_COLUMNS`.
        labels: int64 (N,), UTC ns, as in `BarSeries.times`.
        close_times: int64 (N,), UTC ns, as in `BarSeries.close_times`.
        timeframe: of the bars.
        zone: whose clock the calendar fields read, and whose days and weeks are counted; higher bars within a
            day are counted in UTC.

    Returns:
        (N,); a bucket is the number of the higher bar, plus `COMPLETES` where the bar ends it.

    Raises:
        RuleError: a higher timeframe that is not above the bars' own.
    """
    if column in _OF_LABEL:
        return _OF_LABEL[column](local_times(labels, zone))
    if column in _OF_CLOSE:
        return _OF_CLOSE[column](local_times(close_times - 1, zone))
    higher = column.removeprefix("bucket_")
    check_above(higher, timeframe)
    numbers = bucket_numbers(higher, close_times, zone)
    is_last = bucket_starts(higher, numbers + 1, zone) == close_times
    return numbers.astype(np.float64) + np.where(is_last, COMPLETES, 0.0)


def _month(labels: IntArray) -> IntArray:
    months: IntArray = labels.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64)
    return months % 12 + 1


def _day_of_month(labels: IntArray) -> IntArray:
    days = labels.astype("datetime64[ns]").astype("datetime64[D]")
    before: IntArray = (days - days.astype("datetime64[M]").astype("datetime64[D]")).astype(np.int64)
    return before + 1


_OF_LABEL: dict[str, Callable[[IntArray], IntArray]] = {
    "hour": lambda labels: labels % _DAY // _HOUR,
    "minute_of_day": lambda labels: labels % _DAY // _MINUTE,
    "day_of_week": lambda labels: (labels + MONDAY_NS) // _DAY % 7,
    "day_of_month": _day_of_month,
    "month": _month,
}
_OF_CLOSE: dict[str, Callable[[IntArray], IntArray]] = {
    "session": lambda inside: inside // _DAY,
    "week": lambda inside: (inside + MONDAY_NS) // _WEEK,
}
CALENDAR_COLUMNS = (*_OF_LABEL, *_OF_CLOSE, *map(bucket_column, HIGHER_SECONDS))
