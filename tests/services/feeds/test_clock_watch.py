from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from services.feeds.clock_watch import ClockWatch, SourceTime
from services.feeds.port import BlockReason
from services.feeds.port import FeedAnomalyKind as Kind

NS = 1_000_000_000
HOUR = 3_600 * NS
WALL, MONOTONIC = 1_700_000_000 * NS, 5_000 * NS


def watch():
    found = ClockWatch(2.0)
    found.observe(WALL, MONOTONIC)
    return found


def reasons(items):
    assert all(item.kind is Kind.CLOCK and item.symbol is None for item in items)
    return [item.detail["reason"] for item in items]


@pytest.mark.parametrize("jump", [HOUR, -HOUR, 12 * 24 * HOUR, 3 * NS, -3 * NS])
def test_jump_of_the_wall_clock_is_told_once_and_blocks_until_the_source_agrees(jump):
    clock = watch()
    (found,) = clock.observe(WALL + NS + jump, MONOTONIC + NS)
    assert found.detail == {"reason": "jump"}
    assert found.measured == {"ahead_s": jump / NS}
    assert clock.observe(WALL + 2 * NS + jump, MONOTONIC + 2 * NS) == []
    assert clock.blocked is BlockReason.CLOCK
    now = WALL + 3 * NS + jump
    assert reasons(clock.compare(SourceTime(now - NS, now), now, MONOTONIC + 3 * NS)) == ["source agrees"]
    assert clock.blocked is None


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_wrong_wall_clock_blocks_as_long_as_the_source_differs(jump):
    clock = watch()
    clock.observe(WALL + jump, MONOTONIC)
    assert clock.compare(SourceTime(WALL, WALL), WALL + jump, MONOTONIC) == []
    assert clock.blocked
    assert reasons(clock.observe(WALL + NS, MONOTONIC + NS)) == ["jump"]
    assert reasons(clock.compare(SourceTime(WALL + NS, WALL + NS), WALL + NS, MONOTONIC + NS)) == [
        "source agrees"
    ]


def test_source_whose_clock_differs_is_told_once_and_again_when_it_agrees():
    clock = watch()
    (found,) = clock.compare(SourceTime(WALL - 9 * NS, WALL - 8 * NS), WALL, MONOTONIC)
    assert found.detail == {"reason": "source differs"}
    assert found.measured == {"ahead_s": 8.0}
    assert clock.compare(SourceTime(WALL - 9 * NS, WALL - 8 * NS), WALL, MONOTONIC) == []
    assert clock.blocked
    assert reasons(clock.compare(SourceTime(WALL - NS, WALL), WALL, MONOTONIC)) == ["source agrees"]


def test_bars_end_a_doubt_but_begin_none():
    clock = watch()
    assert clock.confirm(SourceTime(WALL - HOUR, WALL - HOUR), WALL, MONOTONIC) == []
    assert not clock.blocked
    later = WALL + 24 * HOUR
    clock.observe(later, MONOTONIC)
    assert clock.confirm(SourceTime(WALL, WALL + HOUR), later, MONOTONIC) == []
    assert clock.blocked
    assert reasons(clock.confirm(SourceTime(later - NS, later + HOUR), later, MONOTONIC)) == ["source agrees"]


def test_daylight_saving_is_no_jump():
    zone, clock = ZoneInfo("America/New_York"), ClockWatch(2.0)
    start = datetime(2024, 3, 10, 1, 59, tzinfo=zone)
    told = []
    for seconds in range(0, 180, 5):
        moment = (start.astimezone(ZoneInfo("UTC")) + timedelta(seconds=seconds)).astimezone(zone)
        told += clock.observe(int(moment.timestamp()) * NS, seconds * NS)
    assert told == []
    assert moment.utcoffset() != start.utcoffset()


def test_smeared_leap_second_is_no_jump_against_a_source_that_steps():
    clock, told = watch(), []
    for minute in range(24 * 60):
        monotonic = minute * 60 * NS
        wall = WALL + monotonic - monotonic // 86_400  # a second longer over the day
        told += clock.observe(wall, MONOTONIC + monotonic)
        stepped = WALL + monotonic - (NS if minute >= 12 * 60 else 0)
        told += clock.compare(SourceTime(stepped, stepped), wall, MONOTONIC + monotonic)
    assert told == []


def test_time_at_the_source_does_not_follow_a_wall_clock_that_is_set_back():
    clock = watch()
    clock.observe(WALL - HOUR, MONOTONIC + NS)
    assert clock.now(WALL - HOUR, MONOTONIC + NS) == WALL + NS


def test_time_at_the_source_follows_the_wall_clock_after_a_suspension():
    clock = watch()
    later = WALL + 12 * 24 * HOUR
    clock.observe(later, MONOTONIC)
    assert clock.now(later, MONOTONIC) == later
    clock.confirm(SourceTime(later, later), later, MONOTONIC)
    assert clock.now(later + NS, MONOTONIC + NS) == later + NS


def test_time_at_the_source_is_what_the_source_says_where_it_says_it():
    clock = watch()
    clock.compare(SourceTime(WALL - 10 * HOUR, WALL - 10 * HOUR), WALL, MONOTONIC)
    assert clock.now(WALL, MONOTONIC + 4 * NS) == WALL - 10 * HOUR + 4 * NS
    clock.compare(SourceTime(WALL + NS, WALL + NS), WALL, MONOTONIC)
    assert clock.now(WALL, MONOTONIC + 4 * NS) == WALL + 5 * NS
