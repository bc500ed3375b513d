"""Which labels overlap, and which stand off the phase of their neighbours, in the markets that there are."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from schemas.errors import DataError
from trading_core.bars import BarSeries
from trading_core.spacing import find_overlap, off_phase

HOUR = 3_600_000_000_000
DAY = 24 * HOUR
HOURS = pd.date_range("2024-01-01", periods=600, freq="h", tz="UTC")


def nanoseconds(index: pd.DatetimeIndex) -> np.ndarray:
    return np.asarray(index.tz_convert("UTC").as_unit("ns").asi8)


def bars(index: pd.DatetimeIndex, label: Any = "open") -> BarSeries:
    frame = pd.DataFrame({"open": 1.0, "high": 2.0, "low": 1.0, "close": 2.0, "volume": 1.0}, index=index)
    return BarSeries.from_frame(frame, label=label, symbol="X")


def broker_bars(zone: str, start: str, end: str, hours: int) -> pd.DatetimeIndex:
    """Labels at whole multiples of some hours by the clock of a zone, as terminals draw them."""
    every = pd.date_range(start, end, freq="h", tz=zone)
    return every[(every.hour % hours == 0) & ~every.tz_localize(None).duplicated()]


def moved(index: pd.DatetimeIndex, positions, by: str) -> pd.DatetimeIndex:
    stamps = index.to_series()
    stamps.iloc[positions] += pd.Timedelta(by)
    return pd.DatetimeIndex(stamps)


OVERLAPPING = {
    "a live daily row": (pd.bdate_range("2020-01-01", periods=300, tz="America/New_York"), "15h59min"),
    "a live row of the half hour": (HOURS, "30min"),
    "a row a second early": (HOURS, "59min59s"),
    "a 4 h row an hour early in June": (broker_bars("Europe/Athens", "2024-05-01", "2024-06-20", 4), "3h"),
    "a day that is not over, on the night of a clock": (
        pd.date_range("2024-01-01", "2024-03-10", tz="UTC"),
        "23h5min",
    ),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_bars_a_step_shorter_than_the_timeframe_is_refused_with_both_rows_named(name):
    index, after = OVERLAPPING[name]
    late = index[-1] + pd.Timedelta(after)
    with pytest.raises(DataError, match="overlap") as caught:
        bars(pd.DatetimeIndex([*index, late]))
    for label in (index[-1], late):
        assert label.tz_convert("UTC").strftime("%Y-%m-%dT%H:%M:%SZ") in str(caught.value)
    assert caught.value.context["symbol"] == "X"


@pytest.mark.parametrize("zone", ["Europe/Athens", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("hours", [1, 4, 24])
def test_bars_of_a_broker_over_march_and_october_are_no_overlap(zone, hours):
    index = broker_bars(zone, "2023-01-01", "2024-12-31", hours)
    series = bars(index)
    short = np.diff(series.times) < series.bar_ns
    assert short.any() == (hours > 1), "else this says nothing"
    assert series.bar_count == len(index)
    assert series.off_phase() == {} or zone == "Australia/Lord_Howe"


def test_bars_overlap_beside_the_change_of_a_clock_names_the_overlap():
    index = broker_bars("Europe/Athens", "2024-03-01", "2024-06-01", 4)
    stray = index[-20] + pd.Timedelta("1h")
    with pytest.raises(DataError, match=stray.tz_convert("UTC").strftime("%Y-%m-%dT%H:%M:%SZ")):
        bars(pd.DatetimeIndex([*index, stray]).sort_values())


def session(first: str, count: int, *, label: str = "open") -> pd.DatetimeIndex:
    """Hourly bars of sessions of six and a half hours; labelled by its close the last of a day is short."""
    days = pd.bdate_range("2023-01-02", "2023-12-29", tz="America/New_York")
    hours = [pd.Timedelta(first) + pd.Timedelta(hours=k) for k in range(count)]
    if label == "close":
        hours = [*(hour + pd.Timedelta("1h") for hour in hours[:-1]), hours[-1] + pd.Timedelta("30min")]
    return pd.DatetimeIndex([day + hour for day in days for hour in hours])


@pytest.mark.parametrize("label", ["open", "close"])
def test_bars_of_sessions_that_end_early_are_neither_overlaps_nor_off_phase(label):
    series = bars(session("9h30min", 7, label=label), label)
    assert (np.diff(series.times) < series.bar_ns).any() == (label == "close"), "else this says nothing"
    assert series.off_phase() == {}


def test_bars_of_a_half_day_labelled_by_its_close_are_reported_and_no_overlap():
    days = pd.bdate_range("2024-12-02", "2024-12-31", tz="America/New_York").drop("2024-12-25")
    closes = days + pd.Timedelta("16h")
    half = moved(closes, [days.get_loc("2024-12-24")], "-3h")
    assert bars(half, "close").off_phase()["X"].tolist() == [pd.Timestamp("2024-12-24T18:00Z").value]


def test_bars_labelled_by_their_close_that_cannot_end_early_are_refused():
    times = nanoseconds(HOURS)
    between = np.sort(np.append(times, times[400] + HOUR // 2))
    assert find_overlap(between, HOUR, "close") == 401


@pytest.mark.parametrize("label", ["open", "close"])
def test_bars_of_two_sessions_a_day_are_neither_overlaps_nor_off_phase(label):
    days = pd.bdate_range("2023-01-02", "2023-12-29", tz="Asia/Shanghai")
    hours = [pd.Timedelta(text) for text in ("9h30min", "10h30min", "13h", "14h")]
    series = bars(pd.DatetimeIndex([day + hour for day in days for hour in hours]), label)
    assert series.off_phase() == {}


def test_labels_off_the_phase_of_their_neighbours_are_named():
    times = nanoseconds(HOURS)
    stretch = nanoseconds(moved(HOURS, slice(560, None), "14s"))
    assert off_phase(stretch, HOUR).tolist() == list(range(560, 600))
    alone = np.sort(np.append(np.delete(times, [299, 300, 301]), times[300] + HOUR // 2))
    assert off_phase(alone, HOUR).tolist() == [299]
    after_a_gap = np.append(times, times[-1] + 5 * HOUR + HOUR // 2)
    assert off_phase(after_a_gap, HOUR).tolist() == [600]
    assert off_phase(times + 14, HOUR).tolist() == [], "all of them are on one phase"


def test_label_after_the_change_of_a_clock_is_not_off_phase():
    days = pd.bdate_range("2024-01-02", "2024-03-11", tz="America/New_York") + pd.Timedelta("9h30min")
    assert off_phase(nanoseconds(days), DAY).tolist() == []


def test_bars_labelled_by_their_close_end_with_a_short_one_only_where_sessions_do():
    days = pd.date_range("2023-01-02", periods=250, freq="D", tz="UTC") + pd.Timedelta("21h")
    running = days[-1] + pd.Timedelta("18h")
    with pytest.raises(DataError, match="overlap") as caught:
        bars(pd.DatetimeIndex([*days, running]), "close")
    for label in (days[-1], running):
        assert label.strftime("%Y-%m-%dT%H:%M:%SZ") in str(caught.value)
    hours = session("9h30min", 7, label="close")
    assert bars(hours, "close").bar_count == len(hours)
    with pytest.raises(DataError, match="overlap"):
        bars(pd.DatetimeIndex([*hours[:-1], hours[-2] + pd.Timedelta("29min")]), "close")
    with pytest.raises(DataError, match="overlap"):
        bars(pd.DatetimeIndex([*hours[:-4], hours[-5] + pd.Timedelta("30min")]), "close")


def test_bars_of_a_half_day_are_no_habit_that_excuses_a_running_day():
    days = pd.bdate_range("2024-09-02", "2024-12-31", tz="UTC") + pd.Timedelta("21h")
    half = moved(days, [days.get_loc("2024-12-24 21:00")], "-3h").drop("2024-12-25 21:00")
    assert bars(half, "close").bar_count == len(half)
    with pytest.raises(DataError, match="overlap"):
        bars(pd.DatetimeIndex([*half, half[-1] + pd.Timedelta("21h")]), "close")


def test_part_of_a_series_that_ends_with_a_short_bar_is_a_series():
    days = pd.bdate_range("2024-12-02", "2024-12-31", tz="UTC") + pd.Timedelta("21h")
    series = bars(moved(days, [days.get_loc("2024-12-24 21:00")], "-3h").drop("2024-12-25 21:00"), "close")
    assert series.select(end_ns=pd.Timestamp("2024-12-24T18:00Z").value).shape[0] == 17


@pytest.mark.parametrize("count", [24, 600])
def test_labels_off_phase_that_stand_together_in_a_gap_are_named(count):
    times = nanoseconds(HOURS)[:count]
    middle = count // 2
    odd = times[[middle, middle + 1]] + HOUR // 2
    given = np.sort(np.append(np.delete(times, [middle, middle + 1, middle + 2]), odd))
    assert off_phase(given, HOUR).tolist() == [middle, middle + 1]


def test_first_label_off_the_phase_of_those_after_it_is_named():
    times = nanoseconds(HOURS)
    assert off_phase(np.append(times[0] - 3 * HOUR // 2, times), HOUR).tolist() == [0]


def test_first_labels_before_the_change_of_a_clock_are_not_off_phase():
    days = pd.bdate_range("2024-03-06", "2024-10-11", tz="America/New_York") + pd.Timedelta("9h30min")
    assert off_phase(nanoseconds(days), DAY).tolist() == []


def test_labels_of_a_month_in_which_a_zone_moved_its_clock_back_are_not_off_phase():
    days = pd.date_range("2023-06-01 12:00", "2024-09-30 12:00", tz="Africa/Casablanca")
    assert len(set(nanoseconds(days) % DAY)) == 2, "else this says nothing"
    assert off_phase(nanoseconds(days), DAY).tolist() == []
