"""Calendar periods in UTC that hold trades together: what one block of the gate is.

Day, week (ISO, from Monday), month and quarter, numbered from the epoch, so that numbers compare like times.
The default goes by the length of a bar: a day up to thirty minutes, a week up to four hours and below a day,
a month for a day, a quarter for longer bars.
"""

from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from schemas.timeframes import TIMEFRAME_SECONDS

BlockUnit = Literal["day", "week", "month", "quarter"]
Integers = NDArray[np.int64]

DAY_NS = 86_400_000_000_000
DAY_S, HALF_HOUR_S = 86_400, 1_800
LAST_NS = np.iinfo(np.int64).max - 2 * DAY_NS  # a label after which a bar still closes within an int64
COARSER: dict[BlockUnit, BlockUnit] = {"day": "week", "week": "month", "month": "quarter"}


def block_unit(setting: str, bar_s: int) -> BlockUnit:
    """The unit in force: `gate.block`, or where that is empty the one of bars of `bar_s` seconds."""
    if setting:
        return cast(BlockUnit, setting)
    if bar_s >= DAY_S:
        return "quarter" if bar_s > DAY_S else "month"
    return "week" if bar_s > HALF_HOUR_S else "day"


def unit_of_timeframe(setting: str, timeframe: str) -> BlockUnit:
    """`block_unit` for bars of a timeframe that the engine knows."""
    return block_unit(setting, TIMEFRAME_SECONDS[timeframe])


def unit_numbers(times_ns: Any, unit: BlockUnit) -> Integers:
    """The number of the period of each time (n,), ns UTC; equal within a period and one more in the next."""
    days = np.asarray(times_ns, dtype=np.int64) // DAY_NS
    if unit == "day":
        return days
    if unit == "week":
        return (days + 3) // 7  # 1970-01-01 was a Thursday
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months if unit == "month" else months // 3


def unit_starts(numbers: Any, unit: BlockUnit) -> Integers:
    """The first moment of each period by its number (n,), ns UTC."""
    count = np.asarray(numbers, dtype=np.int64)
    if unit == "day":
        return count * DAY_NS
    if unit == "week":
        return (count * 7 - 3) * DAY_NS
    months = count if unit == "month" else count * 3
    return months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) * DAY_NS


def after_units(at_ns: int, units: int, unit: BlockUnit) -> int:
    """The end of so many whole periods that begin after the one of `at_ns`, ns UTC."""
    number = int(unit_numbers(at_ns, unit)) + 1 + units
    return int(unit_starts(number, unit))


def later_starts(at_ns: int, unit: BlockUnit) -> Integers:
    """The first moments of all periods after the one of `at_ns` (n,), ns UTC, as far as labels reach."""
    first, last = (int(unit_numbers(at, unit)) for at in (at_ns, LAST_NS))
    return unit_starts(np.arange(first + 1, last + 1), unit)
