"""L8: a simulated day on a real SQLite store; tasks, threads and file handles are counted every hour."""

import asyncio
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.soak.findings import Finding
from tests.soak.scale import scaled
from tests.worker.live.memory_store import nobody_minds
from tests.worker.live.simulated import World
from tests.worker.live.virtual_time import run_virtually

SEED = 4
SETTLED = 2
HANDLES = Path("/proc/self/fd")


class Counted(World):
    """A world without deaths that counts whenever its process says how it is."""

    def __init__(self, days: float, folder: Path) -> None:
        super().__init__(SEED, days, 0, folder)
        self.counts: list[tuple[int, int, int]] = []

    @asynccontextmanager
    async def _store(self, gate: Callable[[str], None] = nobody_minds) -> AsyncIterator[Any]:
        def counting(what: str) -> None:
            if what == "say":
                tasks, handles = len(asyncio.all_tasks()), len(os.listdir(HANDLES))
                self.counts.append((tasks, threading.active_count(), handles))
            gate(what)

        async with super()._store(counting) as store:
            yield store


def check() -> list[Finding]:
    """The first half against the second."""
    with tempfile.TemporaryDirectory() as folder:
        world = Counted(max(0.25, scaled(100) / 100), Path(folder))
        run_virtually(world.live())
    settled = world.counts[SETTLED:]  # the pool of connections fills up first
    half = len(settled) // 2
    first = [max(column) for column in zip(*settled[:half], strict=True)]
    last = [max(column) for column in zip(*settled[half:], strict=True)]
    text = ", ".join(
        f"{name} {before} and {after}"
        for name, before, after in zip(("tasks", "threads", "file handles"), first, last, strict=True)
    )
    return [
        Finding(
            "L8",
            f"{world.series.shape[0] / 60:.0f} simulated hours on SQLite with outages, counted every hour",
            "no growth of tasks, threads or file handles",
            f"most in the first and in the second half: {text}",
            all(after <= before for before, after in zip(first, last, strict=True)),
        )
    ]
