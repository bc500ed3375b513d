"""What it costs to go on with a paper run of minute bars whose process was killed.

`uv run python -m benchmarks.restarts [ROWS ...]` prints the table. A process of its own trades so many rows
and dies as by SIGKILL; another one goes on from its last savepoint, a third one from its first bar, because
the savepoints are deleted. Each is measured from its start to the first row that was not stored before.
"""

import asyncio
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from schemas.settings import Settings
from services.journal.chain import JournalRow
from services.store import open_store
from tools.docs_pages import table
from worker.feeds.replay import ReplayFeed
from worker.feeds.sample_data.worlds import make_world
from worker.live.process import PaperProcess
from worker.live.process_inputs import ProcessInputs
from worker.operations.status import VitalSource
from worker.slow_worker.wiring import new_owner

ROWS = (10_000, 100_000)
SYMBOLS = 1
SEED = 5
DIED = 9


@dataclass(frozen=True)
class Restart:
    """Seconds of a process from its start to its first new row.

    Attributes:
        rows: stored before.
        how: where it went on from.
        played: rows that it played again.
    """

    rows: int
    how: str
    played: int
    wall_s: float
    cpu_s: float


class Quiet:
    """Surroundings of a process that is timed; prints how many rows it has played again."""

    def note(self, kind: str, detail: dict[str, Any]) -> None:
        """Tell of the recovery alone."""
        if kind == "recovered":
            sys.stdout.write(f"{detail['rows_played']}\n")
            sys.stdout.flush()

    def note_stored(self, row: JournalRow) -> None:
        """No person is told."""

    @asynccontextmanager
    async def around(self, source: VitalSource, run_id: str) -> AsyncIterator[None]:
        """Nothing asks."""
        yield


async def trade(path: Path, rows: int, symbols: int) -> None:
    """Go on with the run of a store, or begin it, and die behind row number `rows`."""
    bars = make_world("reverting", seed=SEED, bars=rows + 1, symbols=symbols, timeframe="1m")

    def die(recovered: int, taken: int) -> None:
        if taken and recovered + taken >= rows:
            os._exit(DIED)

    async with await open_store(f"sqlite:///{path}", create=True) as store:
        await PaperProcess(
            ProcessInputs(Settings(), ReplayFeed(bars), store, new_owner(), Quiet(), progress=die)
        ).run("restarts")


def time_restarts(rows: int, symbols: int = SYMBOLS) -> list[Restart]:
    """With the savepoints of the killed process, and without."""
    with tempfile.TemporaryDirectory() as folder:
        path, copy = Path(folder) / "run.db", Path(folder) / "copy.db"
        _process(path, rows, symbols)
        with sqlite3.connect(path) as store:
            store.execute("pragma wal_checkpoint(truncate)")
        shutil.copy(path, copy)
        with sqlite3.connect(copy) as store:
            store.execute("delete from savepoints")
        return [
            replace(_process(kept, rows + 1, symbols), rows=rows, how=how)
            for how, kept in (("last savepoint", path), ("first bar", copy))
        ]


def _process(path: Path, rows: int, symbols: int) -> Restart:
    before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    words = [sys.executable, "-m", "benchmarks.restarts", str(path), str(rows), str(symbols)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    wall, after = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    if done.returncode != DIED:
        raise RuntimeError(done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Restart(rows, "", int(done.stdout or 0), wall, cpu)


def restart_table(found: list[Restart]) -> str:
    """A line for each restart."""
    heads = ("rows stored", "goes on from", "rows played again", "wall, s", "CPU, s")
    rows = [
        (f"{timed.rows:,}", timed.how, f"{timed.played:,}", f"{timed.wall_s:.1f}", f"{timed.cpu_s:.1f}")
        for timed in found
    ]
    return table(heads, rows)


if __name__ == "__main__":
    if sys.argv[1:] and not sys.argv[1].isdecimal():
        asyncio.run(trade(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
    else:
        sizes = [int(text) for text in sys.argv[1:]] or ROWS
        sys.stdout.write(restart_table([timed for rows in sizes for timed in time_restarts(rows)]) + "\n")
