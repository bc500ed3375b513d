import asyncio

import numpy as np
import pytest

from schemas.errors import ConfigError
from services.feeds.port import BarRow
from tests.trading_core.market import random_series
from trading_core.bars import COLUMNS, NS
from worker.feeds.replay import LONGEST_WAIT_BARS, ReplayFeed


def taken(feed, after=None, most=None):
    async def drive():
        rows = []
        async for item in feed.items(after):
            rows.append(item)
            if len(rows) == most:
                await feed.close()
        return rows

    return asyncio.run(drive())


class Sleeper:
    def __init__(self):
        self.waits = []

    async def __call__(self, seconds):
        if seconds:
            self.waits.append(seconds)


SERIES = random_series(7, bars=1_100, symbols=3, missing=0.2)


def test_replay_hands_over_every_bar_as_it_was_recorded():
    rows = taken(ReplayFeed(SERIES))
    assert [row.label for row in rows] == SERIES.times.tolist()
    for number, row in enumerate(rows):
        assert isinstance(row, BarRow)
        assert not row.blocked
        assert not row.history
        there = [symbol for s, symbol in enumerate(SERIES.symbols) if SERIES.present[number, s]]
        assert sorted(row.bars) == there
        for symbol in there:
            s = SERIES.symbols.index(symbol)
            assert tuple(row.bars[symbol]) == tuple(getattr(SERIES, name)[number, s] for name in COLUMNS)


@pytest.mark.parametrize("position", [0, 511, 512, 1_098, 1_099])
def test_replay_after_a_label_goes_on_with_the_next_row(position):
    rows = taken(ReplayFeed(SERIES), int(SERIES.times[position]))
    assert [row.label for row in rows] == SERIES.times[position + 1 :].tolist()


def test_replay_says_the_last_label_of_each_symbol_that_it_handed_over():
    feed = ReplayFeed(SERIES)
    assert feed.last_labels() == {}
    assert len(taken(feed, most=600)) == 600
    expected = {
        symbol: int(SERIES.times[np.flatnonzero(SERIES.present[:600, s])[-1]])
        for s, symbol in enumerate(SERIES.symbols)
    }
    assert feed.last_labels() == expected


def test_replay_at_a_speed_waits_for_the_time_between_bars_but_not_through_gaps():
    part = SERIES.select(None, int(SERIES.times[0]), int(SERIES.times[40]))
    times = part.times.copy()
    times[20:] += 50 * part.bar_ns
    part = type(part)(
        times,
        part.symbols,
        part.timeframe,
        part.label,
        present=part.present,
        **{name: getattr(part, name) for name in COLUMNS},
    )
    sleeper = Sleeper()
    taken(ReplayFeed(part, 60.0, sleep=sleeper))
    bars = np.minimum(np.diff(times) // part.bar_ns, LONGEST_WAIT_BARS)
    assert sleeper.waits == pytest.approx(bars * part.bar_ns / NS / 60.0)
    assert max(bars) == LONGEST_WAIT_BARS


def test_replay_at_full_speed_waits_for_nothing():
    sleeper = Sleeper()
    taken(ReplayFeed(SERIES, sleep=sleeper))
    assert sleeper.waits == []


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_replay_refuses_a_speed_that_is_none(speed):
    with pytest.raises(ConfigError, match="--speed"):
        ReplayFeed(SERIES, speed)
