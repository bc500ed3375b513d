import asyncio
from collections import Counter

import pytest

from services.feeds.port import BarRow, FeedAnomaly
from services.feeds.port import FeedAnomalyKind as Kind
from tests.trading_core.market import random_series
from tests.worker.feeds.misbehaving import Faults, MisbehavingReplay
from worker.feeds.replay import ReplayFeed

SERIES = random_series(3, bars=4_000, symbols=4, timeframe="1m")
CLEAN = Faults(duplicates=0.0, missing=0.0, out_of_order=0.0, conflicts=0.0)


def items_of(feed, after=None):
    async def drive():
        return [item async for item in feed.items(after)]

    return asyncio.run(drive())


def bars(items):
    return [(item.label, dict(item.bars)) for item in items if isinstance(item, BarRow)]


def read_shown(items):
    return [item for item in items if isinstance(item, FeedAnomaly)]


def counted(items):
    """Bars missed, and others by their anomalies."""
    found = Counter(item.kind for item in read_shown(items) if item.kind is not Kind.MISSING)
    found[Kind.MISSING] = sum(item.detail.get("bars", 0) for item in read_shown(items))
    found[Kind.MISSING] += sum(item.detail.get("missed", 0) for item in read_shown(items))
    return found


def test_source_without_faults_gives_the_rows_of_a_replay():
    found = items_of(MisbehavingReplay(SERIES, 1, CLEAN, continuous=True))
    assert [item for item in found if isinstance(item, BarRow)] == items_of(ReplayFeed(SERIES))
    assert read_shown(found) == []


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_a_bad_source_equal_the_clean_ones_and_every_fault_is_told_once(seed):
    feed = MisbehavingReplay(SERIES, seed, continuous=True)
    found = items_of(feed)
    assert bars(found) == bars(items_of(ReplayFeed(feed.arrived)))
    counts = counted(found)
    assert {kind: counts[kind] for kind in (Kind.DUPLICATE, Kind.CONFLICT, Kind.MISSING)} == {
        kind: feed.injected[kind] for kind in (Kind.DUPLICATE, Kind.CONFLICT, Kind.MISSING)
    }
    assert min(feed.injected.values()) > 0
    assert not counts[Kind.LATE]
    keys = Counter((item.kind, item.symbol, item.label) for item in read_shown(found))
    assert max(keys.values()) == 1
