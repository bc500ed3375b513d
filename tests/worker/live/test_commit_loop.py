"""CommitLoop beside the bars: whoever asks for it at once, each row is stored once and none is dropped."""

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.errors import StoreError
from schemas.settings import Settings
from services.feeds.port import BarRow
from services.journal.chain import JournalRow
from services.journal.writer import JournalWriter
from services.store.records import Closing
from services.store.repository import Lease
from tests.worker.live.memory_store import MemoryStore
from tests.worker.live.virtual_time import run_virtually
from trading_core.live.growing_bars import Bar
from worker.live import commit_loop as looping
from worker.live import committer as keeping
from worker.live.commit_loop import PATIENCE_S, CommitLoop
from worker.live.committer import BarCommitter
from worker.live.process_inputs import ProcessInputs

BAR = {"X": Bar(1.0, 1.0, 1.0, 1.0, 1.0)}


class SlowStore:
    """Takes a second for each commit; the first `failures` fail after it, having stored everything."""

    def __init__(self, failures: int = 0) -> None:
        self.rows: list[JournalRow] = []
        self.bars: list[tuple[int, BarRow]] = []
        self.closings: list[Closing] = []
        self.trading: Any = self
        self._failures = failures

    async def commit(
        self, lease: Lease, run_id: str, bars: Any, rows: Any, closing: Any = None, counts: Any = None
    ) -> None:
        await asyncio.sleep(1.0)
        self.rows += [row for row in rows if row.seq >= len(self.rows)]
        self.bars += [bar for bar in bars if bar[0] >= len(self.bars)]
        self.closings += [closing] if closing is not None else []
        assert [row.seq for row in self.rows] == list(range(len(self.rows))), "a gap"
        if self._failures:
            self._failures -= 1
            raise StoreError("committed, and nobody said so", retryable=True)


class Kept:
    """A journal, a committer and a committing over a slow store."""

    def __init__(self, store: SlowStore, shown: Callable[[JournalRow], None] = lambda row: None) -> None:
        around: Any = SimpleNamespace(note_stored=shown)
        inputs = ProcessInputs(Settings(), None, store, "me", around)  # type: ignore[arg-type]
        committer = BarCommitter(inputs, "r0001")
        committer.lease = Lease("trading/r0001", "me", 1, 0)
        self.committer = committer
        self.journal = JournalWriter(committer)
        self.shown: list[str] = []
        self.committing = CommitLoop(self.journal, committer, lambda kind, detail: self.shown.append(kind))
        self.taken = 0

    def row(self) -> None:
        """One row of bars with one row of the journal."""
        self.committer.bar(self.taken, BarRow(self.taken, BAR))
        self.journal.append("policy_skip", ts_event=0, known_at=0, payload={"row": self.taken})
        self.taken += 1
        self.committing.wake()


def test_two_commits_at_once_drop_nothing_that_came_between_them() -> None:
    store = SlowStore()

    async def scenario() -> int:
        kept = Kept(store)
        kept.row()
        await asyncio.sleep(0.5)  # the task beside the bars is in the middle of its flush
        kept.row()
        command = asyncio.create_task(kept.committing.commit())
        await asyncio.sleep(0.7)  # and the first of the two is over when more comes
        kept.row()
        kept.row()
        await command
        await kept.committing.commit()
        await kept.committing.close()
        return kept.journal.waiting + kept.committer.waiting

    assert run_virtually(scenario()) == 0
    assert [number for number, _ in store.bars] == [0, 1, 2, 3]
    assert [row.seq for row in store.rows] == [0, 1, 2, 3]


def test_run_that_is_closed_during_a_commit_is_closed_by_the_next_one() -> None:
    store, closing = SlowStore(), Closing("finished", None)

    async def scenario() -> bool:
        kept = Kept(store)
        kept.row()
        await asyncio.sleep(0.5)  # the task beside the bars is in the middle of its commit
        kept.committer.close(closing)
        kept.row()
        await kept.committing.commit()
        await kept.committing.close()
        return kept.committer.closing

    assert not run_virtually(scenario())
    assert store.closings == [closing]


def test_commits_whose_answer_is_lost_are_stored_once() -> None:
    store = SlowStore(failures=3)

    async def scenario() -> tuple[int, int]:
        kept = Kept(store)
        for _ in range(5):
            kept.row()
            await asyncio.sleep(0.4)
        await kept.committing.commit()
        await kept.committing.close()
        return kept.committing.failures, kept.journal.waiting + kept.committer.waiting

    assert run_virtually(scenario()) == (3, 0)
    assert [number for number, _ in store.bars] == [0, 1, 2, 3, 4]


def test_news_of_a_row_is_told_after_its_commit_and_not_for_one_that_fails() -> None:
    store, shown = SlowStore(failures=1), []

    def heard(row: JournalRow) -> None:
        shown.append((row.seq, asyncio.get_running_loop().time()))
        assert [entry.seq for entry in store.rows][row.seq] == row.seq, "told before it was stored"

    async def scenario() -> None:
        kept = Kept(store, heard)
        kept.row()
        await kept.committing.commit()
        await kept.committing.close()

    run_virtually(scenario())
    assert [seq for seq, _ in shown] == [0]
    assert shown[0][1] >= 2.0, "the first answer was lost: nobody could know"


class HungStore(SlowStore):
    """Says nothing, neither yes nor no, until somebody lets go of it."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()

    async def commit(
        self, lease: Lease, run_id: str, bars: Any, rows: Any, closing: Any = None, counts: Any = None
    ) -> None:
        await self.let_go.wait()
        await super().commit(lease, run_id, bars, rows)


def virtually(monkeypatch: pytest.MonkeyPatch, scenario: Callable[[], Awaitable[Any]]) -> Any:
    """What a scenario finds on a clock that only the loop moves."""

    async def timed() -> Any:
        for module in (keeping, looping):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=asyncio.get_running_loop().time))
        return await scenario()

    return run_virtually(timed())


def test_store_that_hangs_is_told_when_patience_ends_and_back_after_as_long(monkeypatch) -> None:
    async def scenario() -> tuple[list[bool], int, list[str]]:
        store = HungStore()
        kept = Kept(store)
        seen = [kept.committing.weigh()]
        kept.row()
        for wait_s in (PATIENCE_S - 0.1, 0.2):
            await asyncio.sleep(wait_s)
            seen.append(kept.committing.weigh())
        kept.row()
        failures = kept.committing.failures
        store.let_go.set()
        for wait_s in (PATIENCE_S, 2.0):  # both commits take a second
            await asyncio.sleep(wait_s)
            kept.committing.answers()
            seen.append(kept.committing.weigh())
        await kept.committing.close()
        return seen, failures, kept.shown

    seen, failures, shown = virtually(monkeypatch, scenario)
    assert seen == [False, False, True, True, False]
    assert failures == 0, "nothing but its silence says so"
    assert shown == ["store_away", "store_back"]


class FalteringStore(SlowStore):
    """Each commit takes `takes_s` until it is sound; with `fails` every other one fails."""

    def __init__(self, takes_s: float, fails: bool) -> None:
        super().__init__()
        self.sound, self._takes_s, self._fails, self._number = False, takes_s, fails, 0

    async def commit(
        self, lease: Lease, run_id: str, bars: Any, rows: Any, closing: Any = None, counts: Any = None
    ) -> None:
        await asyncio.sleep(0.0 if self.sound else self._takes_s)
        self._number += 1
        if self._fails and not self.sound and self._number % 2:
            raise StoreError("away", retryable=True)


@pytest.mark.parametrize(
    ("takes_s", "fails"), [(0.1, True), (PATIENCE_S + 1.2, False)], ids=["fails", "slow"]
)
def test_store_that_falters_within_its_patience_is_told_away_once_and_back_once(
    monkeypatch, takes_s, fails
) -> None:
    async def scenario() -> tuple[list[bool], list[str]]:
        store = FalteringStore(takes_s, fails)
        kept, seen = Kept(store), []
        for second in range(60):
            store.sound = second >= 40
            kept.row()
            for _ in range(2):  # as often as the process polls
                await asyncio.sleep(0.5)
                kept.committing.answers()
                seen.append(kept.committing.weigh())
        await kept.committing.close()
        return seen, kept.shown

    seen, shown = virtually(monkeypatch, scenario)
    assert shown == ["store_away", "store_back"]
    changes = [after for before, after in zip([False, *seen], seen, strict=False) if before != after]
    assert changes == [True, False]


def test_store_in_memory_refuses_a_writer_whose_lease_was_taken_over() -> None:
    async def scenario() -> tuple[int, int]:
        store = MemoryStore().opened()
        first = await store.leases.take("one", "a", 1_000)
        assert await store.leases.take("one", "b", 1_000) is None
        await asyncio.sleep(2.0)
        second = await store.leases.take("one", "b", 1_000)
        assert first is not None
        assert second is not None
        return first.epoch, second.epoch

    assert run_virtually(scenario()) == (1, 2)
