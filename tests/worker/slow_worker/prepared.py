"""A small store as a trading process leaves it, and a worker over it whose time is given."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

from schemas.canonical import datetime_to_ns
from schemas.settings import HighLevelSettings, Settings
from services.journal.sinks import StoreSink
from services.journal.writer import JournalWriter
from services.store import open_store
from tests.services.high_level.builders import episode
from tests.services.store.stores import new_run
from trading_core.clock import SimulatedClock
from worker.slow_worker.ports import JOB
from worker.slow_worker.slot_runner import RunOfSlots, WorkerContext
from worker.slow_worker.wiring import assemble_worker, new_owner

DAY = 86_400 * 10**9
WEEK = 7 * DAY
START = datetime_to_ns(datetime(2024, 1, 1, tzinfo=UTC))  # a Monday
BARS = {"1h": DAY // 24, "1d": DAY}


def settings(**changes: Any) -> Settings:
    return Settings(high_level=HighLevelSettings(**changes))


def resolved(number: int, known_at: int, timeframe: str = "1h", playbook: str = "mean_reversion") -> Any:
    """A trade that closed at a given time."""
    bar = BARS[timeframe]
    return episode(
        episode_id=f"e{number:05d}",
        playbook_id=playbook,
        timeframe=timeframe,
        entry_label=known_at - bar,
        exit_label=known_at - bar,
        known_at=known_at,
        r=(-0.9, 1.2, 0.3)[number % 3],
    )


async def trade(store: Any, run_id: str, episodes: Any, *, timeframe: str = "1h") -> None:
    """What the trading process journals: its start, and trades that closed."""
    # The engine comes with these; a worker process of a test never trades and does without.
    from services.playbooks.loader import load_playbooks
    from services.playbooks.registry import PlaybookRegistry
    from services.slow_loop.loop_rows import journal_version
    from trading_core.tick_guard import TickGuard

    stored = await store.runs.find(run_id)
    journal = JournalWriter(StoreSink(store.journal, run_id))
    assert stored.events == 0
    genesis = {
        "config_hash": "c" * 64,
        "symbols": ["AAPL"],
        "timeframe": timeframe,
        "label": "open",
        "seed": 0,
    }
    journal.append("genesis", ts_event=START, known_at=START, payload=genesis)
    registry = PlaybookRegistry(load_playbooks(None), TickGuard(), START)
    for version in registry.reader().active():
        journal_version(journal, version, START)
    for shown in episodes:
        journal.append(
            "episode",
            ts_event=shown.known_at,
            known_at=shown.known_at,
            symbol=shown.symbol,
            payload={"episode_id": shown.episode_id, "episode": shown.payload()},
        )
    await journal.flush()


async def prepared(address: str, episodes: Any, *, timeframe: str = "1h") -> str:
    """A store with one traded run; its id."""
    async with await open_store(address, create=True) as store:
        run_id = (await store.runs.create(new_run())).run_id
        await trade(store, run_id, episodes, timeframe=timeframe)
        return run_id


class Watched:
    """A worker with its clock and everything it told."""

    def __init__(self, store: Any, run_id: str, made: Settings | None = None, **wiring: Any) -> None:
        self.store = store
        self.run_id = run_id
        self.clock = SimulatedClock(START)
        self.shown: list[tuple[str, dict[str, Any]]] = []
        run = RunOfSlots(run_id, made or Settings())
        parts = {name: wiring.pop(name) for name in ("reflect", "traded", "models") if name in wiring}
        wiring.setdefault("owner", new_owner())
        self.worker = assemble_worker(WorkerContext(store, run, self.clock, self._note, **wiring), **parts)

    def _note(self, name: str, payload: dict[str, Any]) -> None:
        self.shown.append((name, payload))

    def names(self, *kinds: str) -> list[str]:
        return [name for name, _ in self.shown if not kinds or name in kinds]

    async def look_at(self, now: int) -> bool:
        self.clock.advance(now)
        return await self.worker.look()

    async def claims(self) -> Any:
        return await self.store.claims.all(self.run_id, JOB)

    async def reports(self) -> Any:
        return await self.store.reports.all(self.run_id, JOB)


@asynccontextmanager
async def watched(
    tmp_path: Any, episodes: Any, made: Settings | None = None, *, timeframe="1h", **wiring: Any
):
    address = f"sqlite:///{tmp_path}/store.db"
    run_id = await prepared(address, episodes, timeframe=timeframe)
    async with await open_store(address, create=True) as store:
        yield Watched(store, run_id, made, **wiring)


def played(scenario: Any) -> Any:
    return asyncio.run(scenario)
