"""A PostgreSQL that stops and comes back while a worker of the slow loop makes a report.

`alone`: the worker goes on by itself, as the service does. `replaced`: it is frozen with its report in hand,
another takes over after the return, and then the first one tries to write.
"""

import asyncio
import random
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from schemas.errors import StoreError
from schemas.settings import Settings
from services.store import Store, open_store
from tests.postgres.server import Troubled
from tests.worker.slow_worker.prepared import DAY, START, Watched, prepared, resolved
from worker.slow_worker.service import StopSignals, serve
from worker.slow_worker.wiring import threaded_reflection

Stop = Literal["fast", "immediate"]
EPISODES = 1_000
PERIOD_S, LEASE_MS, LONGEST_S = 0.1, 1_000, 60.0
SLOT = START + DAY

# A server dies with the thread that started it, so that thread has to live as long as the process.
_HAND = ThreadPoolExecutor(1)


@dataclass(frozen=True)
class Restart:
    """What is left of one report.

    Attributes:
        states: of all claims.
        written: who wrote a report, under which epoch.
        verdicts: reports that were delivered with a verdict.
        told: what the worker said that ended it.
        frozen: what the one said that was replaced.
        back_s: from the return of the server to the verdict.
    """

    states: list[str]
    written: list[tuple[str, int]]
    verdicts: int
    shown: list[str]
    frozen: list[str]
    back_s: float

    def problems(self) -> list[str]:
        """What does not hold of one report, once."""
        found = []
        if self.states != ["done"]:
            found.append(f"the slot is {self.states}")
        if len(self.written) != 1 or self.verdicts != 1:
            found.append(f"{len(self.written)} reports, {self.verdicts} verdicts")
        return found


async def stored_run(server: Troubled) -> str:
    """A run with the trades of a day, in a store of many runs."""
    episodes = [resolved(n, START + (n + 1) * (DAY // EPISODES)) for n in range(EPISODES)]
    return await prepared(server.url(), episodes)


async def restart(server: Troubled, how: Stop, down_s: float) -> None:
    """Down and up again."""
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(_HAND, server.stop, how)
    await asyncio.sleep(down_s)
    await loop.run_in_executor(_HAND, server.start)


async def alone(
    server: Troubled, how: Stop, *, after_s: float | None = None, lasts_s: float = 0.0, down_s: float = 0.3
) -> Restart:
    """One worker as a service.

    Args:
        server: with its store.
        how: it stops.
        after_s: from the beginning of the report to the stop; None: the report is finished when the server is
            down.
        lasts_s: least time from the beginning of the report to its end.
        down_s: time without a server.
    """
    run_id = await stored_run(server)
    threaded, begun, down = threaded_reflection(Settings()), asyncio.Event(), asyncio.Event()

    async def reflect(request: Any, episodes: Any, definitions: Any) -> Any:
        begun.set()
        lasts = asyncio.create_task(asyncio.sleep(lasts_s))
        report = await threaded(request, episodes, definitions)
        await lasts
        if after_s is None:
            await down.wait()
        return report

    async def trouble() -> float:
        await begun.wait()
        loop = asyncio.get_running_loop()
        await asyncio.sleep(after_s or 0.0)
        await loop.run_in_executor(_HAND, server.stop, how)
        down.set()
        await asyncio.sleep(down_s)
        await loop.run_in_executor(_HAND, server.start)
        return time.perf_counter()

    async with await open_store(server.url(), create=True, timeout_s=2.0) as store:
        one = Watched(store, run_id, reflect=reflect, lease_ms=LEASE_MS, hold_ms=LEASE_MS)
        one.clock.advance(SLOT)
        stop = StopSignals()
        serving = asyncio.create_task(serve(one.worker, stop, one._note, period_s=PERIOD_S))
        back = await trouble()
        await _until_delivered(store, run_id, serving)
        took_s = time.perf_counter() - back
        stop.note_signal(signal.SIGTERM)
        assert await serving == 0
        return await _left(one, [], took_s)


class FrozenWorker(threading.Thread):
    """A worker whose whole event loop stands still while it holds its finished report."""

    def __init__(self, address: str, run_id: str) -> None:
        super().__init__(daemon=True)
        self._address, self._run_id = address, run_id
        self._thaw = threading.Event()
        self.frozen = threading.Event()
        self.looked: bool | None = None
        self.shown: list[str] = []

    def run(self) -> None:
        """One look."""
        asyncio.run(self._look())

    def thaw(self) -> None:
        """Let it go on and wait for its end."""
        self._thaw.set()
        self.join(LONGEST_S)

    async def _look(self) -> None:
        threaded = threaded_reflection(Settings())

        async def reflect(request: Any, episodes: Any, definitions: Any) -> Any:
            report = await threaded(request, episodes, definitions)
            self.frozen.set()
            self._thaw.wait(LONGEST_S)  # the whole loop stands still: no lease is renewed
            return report

        async with await open_store(self._address, create=True, timeout_s=5.0) as store:
            one = Watched(store, self._run_id, reflect=reflect, lease_ms=LEASE_MS, owner="frozen")
            self.looked = await one.look_at(SLOT)
            self.shown = one.names()


async def replaced(server: Troubled, how: Stop) -> Restart:
    """A frozen worker, a restart, a worker that takes over, and the late write of the first."""
    run_id = await stored_run(server)
    first = FrozenWorker(server.url(), run_id)
    first.start()
    await asyncio.to_thread(first.frozen.wait, LONGEST_S)
    await restart(server, how, 0.0)
    back = time.perf_counter()
    async with await open_store(server.url(), create=True, timeout_s=5.0) as store:
        heir = Watched(store, run_id, owner="heir")
        async with asyncio.timeout(LONGEST_S):
            while not await heir.look_at(SLOT):  # noqa: ASYNC110 - the lease runs out by the server's clock
                await asyncio.sleep(PERIOD_S)
        took_s = time.perf_counter() - back
        await asyncio.to_thread(first.thaw)
        assert first.looked is False
        return await _left(heir, first.shown, took_s)


async def _until_delivered(store: Store, run_id: str, serving: "asyncio.Task[int]") -> None:
    async with asyncio.timeout(LONGEST_S):
        while not serving.done():
            with suppress(StoreError):
                if any(report.verdict for report in await store.reports.all(run_id, "slow_loop")):
                    return
            await asyncio.sleep(0.01)
    await serving


async def _left(one: Watched, first: list[str], back_s: float) -> Restart:
    claims, reports = await one.claims(), await one.reports()
    return Restart(
        [claim.state for claim in claims],
        [(report.owner, report.epoch) for report in reports],
        sum(report.verdict is not None for report in reports),
        one.names(),
        first,
        back_s,
    )


def moments(seed: int, count: int, longest_s: float) -> list[float]:
    """Random moments within a report."""
    generator = random.Random(seed)
    return [generator.uniform(0.0, longest_s) for _ in range(count)]
