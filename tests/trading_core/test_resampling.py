"""Longer bars made of recorded ones: pandas says the same, nothing is seen early, what is odd is said."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from schemas.errors import DataError
from tests.trading_core.price_paths import columns_of, series, walk
from trading_core.bars import COLUMNS, NS, BarSeries
from trading_core.features import compute
from trading_core.resampling import resample
from trading_core.spacing import bucket_numbers, bucket_starts

NEW_YORK = "America/New_York"
HOW = {"open": "first", "high": "max", "low": "min", "close": "last", "volume": "sum"}


def walked(index, seed=3, **terms):
    """Bars of a random walk at these times."""
    values = columns_of(walk(seed, len(index)))
    return BarSeries.from_frame(pd.DataFrame(values, index=index), **terms)


def frame_of(bars, s=0):
    there = bars.present[:, s]
    index = pd.DatetimeIndex(bars.times[there], tz="UTC")
    return pd.DataFrame({name: getattr(bars, name)[there, s] for name in COLUMNS}, index=index)


def sessions(first, days, minutes, zone=NEW_YORK, begin=9.5, hours=6.5):
    """Opens of bars in sessions of a zone."""
    count = int(hours * 60 // minutes)
    return pd.DatetimeIndex(
        [
            day + pd.Timedelta(hours=begin, minutes=minutes * k)
            for day in pd.bdate_range(first, periods=days, tz=zone)
            for k in range(count)
        ]
    ).tz_convert("UTC")


@pytest.mark.parametrize(
    ("own", "longer", "freq"),
    [("5min", "30m", "30min"), ("5min", "10m", "10min"), ("15min", "2h", "2h"), ("1h", "1d", "D"),
     ("D", "1w", "W-MON"), ("D", "1M", "MS"), ("4h", "1M", "MS")],
)  # fmt: skip
@pytest.mark.parametrize("missing", [0.0, 0.3], ids=["complete", "missing"])
def test_longer_bars_equal_those_of_pandas(own, longer, freq, missing):
    index = pd.date_range("2024-01-01", periods=900, freq=own, tz="UTC")
    index = index[np.random.default_rng(1).random(900) >= missing]
    bars = walked(index)
    found = frame_of(resample(bars, longer))
    closed = {"label": "left", "closed": "left"}
    expected = frame_of(bars).resample(freq, **closed).agg(HOW).dropna()[: len(found)]
    pd.testing.assert_frame_equal(
        found, expected, check_freq=False, check_names=False, check_index_type=False
    )


@pytest.mark.parametrize("longer", ["30m", "4h", "1w"])
def test_bars_labelled_by_closes_give_the_same_bars_labelled_by_closes(longer):
    opens = walked(pd.date_range("2024-01-01", periods=3_000, freq="10min", tz="UTC"))
    closes = dataclasses.replace(opens, times=opens.close_times, label="close")
    left, right = resample(opens, longer), resample(closes, longer)
    assert left.close_times.tolist() == right.times.tolist()
    assert left.close.tobytes() == right.close.tobytes()


@pytest.mark.parametrize(("own", "longer"), [("10min", "1h"), ("1h", "1d"), ("D", "1w"), ("D", "1M")])
def test_nothing_of_a_longer_bar_is_known_before_its_close(own, longer):
    bars = walked(pd.date_range("2024-01-01", periods=400, freq=own, tz="UTC"))
    whole = resample(bars, longer)
    for rows in (150, 233, 301):
        cut = bars.select(end_ns=int(bars.times[rows]))
        found = resample(cut, longer)
        assert (found.close_times <= cut.close_times[-1]).all()
        size = found.shape[0]
        assert found.close.tobytes() == whole.close[:size].tobytes()
        assert found.volume.tobytes() == whole.volume[:size].tobytes()
        assert (whole.close_times[size:] > cut.close_times[-1]).all()


@pytest.mark.parametrize("longer", ["1h", "1d", "1w"])
def test_longer_bars_are_those_that_features_read(longer):
    bars = walked(pd.date_range("2024-01-01", periods=3_000, freq="15min", tz="UTC"))
    made = resample(bars, longer)
    feature = compute(bars, [f"close_{longer}"])[f"close_{longer}"][:, 0]
    rows = np.searchsorted(bars.close_times, made.close_times)
    assert feature[rows].tolist() == made.close[:, 0].tolist()


def test_week_that_crosses_the_year_is_one_bar():
    bars = walked(pd.bdate_range("2024-12-23", "2025-01-10", tz="UTC"))
    notes: list[str] = []
    found = resample(bars, "1w", notes.append)
    assert [str(pd.Timestamp(label))[:10] for label in found.times] == ["2024-12-23", "2024-12-30"]
    assert found.close[1, 0] == bars.close[9, 0]  # Friday 3 January
    assert notes == ["the 1w bar from 2025-01-06T00:00:00Z on is not complete and left out"]


def test_days_of_a_zone_follow_its_clock_over_the_days_on_which_it_moves():
    index = pd.date_range("2024-03-08", "2024-03-13", freq="30min", tz=NEW_YORK, inclusive="left").tz_convert(
        "UTC"
    )
    bars = walked(index, zone=NEW_YORK)
    found = resample(bars, "1d")
    labels = pd.DatetimeIndex(found.times, tz="UTC").tz_convert(NEW_YORK)
    assert [str(label)[:16] for label in labels] == [f"2024-03-{day:02d} 00:00" for day in range(8, 13)]
    assert (np.diff(found.times) // (3_600 * NS)).tolist() == [24, 24, 23, 24]
    assert found.volume.sum() == pytest.approx(bars.volume.sum())


def test_months_of_daily_bars_in_a_zone_hold_the_days_of_that_zone():
    index = pd.date_range("2024-01-01", "2024-12-31", freq="D", tz=NEW_YORK)
    bars = walked(index, zone=NEW_YORK)
    found = resample(bars, "1M")
    local = frame_of(bars).tz_convert(NEW_YORK)
    expected = local.resample("MS").agg(HOW)
    assert found.close[:, 0].tolist() == expected["close"].tolist()
    assert found.times.tolist() == expected.index.tz_convert("UTC").as_unit("ns").asi8.tolist()


def test_daily_bars_of_another_zone_that_cross_a_month_are_refused_with_the_setting():
    bars = walked(pd.date_range("2024-01-01", periods=60, freq="D", tz=NEW_YORK))
    with pytest.raises(
        DataError, match=r"lies across 2024-02-01T00:00:00Z, where a 1M bar begins in UTC.*data\.zone"
    ):
        resample(bars, "1M")


def test_holidays_and_weekends_make_no_bar_and_no_note():
    days = pd.bdate_range("2024-01-01", "2024-03-31", tz="UTC").delete(10)  # Monday 15 January
    notes: list[str] = []
    found = resample(walked(days), "1w", notes.append)
    assert found.shape[0] == 12
    assert all("not complete" in note for note in notes)


def test_bars_of_two_hours_of_a_session_of_six_and_a_half_say_that_some_are_short():
    bars = walked(sessions("2024-01-08", 10, 30))
    notes: list[str] = []
    found = resample(bars, "2h", notes.append)
    assert found.timeframe == "2h"
    assert found.volume.sum() < bars.volume.sum()  # the last of the last session is not complete
    assert any(
        "2h bars hold less than 2h of 30m bars, first from 2024-01-08T14:00:00Z on" in note for note in notes
    )


def test_half_hours_of_a_session_say_nothing():
    bars = walked(sessions("2024-01-08", 10, 5))
    notes: list[str] = []
    found = resample(bars, "30m", notes.append)
    assert found.shape[0] == 130
    assert notes == []


def test_missing_bars_are_said_and_not_invented():
    index = pd.date_range("2024-01-01", periods=48, freq="5min", tz="UTC").delete([7, 30, 31, 32, 33, 34, 35])
    notes: list[str] = []
    found = resample(walked(index), "30m", notes.append)
    assert found.shape[0] == 7  # the half hour without any bar is none
    assert notes == [
        "1 of 7 30m bars hold less than 30m of 5m bars, first from 2024-01-01T00:30:00Z on: sessions begin "
        "or end within them, or bars are missing"
    ]


def test_symbols_that_miss_bars_share_the_times_of_the_others():
    present = np.ones((60, 2), dtype=bool)
    present[10:30, 1] = False
    values = {name: columns_of(walk(seed, 60)) for seed, name in enumerate(("AAA", "BBB"))}
    found = resample(series(values, timeframe="5m", present=present), "30m")
    assert (
        found.present.tolist()
        == [[True, True], [True, True], [True, False], [True, False], [True, False]] + [[True, True]] * 5
    )
    assert found.present[1, 1]


@pytest.mark.parametrize(
    ("freq", "longer", "words"),
    [
        (
            "1h",
            "30m",
            "--resample 30m: no '30m' bars can be made of '1h' bars: use one of 2h, 4h, 1d",
        ),
        ("10min", "15m", "no '15m' bars can be made of '10m' bars: use one of 30m, 1h"),
        ("W-MON", "1M", "no '1M' bars can be made of '1w' bars: they need shorter bars$"),
        ("30min", "195m", "no '195m' bars can be made of '30m' bars: use one of 1h"),
    ],
)
def test_timeframe_that_the_bars_do_not_divide_is_refused(freq, longer, words):
    with pytest.raises(DataError, match=words):
        resample(walked(pd.date_range("2024-01-01", periods=30, freq=freq, tz="UTC")), longer)


def test_same_timeframe_gives_the_bars_back():
    bars = walked(pd.date_range("2024-01-01", periods=30, freq="1h", tz="UTC"))
    assert resample(bars, "1h") is bars


def test_bars_that_make_no_complete_one_are_refused():
    with pytest.raises(DataError, match="make no complete one: give more bars"):
        resample(walked(pd.date_range("2024-01-01", periods=5, freq="1h", tz="UTC")), "1d")


@pytest.mark.parametrize("longer", ["1d", "1w", "1M"])
@pytest.mark.parametrize("zone", ["UTC", NEW_YORK, "Australia/Lord_Howe", "Africa/Cairo"])
def test_buckets_of_a_zone_meet_without_a_gap(longer, zone):
    closes = pd.date_range("2024-01-01", "2025-01-01", freq="30min", tz="UTC").as_unit("ns").asi8
    numbers = bucket_numbers(longer, closes, zone)
    assert (bucket_starts(longer, numbers, zone) < closes).all()
    assert (bucket_starts(longer, numbers + 1, zone) >= closes).all()
    assert set(np.diff(numbers).tolist()) <= {0, 1}
