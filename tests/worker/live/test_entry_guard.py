"""Safe mode on top of what the feed says: raised by each of its reasons, told once, and gone with it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from schemas.settings import Settings
from services.feeds.port import BarRow, BlockReason
from services.store import open_store
from tests.worker.live.paper_runs import Item, RunningFeed, address, process_in, rows_of
from trading_core.live.growing_bars import Bar
from worker.feeds.sample_data.worlds import make_world
from worker.live.safe_mode import EntryGuard

SYMBOLS = ("A", "B")
BAR = Bar(1.0, 1.0, 1.0, 1.0, 1.0)
OF_ALL = [(BlockReason.STALE, "feed_stale"), (BlockReason.CLOCK, "clock_jump")]


def row(*blocked: str) -> BarRow:
    return BarRow(0, dict.fromkeys(SYMBOLS, BAR), dict(zip(SYMBOLS, blocked, strict=False)))


def changes(shown: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, str | None]]:
    return [(reason["change"], reason["reason"]) for kind, reason in shown if kind == "safe_mode"]


class Guarded:
    """A guard and what it told."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, dict[str, Any]]] = []
        self.guard = EntryGuard(SYMBOLS, lambda kind, detail: self.shown.append((kind, detail)))

    def takes(self, given: BarRow, *, following: bool = False) -> dict[str, str]:
        """Who may not enter on a row."""
        return dict(self.guard.guard_row(given, store_behind=following).blocked)


@pytest.mark.parametrize(("reason", "name"), OF_ALL)
def test_safe_mode_change_is_told_once_when_every_symbol_is_blocked_and_when_none_is(reason, name) -> None:
    one = Guarded()
    for _ in range(3):
        assert one.takes(row(reason, reason)) == dict.fromkeys(SYMBOLS, reason)
    assert changes(one.shown) == [("entered", name)]
    assert one.guard.reasons == (name,)
    assert one.takes(row()) == {}
    assert changes(one.shown)[1:] == [("left", name)]


@pytest.mark.parametrize(("reason", "name"), OF_ALL)
def test_safe_mode_is_not_entered_for_one_symbol_of_two(reason, name) -> None:
    one = Guarded()
    assert one.takes(row(reason)) == {"A": reason}
    assert one.takes(row(reason, BlockReason.MISSING)) == {"A": reason, "B": BlockReason.MISSING}
    assert changes(one.shown) == []


def test_safe_mode_blocks_those_that_the_feed_lets_enter() -> None:
    one = Guarded()
    assert one.takes(row(BlockReason.CONFLICT), following=True) == {
        "A": BlockReason.CONFLICT,
        "B": "safe mode: store_away",
    }
    assert one.takes(row(BlockReason.CONFLICT)) == {"A": BlockReason.CONFLICT}


@pytest.mark.parametrize(("reason", "name"), OF_ALL)
def test_paper_run_whose_rows_are_all_blocked_is_in_safe_mode_and_says_why(tmp_path, reason, name) -> None:
    bars = make_world("reverting", seed=5, bars=60, symbols=2, timeframe="1m")
    blocked = dict.fromkeys(bars.symbols, str(reason))
    items: list[Item] = [
        replace(entry, blocked=blocked) if 20 <= number < 30 else entry
        for number, entry in enumerate(rows_of(bars))
    ]
    shown: list[tuple[str, dict[str, Any]]] = []

    async def run() -> None:
        async with await open_store(address(tmp_path), create=True) as store:
            await process_in(store, Settings(), RunningFeed(bars, items=items), shown)

    asyncio.run(run())
    of_it = [change for change in changes(shown) if change[1] == name]
    assert of_it in (
        [(first, name), (last, name)] for first, last in [("entered", "left"), ("raised", "ended")]
    )
