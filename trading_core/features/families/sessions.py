"""Families of time: calendar fields of the label, and the session and week a bar belongs to.

A session is the day, a week the ISO week, in the zone of the bars, of the close time less one nanosecond.
What is said of the current session is said of its bars so far, this one included; on daily bars a session
is one bar.
"""

from trading_core.features import nodes as f
from trading_core.features.families.family import (
    INFINITY,
    NOT_NEGATIVE,
    UNIT_INTERVAL,
    FeatureFamily,
)
from trading_core.features.formulas import SESSION, previous_session, session_open, session_vwap
from trading_core.features.nodes import CLOSE, HIGH, LOW, OPEN, VOLUME, Node

WEEK = f.raw("week")


def _session_location() -> Node:
    high, low = f.highest_of(HIGH, SESSION), f.lowest_of(LOW, SESSION)
    return f.divide(f.subtract(CLOSE, low), f.subtract(high, low))


def _session_gap() -> Node:
    before = previous_session("close")
    return f.divide(f.subtract(session_open(), before), before)


def _session_return() -> Node:
    return f.divide(f.subtract(CLOSE, session_open()), session_open())


def _calendar(column: str, what: str, low: float, high: float) -> FeatureFamily:
    return FeatureFamily(column, lambda: f.raw(column), "calendar", what, bounds=(low, high))


def _price(name: str, build: Node, what: str) -> FeatureFamily:
    return FeatureFamily(name, lambda: build, "price", what, bounds=NOT_NEGATIVE)


FAMILIES = (
    _calendar(
        "minute_of_day", "Minute of the day of the bar's label, 0 at midnight in `data.zone`.", 0, 1_439
    ),
    _calendar("hour", "Hour of the bar's label in `data.zone`.", 0, 23),
    _calendar("day_of_week", "Weekday of the bar's label in `data.zone`, Monday 0.", 0, 6),
    _calendar("day_of_month", "Day of the month of the bar's label in `data.zone`.", 1, 31),
    _calendar("month", "Month of the bar's label in `data.zone`.", 1, 12),
    FeatureFamily(
        "bars_since_session_start",
        lambda: f.bars_of(SESSION),
        "bars",
        "Bars of the session before this one: 0 on its first.",
        bounds=NOT_NEGATIVE,
    ),
    _price("session_open", session_open(), "Open of the session's first bar."),
    _price("session_high", f.highest_of(HIGH, SESSION), "Highest high of the session so far."),
    _price("session_low", f.lowest_of(LOW, SESSION), "Lowest low of the session so far."),
    _price(
        "session_vwap",
        session_vwap(),
        "Volume-weighted typical price of the session so far; unknown before its first volume.",
    ),
    FeatureFamily(
        "session_volume",
        lambda: f.total_of(VOLUME, SESSION),
        "shares",
        "Volume of the session so far.",
        bounds=NOT_NEGATIVE,
    ),
    FeatureFamily(
        "session_return",
        _session_return,
        "fraction",
        "Close against session_open.",
        bounds=(-1.0, INFINITY),
    ),
    FeatureFamily(
        "session_location",
        _session_location,
        "fraction",
        "Where the close lies between session_low and session_high; unknown while they are equal.",
        bounds=UNIT_INTERVAL,
    ),
    _price("previous_session_high", previous_session("high"), "Highest high of the session before."),
    _price("previous_session_low", previous_session("low"), "Lowest low of the session before."),
    _price("previous_session_close", previous_session("close"), "Last close of the session before."),
    FeatureFamily(
        "session_gap",
        _session_gap,
        "fraction",
        "session_open against previous_session_close.",
        bounds=(-1.0, INFINITY),
    ),
    FeatureFamily(
        "bars_since_week_start",
        lambda: f.bars_of(WEEK),
        "bars",
        "Bars of the week before this one: 0 on its first.",
        bounds=NOT_NEGATIVE,
    ),
    _price("week_open", f.first_of(OPEN, WEEK), "Open of the week's first bar."),
    _price("week_high", f.highest_of(HIGH, WEEK), "Highest high of the week so far."),
    _price("week_low", f.lowest_of(LOW, WEEK), "Lowest low of the week so far."),
)
