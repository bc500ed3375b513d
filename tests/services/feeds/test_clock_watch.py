from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from services.feeds.clock_watch import ClockWatch, SourceTime
from services.feeds.port import BlockReason
from services.feeds.port import FeedAnomalyKind as Kind

NS = 1_000_000_000
HOUR = 3_600 * NS
WALL, STEADY = 1_700_000_000 * NS, 5_000 * NS


class MovedWatch(ClockWatch):
    """A watch on clocks that stand where they are moved."""

    def __init__(self):
        self.readings = WALL, STEADY
        super().__init__(2.0, lambda: self.readings[0], lambda: self.readings[1])

    def at(self, wall, steady):
        self.readings = wall, steady
        return self


def watch():
    found = MovedWatch()
    found.observe()
    return found


def reasons(items):
    assert all(item.kind is Kind.CLOCK and item.symbol is None for item in items)
    return [item.detail["reason"] for item in items]


@pytest.mark.parametrize("jump", [HOUR, -HOUR, 12 * 24 * HOUR, 3 * NS, -3 * NS])
def test_jump_of_the_wall_clock_is_told_once_and_blocks_until_the_source_agrees(jump):
    clock = watch()
    (found,) = clock.at(WALL + NS + jump, STEADY + NS).observe()
    assert found.detail == {"reason": "jump"}
    assert found.measured == {"ahead_s": jump / NS}
    assert clock.at(WALL + 2 * NS + jump, STEADY + 2 * NS).observe() == []
    assert clock.blocked is BlockReason.CLOCK
    now = WALL + 3 * NS + jump
    assert reasons(clock.at(now, STEADY + 3 * NS).compare(SourceTime(now - NS, now))) == ["source agrees"]
    assert clock.blocked is None


@pytest.mark.parametrize("jump", [HOUR, -HOUR])
def test_wrong_wall_clock_blocks_as_long_as_the_source_differs(jump):
    clock = watch()
    clock.at(WALL + jump, STEADY).observe()
    assert clock.at(WALL + jump, STEADY).compare(SourceTime(WALL, WALL)) == []
    assert clock.blocked
    assert reasons(clock.at(WALL + NS, STEADY + NS).observe()) == ["jump"]
    assert reasons(clock.at(WALL + NS, STEADY + NS).compare(SourceTime(WALL + NS, WALL + NS))) == [
        "source agrees"
    ]


def test_source_whose_clock_differs_is_told_once_and_again_when_it_agrees():
    clock = watch()
    (found,) = clock.at(WALL, STEADY).compare(SourceTime(WALL - 9 * NS, WALL - 8 * NS))
    assert found.detail == {"reason": "source differs"}
    assert found.measured == {"ahead_s": 8.0}
    assert clock.at(WALL, STEADY).compare(SourceTime(WALL - 9 * NS, WALL - 8 * NS)) == []
    assert clock.blocked
    assert reasons(clock.at(WALL, STEADY).compare(SourceTime(WALL - NS, WALL))) == ["source agrees"]


def test_bars_end_a_doubt_but_begin_none():
    clock = watch()
    assert clock.at(WALL, STEADY).confirm(SourceTime(WALL - HOUR, WALL - HOUR)) == []
    assert not clock.blocked
    later = WALL + 24 * HOUR
    clock.at(later, STEADY).observe()
    assert clock.at(later, STEADY).confirm(SourceTime(WALL, WALL + HOUR)) == []
    assert clock.blocked
    assert reasons(clock.at(later, STEADY).confirm(SourceTime(later - NS, later + HOUR))) == ["source agrees"]


def test_daylight_saving_is_no_jump():
    zone, clock = ZoneInfo("America/New_York"), MovedWatch()
    start = datetime(2024, 3, 10, 1, 59, tzinfo=zone)
    shown = []
    for seconds in range(0, 180, 5):
        moment = (start.astimezone(ZoneInfo("UTC")) + timedelta(seconds=seconds)).astimezone(zone)
        shown += clock.at(int(moment.timestamp()) * NS, seconds * NS).observe()
    assert shown == []
    assert moment.utcoffset() != start.utcoffset()


def test_smeared_leap_second_is_no_jump_against_a_source_that_steps():
    clock, shown = watch(), []
    for minute in range(24 * 60):
        monotonic = minute * 60 * NS
        wall = WALL + monotonic - monotonic // 86_400  # a second longer over the day
        shown += clock.at(wall, STEADY + monotonic).observe()
        stepped = WALL + monotonic - (NS if minute >= 12 * 60 else 0)
        shown += clock.at(wall, STEADY + monotonic).compare(SourceTime(stepped, stepped))
    assert shown == []


def test_time_at_the_source_does_not_follow_a_wall_clock_that_is_set_back():
    clock = watch()
    clock.at(WALL - HOUR, STEADY + NS).observe()
    assert clock.at(WALL - HOUR, STEADY + NS).now() == WALL + NS


def test_time_at_the_source_follows_the_wall_clock_after_a_suspension():
    clock = watch()
    later = WALL + 12 * 24 * HOUR
    clock.at(later, STEADY).observe()
    assert clock.at(later, STEADY).now() == later
    clock.at(later, STEADY).confirm(SourceTime(later, later))
    assert clock.at(later + NS, STEADY + NS).now() == later + NS


def test_time_at_the_source_is_what_the_source_says_where_it_says_it():
    clock = watch()
    clock.at(WALL, STEADY).compare(SourceTime(WALL - 10 * HOUR, WALL - 10 * HOUR))
    assert clock.at(WALL, STEADY + 4 * NS).now() == WALL - 10 * HOUR + 4 * NS
    clock.at(WALL, STEADY).compare(SourceTime(WALL + NS, WALL + NS))
    assert clock.at(WALL, STEADY + 4 * NS).now() == WALL + 5 * NS
