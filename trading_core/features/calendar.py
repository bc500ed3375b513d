"""Columns that come from a bar's times alone: calendar fields, sessions, and the higher bar a bar belongs to.

Calendar fields read the label as it stands in the data. Sessions, weeks and higher bars go by the close time
less one nanosecond, so a bar that ends at midnight belongs to the day it covers, and both label conventions
give the same groups. Every value needs the one bar only, so a column grows bar by bar.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from schemas.errors import RuleError
from schemas.vocabulary import TIMEFRAME_SECONDS

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
_NS = 1_000_000_000
_MINUTE = 60 * _NS
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_WEEK = 7 * _DAY
_MONDAY = 3 * _DAY  # 1970-01-01 was a Thursday: three days after a Monday

HIGHER_SECONDS: dict[str, int] = {**dict(list(TIMEFRAME_SECONDS.items())[1:]), "1w": _WEEK // _NS}
"""Timeframes of higher bars in seconds, ascending; `1w` is the ISO week."""

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
    own = TIMEFRAME_SECONDS[timeframe]
    if HIGHER_SECONDS[higher] <= own:
        possible = ", ".join(name for name, seconds in HIGHER_SECONDS.items() if seconds > own)
        raise RuleError(
            f"no {higher!r} bars can be made of {timeframe!r} bars: use one of {possible}, "
            "or the feature without a timeframe",
            timeframe=higher,
        )


def raw_column(column: str, labels: IntArray, close_times: IntArray, timeframe: str) -> IntArray | FloatArray:
    """One calendar column of bars of one symbol.

    Args:
        column: one of `CALENDAR_COLUMNS`.
        labels: int64 (N,), UTC ns, as in `BarSeries.times`.
        close_times: int64 (N,), UTC ns, as in `BarSeries.close_times`.
        timeframe: of the bars.

    Returns:
        (N,); a bucket is the number of the higher bar, plus `COMPLETES` where the bar ends it.

    Raises:
        RuleError: a higher timeframe that is not above the bars' own.
    """
    if column in _OF_LABEL:
        return _OF_LABEL[column](labels)
    if column in _OF_CLOSE:
        return _OF_CLOSE[column](close_times)
    return _bucket(column.removeprefix("bucket_"), close_times, timeframe)


def _bucket(higher: str, close_times: IntArray, timeframe: str) -> FloatArray:
    check_above(higher, timeframe)
    length = HIGHER_SECONDS[higher]
    ends = close_times + (_MONDAY if higher == "1w" else 0)
    number = ((ends - 1) // (length * _NS)).astype(np.float64)
    return number + np.where(ends % (length * _NS) == 0, COMPLETES, 0.0)


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
    "day_of_week": lambda labels: (labels + _MONDAY) // _DAY % 7,
    "day_of_month": _day_of_month,
    "month": _month,
}
_OF_CLOSE: dict[str, Callable[[IntArray], IntArray]] = {
    "session": lambda close_times: (close_times - 1) // _DAY,
    "week": lambda close_times: (close_times - 1 + _MONDAY) // _WEEK,
}
CALENDAR_COLUMNS = (*_OF_LABEL, *_OF_CLOSE, *map(bucket_column, HIGHER_SECONDS))
