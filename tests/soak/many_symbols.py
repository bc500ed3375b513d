"""L8M: a paper run of sixty symbols on a store, its rows as fast as they go: memory, and time of a row."""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from schemas.settings import Settings
from services.feeds.port import BarRow
from services.store import open_store
from tests.soak.findings import Finding, quantile
from tests.soak.scale import scaled
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import RunningFeed, address
from worker.feeds.sample_data.worlds import make_world
from worker.live.monitor import Monitor
from worker.live.process import PaperProcess
from worker.live.process_inputs import ProcessInputs

SYMBOLS, ROWS, SETTLED, PARTS = 60, 6_000, 12, 6  # memory settles for a twelfth; a sixth is timed at each end
GROWN_MB, SLOWER = 40.0, 1.1
MB, PAGE = 1 << 20, os.sysconf("SC_PAGE_SIZE")
STATM = Path("/proc/self/statm")


@dataclass
class Measured:
    """After each row.

    Attributes:
        memory: MB of the process.
        took_ms: CPU of the trading loop for the row.
        store: bytes of the store's file at the end.
    """

    memory: list[float] = field(default_factory=list)
    took_ms: list[float] = field(default_factory=list)
    store: int = 0


def check() -> list[Finding]:
    """Growth after the first rows, and the slowest rows of the beginning and of the end."""
    rows = scaled(ROWS)
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(traded(Path(folder), rows, SYMBOLS))
        found.store = sum(file.stat().st_size for file in Path(folder).iterdir())
    grown = found.memory[-1] - found.memory[rows // SETTLED]
    first, last = (
        quantile(part, 0.99) for part in (found.took_ms[: rows // PARTS], found.took_ms[-(rows // PARTS) :])
    )
    return [
        Finding(
            "L8M",
            f"{SYMBOLS} symbols, {rows:,} rows of a minute as fast as they go, store on SQLite",
            f"at most {GROWN_MB:.0f} MB more after the first {rows // SETTLED} rows; p99 of the last rows at "
            f"most {SLOWER - 1:.0%} above the first",
            f"memory {found.memory[rows // SETTLED]:.0f} and {found.memory[-1]:.0f} MB; p99 of a row "
            f"{first:.1f} and {last:.1f} ms; the store has {found.store / rows / SYMBOLS:,.0f} bytes a bar",
            grown <= GROWN_MB and last <= SLOWER * first,
        )
    ]


async def traded(
    folder: Path,
    rows: int,
    symbols: int,
    around: Monitor | None = None,
    before: Callable[[int], Coroutine[Any, Any, None]] | None = None,
) -> Measured:
    """A run of a random walk with a store in a folder; `before` waits before each row that counts, from 0."""
    series = make_world("random_walk", seed=1, bars=rows, symbols=symbols, timeframe="1m")
    found = Measured()

    async def between(number: int) -> None:
        if number < 2:  # the process has not begun
            return
        run = process.traded
        if before is not None:
            await before(len(found.took_ms))
        if not found.took_ms:
            vars(run.stepper)["take"] = _timed(run.stepper.take, found.took_ms)
        while run.stepper.session.policy_loop.in_flight or run.stepper.journal.waiting:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        found.memory.append(_memory())

    async with await open_store(address(folder), create=True) as store:
        given = ProcessInputs(
            Settings(), RunningFeed(series, between), store, "host:1:0",
            around or NullMonitor(lambda *_: None),
        )  # fmt: skip
        process = PaperProcess(given)
        await process.run("many symbols")
    return found


def _timed(
    take: Callable[[BarRow], Coroutine[Any, Any, None]], took_ms: list[float]
) -> Callable[[BarRow], Coroutine[Any, Any, None]]:
    """In CPU time: others may use the processor, too."""

    async def timed(row: BarRow) -> None:
        began = time.thread_time()
        await take(row)
        took_ms.append((time.thread_time() - began) * 1e3)

    return timed


def _memory() -> float:
    return int(STATM.read_text("ascii").split()[1]) * PAGE / MB
