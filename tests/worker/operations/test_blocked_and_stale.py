"""Who may not enter is shown with the reason: only a symbol without bars is called stale."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from schemas.settings import Settings
from services.feeds.port import BlockReason
from services.store import open_store
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import Item, RunningFeed, rows_of
from tests.worker.live.test_entry_guard import Guarded, row
from worker.feeds.sample_data.worlds import make_world
from worker.live.process import PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.live.safe_mode import EntryGuard, SafeModeReason
from worker.operations.status import ProcessStatus, not_ready

BARS = make_world("reverting", seed=5, bars=12, symbols=2, timeframe="1m")
FIRST, SECOND = BARS.symbols


class Shown(RunningFeed):
    """A feed whose bars arrive, and that keeps the status at each of them."""

    def __init__(self, *blocked: dict[str, str]) -> None:
        given = rows_of(BARS)
        last = len(given) - len(blocked)
        items: list[Item] = [*given[:last], *map(self._blocked, given[last:], blocked)]
        super().__init__(BARS, self._between, items)
        self.process: PaperProcess
        self.seen: list[ProcessStatus] = []

    @staticmethod
    def _blocked(given: Any, blocked: dict[str, str]) -> Any:
        return replace(given, blocked=blocked)

    async def _between(self, number: int) -> None:
        if number:
            self.seen.append(self.process.traded.status.status())

    async def items(self, after: int | None) -> AsyncIterator[Item]:
        """As they are, then a last look."""
        async for item in super().items(after):
            yield item
        await self._between(1)


def traded(folder: Any, *blocked: dict[str, str]) -> list[ProcessStatus]:
    """The status behind each of the last rows, blocked so; the run is left behind."""
    feed = Shown(*blocked)

    async def run() -> None:
        async with await open_store(f"sqlite:///{folder}/thinktwice.db", create=True) as store:
            around = NullMonitor(lambda kind, detail: None)
            feed.process = PaperProcess(ProcessInputs(Settings(), feed, store, "host:1:a", around))
            await feed.process.run("test")

    asyncio.run(run())
    return feed.seen[-len(blocked) :]


def test_conflict_and_safe_mode_are_blocked_with_their_reason_and_not_stale(
    tmp_path: Any, shell: Any
) -> None:
    conflict, stale = str(BlockReason.CONFLICT), str(BlockReason.STALE)
    status = traded(tmp_path, {FIRST: conflict}, {FIRST: stale, SECOND: conflict}, {FIRST: conflict})
    assert [entry.stale_symbols for entry in status] == [(), (FIRST,), ()]
    assert [dict(entry.blocked) for entry in status] == [
        {FIRST: conflict},
        {FIRST: stale, SECOND: conflict},
        {FIRST: conflict},
    ]
    shown = shell.run("status")
    assert shown.exit_code == 0, shown.output
    assert f"blocked    {FIRST} (conflicting bars): no entries, exits run on" in shown.stdout
    assert "stale" not in shown.stdout


@pytest.mark.parametrize("given", [(), (BlockReason.CONFLICT,)])
def test_safe_mode_blocks_everybody_else_while_it_lasts_and_not_until_the_next_bar(
    given: tuple[str, ...],
) -> None:
    one = Guarded()
    on_the_row = one.takes(row(*given), following=True)
    of_feed = dict(zip(("A", "B"), given, strict=False))
    assert one.guard.in_force(on_the_row) == dict.fromkeys(("A", "B"), "safe mode: store_away") | of_feed
    one.guard.weigh_store(following=False)
    assert one.guard.in_force(on_the_row) == of_feed
    one.guard.hold(SafeModeReason.CRASH_LOOP)
    assert set(one.guard.in_force({})) == {"A", "B"}


def test_every_symbol_in_conflict_is_not_ready_and_not_stale() -> None:
    shut = EntryGuard(("A",), lambda kind, detail: None).in_force({"A": str(BlockReason.CONFLICT)})
    status = ProcessStatus(
        "r0001", "paper", "trading", "host:1:a", 0, last_bars={"A": 0}, last_bar_at=0, blocked=shut
    )
    assert not_ready(status, 0, 3) == ("no symbol may enter: conflicting bars",)
