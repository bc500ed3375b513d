"""What bars say of the moment of a check: how many are missing, and whether the last price is a market's."""

import numpy as np
import pandas as pd
import pytest

from schemas.guard import BarFacts
from services.guard.plans import read_bars
from trading_core.bars import BarSeries

HOUR_NS = 3_600 * 10**9


def hourly(*stretches: tuple[str, int], freq: str = "1h") -> BarSeries:
    """Bars of stretches, each from a time on so many; the close rises by .1 each."""
    index = pd.DatetimeIndex(
        np.concatenate([pd.date_range(start, periods=n, freq=freq, tz="UTC") for start, n in stretches])
    )
    close = 100.0 + 0.1 * np.arange(len(index))
    frame = pd.DataFrame(
        {"open": close, "high": close + 0.5, "low": close - 0.5, "close": close, "volume": 1.0}, index=index
    )
    return BarSeries.from_frame(frame, timeframe=freq.replace("min", "m"))


WITHOUT_GAP = hourly(("2024-01-02T09:00Z", 20))
TWO_WEEKS = hourly(
    *((f"2024-01-{day:02d}T09:00Z", 8) for day in (8, 9, 10, 11, 12, 15, 16, 17, 18)),
    ("2024-01-19T09:00Z", 7),
)
OVERNIGHT = hourly(("2024-01-02T09:00Z", 8), ("2024-01-03T09:00Z", 8))


@pytest.mark.parametrize(
    ("bars", "hours", "missed"),
    [
        (WITHOUT_GAP, 0.5, 0),
        (WITHOUT_GAP, 5, None),  # a weekend may be between
        (WITHOUT_GAP, 85, 85),
        (OVERNIGHT, 16, None),  # what trades on this weekday is not known
        (hourly(("2024-01-01T00:00Z", 300)), 5, 5),  # by the week before
        (TWO_WEEKS, 17, 1),  # Friday to Saturday
        (TWO_WEEKS, 20, 1),
        (TWO_WEEKS, 64 + 3, 3),
        (hourly(("2024-01-01T00:00Z", 12 * 24 * 8), freq="5min"), 5, 60),  # more than a check reads
    ],
)
def test_bars_that_are_missing_are_those_of_the_same_hours_of_the_week_before(bars, hours, missed):
    now = int(bars.close_times[-1]) + int(hours * HOUR_NS)
    assert read_facts(bars, now).missed == missed


def read_facts(bars: BarSeries, now: int) -> BarFacts:
    return read_bars(bars, bars.symbols[0], now)[1]


def test_jump_over_a_gap_in_time_is_not_known():
    gap = hourly(("2024-01-02T09:00Z", 20), ("2024-01-04T09:00Z", 1))
    assert read_facts(gap, int(gap.close_times[-1])).jump is None
    assert read_facts(WITHOUT_GAP, int(WITHOUT_GAP.close_times[-1])).jump == pytest.approx(0.1)
