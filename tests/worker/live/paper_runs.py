"""Paper runs for the tests: a feed that runs on, stores in memory of the test, and processes that die."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from schemas.settings import Settings
from services.feeds.port import BarRow, FeedAnomaly
from services.store import Store, open_store
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.replays import paper_replay
from trading_core.bars import COLUMNS, BarSeries
from trading_core.live.growing_bars import Bar
from worker.feeds.replay import ReplayFeed
from worker.live.process import PaperOutcome, PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.runs.replay import ReplayReport

Item = BarRow | FeedAnomaly


class Killed(BaseException):
    """The process ends here, as by SIGKILL: nothing that handles errors may see it."""


class KillAt:
    """Ends the process when a crash point is reached for the n-th time."""

    def __init__(self, point: str, time: int) -> None:
        self._point = point
        self._left = time

    def reach(self, point: str) -> None:
        """Count, and end the process when it is time."""
        if point == self._point:
            self._left -= 1
            if self._left == 0:
                raise Killed(point)


def rows_of(bars: BarSeries) -> list[BarRow]:
    """The rows of a series."""
    found = []
    for t in range(bars.shape[0]):
        present = {
            symbol: Bar(*(float(getattr(bars, name)[t, s]) for name in COLUMNS))
            for s, symbol in enumerate(bars.symbols)
            if bars.present[t, s]
        }
        found.append(BarRow(int(bars.times[t]), present))
    return found


class RunningFeed:
    """A feed that does not wait: rows come whether or not anybody has thought about the last ones.

    Args:
        bars: what it hands over.
        between: awaited before each item with its number; None hands everything over at once.
        items: what it hands over instead of the rows of `bars`.
    """

    name = "running"
    lock_step = False

    def __init__(
        self,
        bars: BarSeries,
        between: Callable[[int], Awaitable[None]] | None = None,
        items: list[Item] | None = None,
    ) -> None:
        self._bars = bars
        self._between = between
        self._items: list[Item] = list(rows_of(bars)) if items is None else items

    @property
    def symbols(self) -> tuple[str, ...]:
        return self._bars.symbols

    @property
    def timeframe(self) -> str:
        return self._bars.timeframe

    @property
    def label(self) -> Literal["open", "close"]:
        return self._bars.label

    async def items(self, after: int | None) -> AsyncIterator[Item]:
        """Items behind the row with label `after`."""
        begun = after is None
        for number, item in enumerate(self._items):
            if begun:
                if self._between is not None:
                    await self._between(number)
                yield item
            begun = begun or (isinstance(item, BarRow) and item.label == after)

    def last_labels(self) -> dict[str, int]:
        return {}

    async def close(self) -> None:
        """Nothing to give back."""


def waiting_feed(bars: BarSeries) -> ReplayFeed:
    """A feed in lock-step."""
    return ReplayFeed(bars)


def address(folder: Path | str) -> str:
    """The store of a test: in a folder, or at an address."""
    return folder if isinstance(folder, str) else f"sqlite:///{folder}/paper.db"


async def process_in(
    store: Store, settings: Settings, feed: Any, shown: list[tuple[str, dict[str, Any]]], **named: Any
) -> PaperOutcome:
    """One process over an open store."""

    def note(kind: str, detail: dict[str, Any]) -> None:
        shown.append((kind, detail))

    process = PaperProcess(
        ProcessInputs(settings, feed, store, f"host:1:{len(shown)}", NullMonitor(note), **named)
    )
    return await process.run("test")


def traded(folder: Path, settings: Settings, feed: Any, **named: Any) -> PaperOutcome:
    """A process of its own event loop, from open to close."""

    async def run() -> PaperOutcome:
        async with await open_store(address(folder), create=True) as store:
            return await process_in(store, settings, feed, [], **named)

    return asyncio.run(run())


def killed(folder: Path, settings: Settings, feed: Any, point: str, time: int) -> bool:
    """Trade and die at the n-th time that a crash point is reached; False if the feed ended before."""
    try:
        traded(folder, settings, feed, points=KillAt(point, time))
    except Killed:
        return True
    return False


def read_requests(folder: Path | str, ask: Callable[[Store], Awaitable[Any]]) -> Any:
    """An answer of the store."""

    async def run() -> Any:
        async with await open_store(address(folder), create=False) as store:
            return await ask(store)

    return asyncio.run(run())


def rows_stored(folder: Path | str, run_id: str = "latest", *kinds: str) -> list[Any]:
    """Journal rows of a run."""

    async def read(store: Store) -> list[Any]:
        record = await store.runs.find(run_id)
        return [row async for row in store.journal.rows(record.run_id, kinds=kinds or None)]

    found: list[Any] = read_requests(folder, read)
    return found


def replayed(folder: Path | str, settings: Settings, **named: Any) -> ReplayReport:
    """The newest run, played again from what it took in."""

    async def play(store: Store) -> ReplayReport:
        return await paper_replay(settings, store, await store.runs.find("latest"), **named).compare()

    report: ReplayReport = read_requests(folder, play)
    return report
