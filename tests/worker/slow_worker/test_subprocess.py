"""Looks of the slow loop in a process of its own: nothing is computed where bars are taken."""

import asyncio
import json
import os
import signal
import sys
from contextlib import asynccontextmanager
from typing import Any

import pytest

from schemas.errors import StoreError
from schemas.settings import RuntimeSettings, Settings
from services.high_level_reflection_service import HighLevelReflectionService
from services.slow_loop.loop_facts import LoopFacts
from services.store import open_store
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.slow_worker.batches import looking_job, prepared_batch
from trading_core.clock import SimulatedClock
from worker.live.with_slow_loop import WithSlowLoop
from worker.operations.status import ProcessStatus
from worker.slow_worker.ports import JOB
from worker.slow_worker.service import StopSignals, serve
from worker.slow_worker.slot_runner import MOST_ATTEMPTS
from worker.slow_worker.subprocess import ChildExited, SlowLoopSubprocess
from worker.slow_worker.subprocess_main import ChildJob

EPISODES = 1_000
NOBODY = ChildJob("sqlite:////absent/store.db", "r0001", {}, "host:1:a", 1_000)


class Shown:
    """What was noted, and a way to wait for it."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self._more = asyncio.Condition()
        self._tasks: set[asyncio.Task[None]] = set()
        self.hook: Any = lambda kind: None

    def note(self, kind: str, detail: dict[str, Any]) -> None:
        self.events.append((kind, detail))
        self.hook(kind)
        shown = asyncio.create_task(self._tell())
        self._tasks.add(shown)
        shown.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        async with self._more:
            self._more.notify_all()

    async def until(self, kind: str) -> dict[str, Any]:
        async with self._more, asyncio.timeout(240.0):
            await self._more.wait_for(lambda: kind in self.kinds())
        return dict(self.events)[kind]

    def kinds(self, *wanted: str) -> list[str]:
        return [kind for kind, _ in self.events if not wanted or kind in wanted]


class Source:
    """A trading loop that says nothing."""

    def status(self) -> ProcessStatus:
        return ProcessStatus("r0001", "paper", "trading", "host:1:a", 0)


@pytest.fixture
def nothing_computed_here(monkeypatch):
    """Whoever reflects, or reads a journal for it, in this process, fails."""

    def refused(*_: Any, **__: Any) -> None:
        raise AssertionError("this belongs into another process")

    for owner, name in ((HighLevelReflectionService, "reflect"), (LoopFacts, "add")):
        monkeypatch.setattr(owner, name, refused)


def test_report_for_a_live_run_is_computed_in_another_process(tmp_path, nothing_computed_here) -> None:
    address = f"sqlite:///{tmp_path}/batch.db"

    async def play() -> Any:
        run_id, slot = await prepared_batch(address, EPISODES)
        message, died = Shown(), list[str]()
        settings = Settings(runtime=RuntimeSettings(db=address))
        async with await open_store(address, create=False) as store:
            other = WithSlowLoop(
                NullMonitor(message.note), store, settings, "host:1:a", 0.1, died.append, SimulatedClock(slot)
            )
            async with other.around(Source(), run_id):
                written = await message.until("report_written")
            held = await store.leases.holder(f"{JOB}/{run_id}")
            return written, await store.reports.all(run_id, JOB), held, message, died

    written, reports, held, shown, died = asyncio.run(play())
    assert written["episodes"] == EPISODES
    assert [report.report.n_episodes for report in reports] == [EPISODES]
    assert reports[0].delivery == "waiting", "the process that trades asks the judge"
    assert shown.kinds("slot_failed", "worker_died", "look_failed") == []
    assert died == []
    assert held is None or held.until_ms == 0, "released at the end"
    assert shown.kinds()[-3:] == ["stopping", "lease_released", "stopped"]


def _ended(looks: SlowLoopSubprocess, signum: signal.Signals) -> None:
    assert looks.pid is not None
    os.kill(looks.pid, signum)


def test_looking_process_that_is_killed_within_a_report_is_replaced_and_the_report_comes_once(tmp_path):
    address = f"sqlite:///{tmp_path}/batch.db"

    async def play() -> Any:
        run_id, slot = await prepared_batch(address, EPISODES)
        message = Shown()
        looks = SlowLoopSubprocess(looking_job(address, run_id), SimulatedClock(slot), message.note)
        message.hook = lambda kind: _ended(looks, signal.SIGKILL) if kind == "slot_claimed" else None
        with pytest.raises(ChildExited, match="ended with -9") as died:
            await looks.look()
        gone, message.hook = looks.pid, lambda kind: None
        looked = await looks.look()
        _ended(looks, signal.SIGTERM)  # meant for the process that trades
        looked &= await looks.look()
        await looks.close()
        async with await open_store(address, create=False) as store:
            return died.value.retryable, gone, looked, message, await store.reports.all(run_id, JOB)

    retryable, gone, looked, shown, reports = asyncio.run(play())
    assert (retryable, gone, looked) == (True, None, True)
    assert shown.kinds("slot_claimed", "slot_resumed", "report_written") == [
        "slot_claimed", "slot_resumed", "report_written",
    ]  # fmt: skip
    assert len(reports) == 1


def saying(*lines: dict[str, Any], last: str = "") -> tuple[str, ...]:
    """A process that answers each look with the next line, then ends."""
    texts = [json.dumps(line) for line in lines]
    code = f"input()\nfor text in {texts!r}: input(); print(text, flush=True)\n{last}"
    return (sys.executable, "-c", code)


@asynccontextmanager
async def looking(command: tuple[str, ...], shown: Shown):
    looks = SlowLoopSubprocess(NOBODY, SimulatedClock(0), shown.note, command)
    try:
        yield looks
    finally:
        await looks.close()


def test_store_that_is_away_there_is_a_store_error_here() -> None:
    async def play() -> Any:
        async with looking(saying({"failed": "away", "retryable": True}, {"looked": True}), Shown()) as looks:
            with pytest.raises(StoreError, match="away") as failed:
                await looks.look()
            return failed.value.retryable, await looks.look()

    assert asyncio.run(play()) == (True, True)


def test_looking_process_that_cannot_live_ends_the_worker_with_its_last_words() -> None:
    async def play() -> Any:
        message, stop = Shown(), StopSignals()
        async with looking(
            (sys.executable, "-c", "import sys; sys.exit('no such module')"), message
        ) as looks:
            with pytest.raises(ChildExited, match="no such module") as died:
                await serve(looks, stop, message.note, period_s=0.01)
            return died.value, message

    died, shown = asyncio.run(play())
    assert not died.retryable
    assert shown.kinds("look_failed") == ["look_failed"] * MOST_ATTEMPTS
    assert f"{MOST_ATTEMPTS + 1} times in a row" in str(died)


def test_look_that_is_broken_off_takes_its_process_with_it() -> None:
    async def play() -> Any:
        shown, started = Shown(), asyncio.Event()
        shown.hook = lambda kind: started.set()
        command = saying({"note": ["begun", {}]}, last="input()")
        async with looking(command, shown) as looks:
            look = asyncio.create_task(looks.look())
            await started.wait()
            process = looks._process
            look.cancel()
            await asyncio.wait({look})
            return look.cancelled(), await process.wait(), looks.pid

    assert asyncio.run(play()) == (True, -signal.SIGKILL, None)
