"""A live paper run while its PostgreSQL is stopped, killed or frozen: what it did, second by second."""

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from schemas.settings import Settings
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from services.store import Store, open_store
from tests.postgres.server import Troubled
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import Item, RunningFeed, rows_of
from tests.worker.replays import paper_replay
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.live.commit_loop import COMMAND_S
from worker.live.process import PaperProcess
from worker.live.process_inputs import ProcessInputs

PACE_S = 0.05  # real seconds between two rows
ROWS = 4_000
LONGEST_S = 60.0

# A server dies with the thread that started it, so that thread has to live as long as the process.
_HAND = ThreadPoolExecutor(1)
TROUBLES = ("immediate", "fast", "freeze")


def market() -> BarSeries:
    """More rows than any scenario takes."""
    return make_world("reverting", seed=5, bars=ROWS, symbols=1, timeframe="1m")


def news_of(bars: BarSeries) -> list[Item]:
    """Each row with something to journal before it."""
    found: list[Item] = []
    for row in rows_of(bars):
        found += [FeedAnomaly(FeedAnomalyKind.DUPLICATE, bars.symbols[0], row.label, {}), row]
    return found


@dataclass
class Outage:
    """What was seen; times are seconds since the trouble began.

    Attributes:
        rows_meanwhile: rows of bars that were validated while the store was away.
        slowest_row_s: longest time between two rows meanwhile.
        first_error_s: when the process knew; None if it never did.
        blocked_s: when entries were blocked.
        back_s: when the server answered again.
        written_s: first commit after that.
        lost: rows that were acknowledged and are not stored.
        blocked: rows meanwhile on which no entry was allowed.
        problem: of the replay; None when it comes out as it was.
    """

    rows_meanwhile: int = 0
    slowest_row_s: float = 0.0
    first_error_s: float | None = None
    blocked_s: float | None = None
    back_s: float = 0.0
    written_s: float = 0.0
    lost: int = 0
    blocked: int = 0
    problem: str | None = None
    acknowledged: int = 0


class LiveRun:
    """A paper process on a running feed over a server that gets into trouble."""

    def __init__(self, server: Troubled, trouble: str, down_s: float) -> None:
        self._server = server
        self._trouble = trouble
        self._down_s = down_s
        self._bars = market()
        self._seen = Outage()
        self._acknowledged: dict[int, str] = {}
        self._commits: list[float] = []
        self._taken: list[float] = []
        self._shown: list[tuple[float, str]] = []
        self._process: PaperProcess

    async def outage(self, address: str) -> Outage:
        """Trade, get into trouble, come back, stop, and look at what is stored."""
        feed = RunningFeed(self._bars, self._pace, news_of(self._bars))
        async with await open_store(address, create=True, command_s=COMMAND_S) as store:
            self._watch(store)
            self._process = PaperProcess(
                ProcessInputs(
                    Settings(), feed, store, "elsewhere:1:a", NullMonitor(self._note), progress=self._progress
                )
            )
            running = asyncio.create_task(self._process.run("outage"))
            try:
                await self._through(running)
            finally:
                self._process.stop("the test")
                outcome = await running
        async with await open_store(address, create=False) as store:
            stored = {row.seq: row.hash async for row in store.journal.rows(outcome.record.run_id)}
            rows = [row async for row in store.trading.rows(outcome.record.run_id)]
            report = await paper_replay(Settings(), store, outcome.record).compare()
        seen = self._seen
        seen.acknowledged = len(self._acknowledged)
        seen.lost = sum(stored.get(seq) != digest for seq, digest in self._acknowledged.items())
        seen.lost += len(self._taken) - len(rows)
        seen.blocked = sum("safe mode: store_away" in row.blocked.values() for row in rows)
        seen.problem = report.problem
        return seen

    async def _through(self, running: "asyncio.Task[Any]") -> None:
        await self._until(running, lambda: len(self._commits) > 20)
        began = time.perf_counter()
        before = len(self._taken)
        await self._by_hand(self._begin)
        await self._until(running, lambda: time.perf_counter() - began >= self._down_s)
        meanwhile = [began, *self._taken[before:]]
        await self._by_hand(self._end)
        back = time.perf_counter()
        await self._until(running, lambda: self._commits[-1] > back)
        seen = self._seen
        seen.rows_meanwhile = len(meanwhile) - 1
        seen.slowest_row_s = max(b - a for a, b in zip(meanwhile, meanwhile[1:], strict=False))
        seen.first_error_s = self._first("store_away", began)
        seen.blocked_s = self._first("safe_mode", began)
        seen.back_s = back - began
        seen.written_s = next(at for at in self._commits if at > back) - back
        written = len(self._commits)
        await self._until(running, lambda: len(self._commits) > written + 10)

    def _first(self, kind: str, began: float) -> float | None:
        return next((at - began for at, shown in self._shown if shown == kind and at > began), None)

    async def _by_hand(self, what: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(_HAND, what)

    def _begin(self) -> None:
        if self._trouble == "freeze":
            self._server.freeze()
        else:
            self._server.stop("fast" if self._trouble == "fast" else "immediate")

    def _end(self) -> None:
        if self._trouble == "freeze":
            self._server.thaw()
        else:
            self._server.start()

    async def _until(self, running: "asyncio.Task[Any]", holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONGEST_S):
            while not holds():
                if running.done():
                    running.result()
                    raise AssertionError("the run ended before the scenario did")
                await asyncio.wait({running}, timeout=PACE_S / 5)

    def _watch(self, store: Store) -> None:
        trading: Any = store.trading
        commit = trading.commit

        async def watched(lease: Any, run_id: str, bars: Any, rows: Any, closing: Any, counts: Any) -> None:
            await commit(lease, run_id, bars, rows, closing, counts)
            self._commits.append(time.perf_counter())
            self._acknowledged |= {row.seq: row.hash for row in rows}

        trading.commit = watched

    async def _pace(self, number: int) -> None:
        await asyncio.sleep(PACE_S if number % 2 else 0.0)

    def _progress(self, recovered: int, taken: int) -> None:
        self._taken.append(time.perf_counter())

    def _note(self, kind: str, detail: dict[str, Any]) -> None:
        self._shown.append((time.perf_counter(), kind))


def lived(server: Troubled, trouble: str, down_s: float) -> Outage:
    """One trouble on a fresh database of a server."""
    return lived_by(LiveRun(server, trouble, down_s), server, trouble)


def lived_by(run: LiveRun, server: Troubled, trouble: str) -> Outage:
    """A run on a fresh database of a server."""
    name = f"trouble_{trouble}_{time.monotonic_ns()}"

    async def scenario() -> Outage:
        import asyncpg  # type: ignore[import-untyped]  # ships no types

        connection = await asyncpg.connect(server.url())
        await connection.execute(f"CREATE DATABASE {name}")
        await connection.close()
        return await run.outage(server.url(name))

    return asyncio.run(scenario())
