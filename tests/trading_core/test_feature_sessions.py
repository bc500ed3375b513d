import dataclasses

import numpy as np

from tests.each_case import check_each
from tests.trading_core.growing_bars import first_rows
from tests.trading_core.price_paths import START, columns_of, one_symbol, series, walk
from trading_core.bars import NS
from trading_core.features import FEATURES, FeatureColumns, compute
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


@check_each("name", SESSION_NAMES)
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


def test_clock_of_a_zone_is_read_summer_and_winter():
    friday, monday = (np.datetime64(at, "ns").astype(int) for at in ("2024-03-08T14:30", "2024-03-11T13:30"))
    days = [day + np.arange(13) * HOUR // 2 for day in (friday, monday)]  # New York opens at 9:30 on both
    bars = one_symbol(walk(1, 26), timeframe="30m")
    bars = dataclasses.replace(bars, times=np.concatenate(days), zone="America/New_York")
    names = ["minute_of_day", "hour", "day_of_week", "bars_since_session_start"]
    found = {name: values[:, 0].tolist() for name, values in compare_growth(bars, names).items()}
    assert found["minute_of_day"] == [*range(570, 960, 30)] * 2
    assert found["hour"][:3] == [9, 10, 10]
    assert found["day_of_week"] == [4] * 13 + [0] * 13
    assert found["bars_since_session_start"] == [*range(13)] * 2


def test_session_and_week_of_a_zone_begin_at_its_midnight():
    bars = dataclasses.replace(one_symbol(walk(1, 24 * 9), timeframe="1h"), zone="America/New_York")
    found = compare_growth(bars, ["bars_since_session_start", "bars_since_week_start"])
    assert found["bars_since_session_start"][:, 0].tolist() == [*range(5), *(list(range(24)) * 8), *range(19)]
    assert np.flatnonzero(found["bars_since_week_start"][:, 0] == 0).tolist() == [0, 5 * 24 + 5]


def compare_growth(bars, names):
    """Features of a series, which are those of the series followed bar by bar."""
    whole, followed = FeatureColumns(bars), FeatureColumns(first_rows(bars, 1))
    for columns in (whole, followed):
        columns.load(names)
    for count in range(2, bars.shape[0] + 1):
        followed.extend(first_rows(bars, count))
    for name in names:
        assert followed.scatter(name).tobytes() == whole.scatter(name).tobytes()
    return {name: whole.scatter(name) for name in names}


@check_each("zone", ["UTC", "America/New_York"])
@check_each("column", CALENDAR_COLUMNS)
def test_raw_column_of_one_bar_is_that_of_the_whole(column, zone):
    rng = np.random.default_rng(4)
    labels = np.sort(rng.integers(0, 2_000_000_000, 300)) * NS
    whole = raw_column(column, labels, labels + 60 * NS, "1m", zone)
    each = (labels[k : k + 1] for k in range(300))
    single = [raw_column(column, label, label + 60 * NS, "1m", zone) for label in each]
    assert np.concatenate(single).tobytes() == whole.tobytes()
