"""When the trades of a world happen: weeks from 2024-01-01, entries and exits in ns UTC."""

from dataclasses import dataclass

import numpy as np

from services.statistics.blocks import Floats
from services.statistics.calendar_units import Integers

HOUR_NS = 3_600_000_000_000
DAY_NS = 24 * HOUR_NS
WEEK_NS = 7 * DAY_NS
MONDAY_NS = 19_723 * DAY_NS  # 2024-01-01
YEAR_WEEKS = 52
TRADING_HOURS = 120.0


@dataclass(frozen=True)
class CellTrades:
    """Trades of one cell in any order, each (n,): bar labels in ns UTC and R after costs."""

    entry_ns: Integers
    exit_ns: Integers
    r: Floats


def week_ends(weeks: int) -> tuple[int, ...]:
    """The end of every week, ns: when a weekly look is taken."""
    return tuple(MONDAY_NS + (week + 1) * WEEK_NS for week in range(weeks))


def times_in_week(week: Integers, hours: Floats) -> Integers:
    """Moments by week and hours since its Monday, ns."""
    return np.asarray(MONDAY_NS + week * WEEK_NS + (hours * HOUR_NS).astype(np.int64), dtype=np.int64)


def spread_over_week(weeks: int, per_week: int) -> tuple[Integers, Integers]:
    """Week numbers and entry times of `per_week` trades a week, evenly over its five days, (weeks x n,)."""
    week, place = np.divmod(np.arange(weeks * per_week, dtype=np.int64), per_week)
    return week, times_in_week(week, (place + 0.5) * TRADING_HOURS / per_week)
