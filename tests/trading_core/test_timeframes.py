"""Bars of every spacing: their names, when they are over, how a series of labels is recognised."""

import numpy as np
import pandas as pd
import pytest

from schemas.errors import DataError
from schemas.settings import HighLevelSettings
from schemas.timeframes import TIMEFRAME_SECONDS, after_bars, may_open, timeframe_problem
from services.statistics.calendar_units import unit_of_timeframe
from tests.each_case import check_each
from trading_core.bars import NS, BarSeries
from trading_core.live.growing_bars import GrowingBars, bar_of

DAY = 86_400 * NS
NEW_YORK = "America/New_York"


def ns(text, zone="UTC"):
    return pd.Timestamp(text, tz=zone).value


def bars_at(index, **terms):
    """Bars of slowly rising prices at these times."""
    times = pd.DatetimeIndex(index)
    times = times if times.tz is not None else times.tz_localize("UTC")
    close = 100.0 + np.arange(len(times)) * 0.5
    frame = pd.DataFrame({"open": close, "high": close + 1, "low": close - 1, "close": close}, index=times)
    return BarSeries.from_frame(frame, **terms)


@pytest.mark.parametrize(
    "name", ["1m", "10m", "13m", "15m", "30m", "65m", "90m", "1h", "2h", "4h", "12h", "1d", "1w", "1M"]
)
def test_timeframe_that_divides_a_day_or_a_session_has_a_length(name):
    assert timeframe_problem(name) is None
    assert TIMEFRAME_SECONDS[name] > 0


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("60m", "1h"), ("1440m", "1d"), ("24h", "1d"), ("30min", "30m"), ("1H", "1h"), ("W", "1w"),
        ("1wk", "1w"), ("1mo", "1M"), ("MS", "1M"), ("ME", "1M"), ("T", "1m"), ("1D", "1d"),
    ],
)  # fmt: skip
def test_timeframe_spelt_by_another_library_names_ours(name, meant):
    problem = timeframe_problem(name)
    assert problem is not None
    assert problem.endswith(f"Did you mean {meant!r}?")
    assert "1m, 5m, 10m, 15m, 30m, 1h, 2h, 4h, 1d, 1w, 1M" in problem


@pytest.mark.parametrize("name", ["7m", "7h", "2w", "0m", "", "m5", "3M", "-5m", "1" * 50])
def test_timeframe_that_divides_nothing_is_refused_without_a_wrong_hint(name):
    problem = timeframe_problem(name)
    assert problem is not None
    assert "is not one of" in problem


@pytest.mark.parametrize(
    ("at", "timeframe", "zone", "after"),
    [
        ("2024-12-30", "1w", "UTC", "2025-01-06"),
        ("2024-01-31", "1M", "UTC", "2024-02-29"),
        ("2024-02-29", "1M", "UTC", "2024-03-31"),
        ("2023-12-01", "1M", "UTC", "2024-01-01"),
        ("2024-03-04", "1w", NEW_YORK, "2024-03-11"),
        ("2024-10-28", "1w", NEW_YORK, "2024-11-04"),
        ("2024-03-10", "1d", NEW_YORK, "2024-03-11"),
        ("2024-11-01", "1M", NEW_YORK, "2024-12-01"),
    ],
)
def test_bar_is_over_a_step_of_its_zones_calendar_later_and_the_way_back_leads_there(
    at, timeframe, zone, after
):
    assert after_bars(ns(at, zone), timeframe, zone) == ns(after, zone)
    assert after_bars(ns(after, zone), timeframe, zone, -1) == ns(at, zone)


def test_bars_of_a_week_in_a_zone_close_at_its_midnight_however_its_clock_moves():
    bars = bars_at(pd.date_range("2024-03-04", periods=3, freq="7D", tz=NEW_YORK), zone=NEW_YORK)
    assert bars.timeframe == "1w"
    assert bars.close_times.tolist() == [*bars.times[1:].tolist(), ns("2024-03-25", NEW_YORK)]
    assert (np.diff(bars.times) // (3_600 * NS)).tolist() == [167, 168]


@check_each(
    ("freq", "timeframe", "label"),
    [
        ("10min", "10m", "open"), ("30min", "30m", "open"), ("2h", "2h", "open"), ("W-MON", "1w", "open"),
        ("W-FRI", "1w", "close"), ("MS", "1M", "open"), ("ME", "1M", "close"), ("BME", "1M", "close"),
        ("BMS", "1M", "open"),
    ],
)  # fmt: skip
@check_each("size", [2, 3, 40])
def test_spacing_of_labels_is_recognised(freq, timeframe, label, size):
    bars = bars_at(pd.date_range("2024-01-03", periods=size, freq=freq, tz="UTC"), label=label)
    assert bars.timeframe == timeframe
    assert (np.diff(bars.close_times) > 0).all()
    assert (bars.close_times >= bars.times).all()
    assert not bars.off_phase()


def test_weeks_that_begin_after_a_holiday_are_weeks_and_cover_the_turn_of_the_year():
    labels = ["2023-12-18", "2023-12-26", "2024-01-02", "2024-01-08", "2024-01-16", "2024-01-22"]
    bars = bars_at(labels, timeframe="1w")
    assert bars.bar_count == 6
    assert bars.close_times.tolist() == [ns(label) + 7 * DAY for label in labels]


@pytest.mark.parametrize(
    ("labels", "timeframe"),
    [
        (["2024-01-01", "2024-01-08", "2024-01-12", "2024-01-22", "2024-01-29"], "1w"),
        (["2024-01-01", "2024-02-01", "2024-02-20", "2024-03-01", "2024-04-01", "2024-05-01"], "1M"),
    ],
)
def test_two_labels_in_one_step_of_the_calendar_overlap(labels, timeframe):
    with pytest.raises(DataError, match="overlap"):
        bars_at(labels, timeframe=timeframe)


@pytest.mark.parametrize("hours", [7, 30, 100])
def test_spacing_that_is_no_timeframe_names_what_is_and_the_way(hours):
    with pytest.raises(DataError, match=r"is no timeframe: use 1m, 5m.*--resample"):
        bars_at(pd.date_range("2024-01-01", periods=9, freq=f"{hours}h", tz="UTC"))


def test_bars_of_two_hours_in_a_session_of_six_and_a_half_are_taken_with_their_short_last_bar():
    days = pd.bdate_range("2024-03-04", periods=10, tz=NEW_YORK)
    labels = [day + pd.Timedelta(hours=9.5 + 2 * k) for day in days for k in range(4)]
    bars = bars_at(pd.DatetimeIndex(labels).tz_convert("UTC"))
    assert (bars.timeframe, bars.bar_count) == ("2h", 40)
    assert not bars.off_phase()


@pytest.mark.parametrize("timeframe", ["1w", "1M"])
def test_growing_bars_close_as_the_whole_series(timeframe):
    freq = {"1w": "W-MON", "1M": "MS"}[timeframe]
    whole = bars_at(pd.date_range("2024-01-01", periods=14, freq=freq, tz=NEW_YORK), zone=NEW_YORK)
    grown = GrowingBars(whole.select(end_ns=int(whole.times[3])))
    for t in range(4, 14):
        bar = bar_of(
            *(float(getattr(whole, name)[t, 0]) for name in ("open", "high", "low", "close", "volume"))
        )
        grown.append(int(whole.times[t]), {"SYMBOL": bar})
    assert grown.close_times.tolist() == whole.close_times.tolist()


def test_zone_is_part_of_what_bars_are():
    index = pd.date_range("2024-01-01", periods=5, freq="MS", tz="UTC")
    assert bars_at(index).sha256 != bars_at(index, zone=NEW_YORK).sha256


@pytest.mark.parametrize(
    ("timeframe", "unit"),
    [("30m", "day"), ("2h", "week"), ("1d", "month"), ("1w", "quarter"), ("1M", "quarter")],
)
def test_block_of_the_gate_holds_enough_bars(timeframe, unit):
    assert unit_of_timeframe("", timeframe) == unit


@pytest.mark.parametrize(
    ("timeframe", "interval"), [("2h", "daily"), ("1d", "weekly"), ("1w", "weekly"), ("1M", "weekly")]
)
def test_slow_loop_is_weekly_from_a_day_on(timeframe, interval):
    assert HighLevelSettings().interval_for(timeframe) == interval


@pytest.mark.parametrize(
    ("label", "close", "timeframe", "possible"),
    [
        (0, 3_600 * NS, "1h", True), (1, 3_600 * NS, "1h", False), (3_600 * NS, DAY, "1d", True),
        (1_800 * NS + 1, DAY, "1d", False), (4 * 3_600 * NS, DAY, "1d", False), (0, 31 * DAY, "1M", True),
        (0, 27 * DAY, "1M", True), (0, 90 * DAY, "1M", False),
    ],
)  # fmt: skip
def test_snapshot_has_a_label_that_its_bar_can_have(label, close, timeframe, possible):
    assert may_open(label, close, timeframe) is possible
