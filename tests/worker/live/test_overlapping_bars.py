"""Bars of a live feed that overlap the one before: reported, not traded, before and after a restart."""

import asyncio
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from schemas.settings import DataSettings
from services.feeds.port import BarRow, FeedAnomaly, FeedAnomalyKind, series_of
from trading_core.live.growing_bars import Bar
from worker.live.doubts import Doubts

BAR = Bar(1.0, 2.0, 1.0, 2.0, 1.0)
OFF = DataSettings(plausibility="off")


def at(text: str) -> int:
    return pd.Timestamp(f"2024-01-02T{text}Z").value


def rows(*given: str, symbols: str = "A") -> list[BarRow]:
    return [BarRow(at(text), dict.fromkeys(symbols, BAR)) for text in given]


async def sifted(
    items: list[BarRow], bars: Any = None, refused: int | None = None, **changes: Any
) -> list[Any]:
    """What is left of rows; behind a restart `refused` was told before it."""
    named = {"symbols": ("A", "B"), "timeframe": "1h", "label": "open", "lock_step": False} | changes

    async def shown(*_: Any, **__: Any) -> AsyncIterator[Any]:
        if refused is not None:
            detail = {"reason": "overlaps the bar before"}
            past = {"symbol": "A", "bar_label": refused, "detail": detail, "anomaly": "invalid"}
            yield SimpleNamespace(payload=json.dumps(past))

    store = SimpleNamespace(journal=SimpleNamespace(rows=shown))
    of: Any = (OFF, SimpleNamespace(**named), store, SimpleNamespace(run_id="r"), bars)
    doubts = await Doubts.of_run(*of)

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


def test_feed_bar_labelled_by_its_close_that_is_short_is_left_out_and_the_genuine_one_is_traded():
    given = rows("09:00", "10:00", "10:30", "11:00", "12:00")
    found = asyncio.run(sifted(given, label="close"))
    labels = [item.label for item in found if isinstance(item, BarRow)]
    assert labels == [at("09:00"), at("10:00"), at("11:00"), at("12:00")]
    assert [item.label for item in found if isinstance(item, FeedAnomaly)] == [at("10:30")]


def sessions(days: int) -> list[BarRow]:
    """Hours of sessions of 2.5 hours, labelled by their close: the last of each is short."""
    hours = ("10:30", "11:30", "12:00")
    start = [at(hour) for hour in hours]
    day = 86_400_000_000_000
    return [BarRow(label + number * day, {"A": BAR}) for number in range(days) for label in start]


@pytest.mark.parametrize("restart", [None, 3, 5, 12])
def test_feed_of_sessions_that_end_short_leaves_out_the_first_end_only(restart):
    """The label behind the first short bar shows that a session ended with it."""
    given = sessions(5)
    if restart is None:
        found = asyncio.run(sifted(given, label="close"))
        assert found[2].label == given[2].label
        assert [item for item in found if isinstance(item, BarRow)] == [*given[:2], *given[3:]]
    else:
        before = [row for row in given[:restart] if row is not given[2]]
        bars = series_of(("A",), "1h", "close", before)
        found = asyncio.run(
            sifted(given[restart:], bars, symbols=("A",), label="close", refused=given[2].label)
        )
        assert found == given[restart:]
