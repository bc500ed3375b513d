import dataclasses

import numpy as np
import pytest

from tests.trading_core.price_paths import START, columns_of, one_symbol, series, walk
from trading_core.bars import NS
from trading_core.features import FEATURES, compute
from trading_core.features.calendar import CALENDAR_COLUMNS, COMPLETES, raw_column

HOUR = 3_600 * NS
SESSION_NAMES = sorted(
    family.example
    for family in FEATURES.values()
    if any(word in family.pattern for word in ("session", "week_", "previous"))
)


def test_calendar_features_read_the_label_in_utc():
    found = compute(one_symbol(walk(1, 40)), ["hour", "day_of_week", "day_of_month", "month"])
    assert found["day_of_week"][:3, 0].tolist() == [2, 3, 4]
    assert found["day_of_month"][[0, 30, 31], 0].tolist() == [1, 31, 1]
    assert found["month"][[0, 30, 31], 0].tolist() == [1, 1, 2]
    assert (found["hour"] == 0).all()
    hours = compute(one_symbol(walk(1, 40), timeframe="1h"), ["hour"])["hour"][:, 0]
    assert hours[:25].tolist() == [*range(24), 0]
    minutes = compute(one_symbol(walk(1, 40), timeframe="15m"), ["minute_of_day"])["minute_of_day"][:, 0]
    assert minutes[:5].tolist() == [0, 15, 30, 45, 60]


@pytest.mark.parametrize("name", SESSION_NAMES)
def test_session_feature_is_the_same_under_both_label_conventions(name):
    opens = series({"AAA": columns_of(walk(8, 800))}, timeframe="15m")
    closes = dataclasses.replace(opens, times=opens.close_times, label="close")
    assert compute(opens, [name])[name].tobytes() == compute(closes, [name])[name].tobytes()


def test_bar_that_ends_at_midnight_belongs_to_the_day_it_covers():
    found = compute(one_symbol(walk(1, 60), timeframe="1h"), ["bars_since_session_start"])
    assert found["bars_since_session_start"][:, 0].tolist() == [*range(24), *range(24), *range(12)]


def test_session_of_a_daily_bar_is_that_bar():
    bars = one_symbol(walk(1, 40))
    found = compute(
        bars,
        ["session_open", "session_high", "session_low", "session_volume", "bars_since_session_start"],
    )
    for name in ("open", "high", "low", "volume"):
        assert found[f"session_{name}"].tobytes() == getattr(bars, name).tobytes()
    assert (found["bars_since_session_start"] == 0).all()
    before = compute(bars, ["previous_session_close"])["previous_session_close"]
    assert np.isnan(before[0])
    assert (before[1:] == bars.close[:-1]).all()


def test_previous_session_is_the_last_one_that_had_a_bar():
    present = np.zeros((24 * 4, 1), dtype=bool)
    present[:5] = present[75:80] = True  # nothing on the second and the third day
    bars = series({"AAA": columns_of(walk(1, 96))}, timeframe="1h", present=present)
    found = compute(bars, ["previous_session_high", "previous_session_close"])
    assert np.isnan(found["previous_session_high"][:5]).all()
    assert (found["previous_session_high"][75:80] == bars.high[:5].max()).all()
    assert (found["previous_session_close"][75:80] == bars.close[4]).all()


def test_session_high_so_far_includes_the_bar_and_nothing_after_it():
    bars = one_symbol(walk(1, 24), timeframe="1h")
    found = compute(bars, ["session_high"])["session_high"]
    assert found[:, 0].tolist() == np.maximum.accumulate(bars.high[:, 0]).tolist()


def test_week_begins_on_monday():
    found = compute(one_symbol(walk(1, 20)), ["bars_since_week_start"])["bars_since_week_start"][:, 0]
    assert found.tolist() == [*range(5), *range(7), *range(7), 0]


def test_bucket_says_which_higher_bar_and_whether_the_bar_ends_it():
    closes = START + np.arange(1, 10) * HOUR
    found = raw_column("bucket_4h", closes, closes, "1h")
    first = START // (4 * HOUR)
    assert (found - first).tolist() == [0, 0, 0, COMPLETES, 1, 1, 1, 1 + COMPLETES, 2]


@pytest.mark.parametrize("column", CALENDAR_COLUMNS)
def test_raw_column_of_one_bar_is_that_of_the_whole(column):
    rng = np.random.default_rng(4)
    labels = np.sort(rng.integers(0, 2_000_000_000, 300)) * NS
    whole = raw_column(column, labels, labels + 60 * NS, "1m")
    single = [raw_column(column, labels[k : k + 1], labels[k : k + 1] + 60 * NS, "1m") for k in range(300)]
    assert np.concatenate(single).tobytes() == whole.tobytes()
