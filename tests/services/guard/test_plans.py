"""What bars say of the moment of a check: how many are missing, and whether the last price is a market's."""

import numpy as np
import pandas as pd
import pytest

from services.guard.plans import read_facts
from trading_core.bars import BarSeries

HOUR_NS = 3_600 * 10**9


def hourly(*stretches: tuple[str, int]) -> BarSeries:
    """Bars of stretches, each from a time on so many hours; the close rises by .1 each."""
    index = pd.DatetimeIndex(
        np.concatenate([pd.date_range(start, periods=n, freq="1h", tz="UTC") for start, n in stretches])
    )
    close = 100.0 + 0.1 * np.arange(len(index))
    frame = pd.DataFrame(
        {"open": close, "high": close + 0.5, "low": close - 0.5, "close": close, "volume": 1.0}, index=index
    )
    return BarSeries.from_frame(frame, timeframe="1h")


WITHOUT_GAP = hourly(("2024-01-02T09:00Z", 20))
OVERNIGHT = hourly(("2024-01-02T09:00Z", 8), ("2024-01-03T09:00Z", 8))


@pytest.mark.parametrize(
    ("bars", "hours", "missed"),
    [
        (WITHOUT_GAP, 0.5, 0),
        (WITHOUT_GAP, 5, None),  # a weekend may be between
        (WITHOUT_GAP, 85, 85),
        (OVERNIGHT, 17, 0),
        (OVERNIGHT, 18, 18),
        (hourly(("2024-01-01T00:00Z", 300)), 5, 5),  # by the week before
    ],
)
def test_bars_of_less_than_a_week_tell_by_their_longest_gap_how_many_are_missing(bars, hours, missed):
    now = int(bars.close_times[-1]) + int(hours * HOUR_NS)
    assert read_facts(bars, now).missed == missed


def test_jump_over_a_gap_in_time_is_not_known():
    gap = hourly(("2024-01-02T09:00Z", 20), ("2024-01-04T09:00Z", 1))
    assert read_facts(gap, int(gap.close_times[-1])).jump is None
    assert read_facts(WITHOUT_GAP, int(WITHOUT_GAP.close_times[-1])).jump == pytest.approx(0.1)
