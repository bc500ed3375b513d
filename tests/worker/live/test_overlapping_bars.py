"""Bars of a live feed that overlap the one before: reported, not traded, before and after a restart."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from schemas.settings import DataSettings
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind, series_of
from trading_core.live.growing_bars import Bar
from worker.live.entry_guard import Doubts

BAR = Bar(1.0, 2.0, 1.0, 2.0, 1.0)
OFF = DataSettings(plausibility="off")


def at(text: str) -> int:
    return pd.Timestamp(f"2024-01-02T{text}Z").value


def rows(*given: str, symbols: str = "A") -> list[BarRow]:
    return [BarRow(at(text), dict.fromkeys(symbols, BAR)) for text in given]


async def sifted(items: list[BarRow], bars: Any = None, **changes: Any) -> list[Any]:
    named = {"symbols": ("A", "B"), "timeframe": "1h", "label": "open", "lock_step": False} | changes
    doubts = await Doubts.of_run(OFF, SimpleNamespace(**named), None, None, bars)  # type: ignore[arg-type]

    async def items_of_feed() -> AsyncIterator[BarRow | FeedAnomaly]:
        for item in items:
            yield item

    return [item async for item in doubts.sift(items_of_feed())]


def test_feed_bar_that_overlaps_the_one_before_is_left_out_and_both_are_named():
    good = rows("09:00", "10:00", "12:00")
    found = asyncio.run(sifted([*good[:2], *rows("10:30"), good[2]]))
    detail = {"reason": "overlaps the bar before", "before": at("10:00"), "timeframe": "1h"}
    expected = FeedAnomaly(FeedAnomalyKind.INVALID, "A", at("10:30"), detail)
    assert found == [good[0], good[1], expected, good[2]]


def test_feed_bar_that_overlaps_in_a_row_of_others_leaves_their_bars():
    row = BarRow(at("10:30"), {"A": BAR, "B": BAR})
    _, anomaly, left = asyncio.run(sifted([*rows("10:00"), row]))
    assert (anomaly.symbol, anomaly.label) == ("A", row.label)
    assert (dict(left.bars), dict(left.blocked)) == ({"B": BAR}, {"A": "missing bar"})


def test_feed_bar_that_overlaps_the_last_one_before_a_restart_is_left_out():
    before = series_of(("A", "B"), "1h", "open", rows("09:00", "10:00", symbols="AB"))
    (anomaly,) = asyncio.run(sifted(rows("10:30"), before))
    assert anomaly.detail["before"] == at("10:00")


@pytest.mark.parametrize("label", ["open", "close"])
def test_feed_rows_that_are_left_are_a_series_that_every_door_takes(label):
    given = rows("09:00", "09:30", "10:00", "10:30", "11:00", "13:00", "13:45")
    left = [item for item in asyncio.run(sifted(given, label=label)) if isinstance(item, BarRow)]
    assert len(left) < len(given)
    assert series_of(("A",), "1h", label, left).bar_count == len(left)


def test_feed_of_recorded_bars_is_judged_as_a_series():
    given = rows("09:00", "10:00")
    assert asyncio.run(sifted(given, lock_step=True)) == given
