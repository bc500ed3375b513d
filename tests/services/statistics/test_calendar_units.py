from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.statistics.calendar_units import (
    DAY_NS,
    after_units,
    block_unit,
    unit_numbers,
    unit_of_timeframe,
    unit_starts,
)

UNITS = st.sampled_from(["day", "week", "month", "quarter"])
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.integers(-600_000_000, 7_200_000_000).map(lambda second: EPOCH + timedelta(seconds=second))


def ns(moment):
    return int((moment - EPOCH).total_seconds()) * 10**9


def at(year, month, day, hour=0):
    return ns(datetime(year, month, day, hour, tzinfo=UTC))


def period(moment, unit):
    """The period of a moment as the calendar of the standard library names it."""
    if unit == "day":
        return moment.date()
    if unit == "week":
        return tuple(moment.isocalendar())[:2]
    return moment.year, moment.month if unit == "month" else (moment.month - 1) // 3


@given(TIMES, TIMES, UNITS)
def test_times_share_a_number_exactly_when_they_share_the_iso_week_month_or_quarter(first, second, unit):
    numbers = unit_numbers([ns(first), ns(second)], unit)
    assert (numbers[0] == numbers[1]) == (period(first, unit) == period(second, unit))
    assert (numbers[0] < numbers[1]) == (first < second and period(first, unit) != period(second, unit))


@given(TIMES, UNITS)
def test_start_of_a_number_is_the_first_moment_that_has_it(moment, unit):
    number = unit_numbers(ns(moment), unit)
    start = unit_starts(number, unit)
    assert start <= ns(moment) < unit_starts(number + 1, unit)
    assert unit_numbers([start - 1, start], unit).tolist() == [number - 1, number]


@given(st.integers(-1_100, 1_100), UNITS)
def test_number_of_a_start_is_the_number(number, unit):
    assert int(unit_numbers(unit_starts(number, unit), unit)) == number


@pytest.mark.parametrize(
    ("unit", "start"),
    [
        ("day", (2024, 2, 29)),
        ("week", (2024, 2, 26)),
        ("month", (2024, 2, 1)),
        ("quarter", (2024, 1, 1)),
    ],
)
def test_period_of_the_leap_day_begins_where_the_calendar_says(unit, start):
    assert int(unit_starts(unit_numbers(at(2024, 2, 29, 13), unit), unit)) == at(*start)


@pytest.mark.parametrize(
    ("timeframe", "unit"),
    [
        ("1m", "day"),
        ("15m", "day"),
        ("1h", "week"),
        ("4h", "week"),
        ("1d", "month"),
    ],
)
def test_empty_setting_is_the_unit_that_belongs_to_the_length_of_a_bar(timeframe, unit):
    assert unit_of_timeframe("", timeframe) == unit
    assert unit_of_timeframe("quarter", timeframe) == "quarter"


def test_bars_of_any_length_have_a_unit():
    lengths = (1, 1_800, 1_801, 86_399, 86_400, 604_800)
    units = ["day", "day", "week", "week", "month", "quarter"]
    assert [block_unit("", seconds) for seconds in lengths] == units


@given(TIMES, st.integers(1, 60), UNITS)
def test_end_of_whole_units_after_a_time_leaves_the_begun_one_out(moment, units, unit):
    end = after_units(ns(moment), units, unit)
    number = int(unit_numbers(ns(moment), unit))
    assert unit_numbers([end - 1, end], unit).tolist() == [number + units, number + units + 1]


def test_numbers_of_nothing_are_nothing():
    assert unit_numbers(np.zeros(0, dtype=np.int64), "week").tolist() == []
    assert DAY_NS == 86_400 * 10**9
