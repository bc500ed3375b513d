"""Runs of a store on a slice of the embedded bars, entered in its ledger of trials."""

import asyncio
from pathlib import Path
from typing import Any

from schemas.settings import PolicyLoopSettings, Settings
from services.store import NewRun, Store, open_store
from tests.worker.shared_runs import fewer_bars
from trading_core.bars import BarSeries
from worker.runs.backtest import run_backtest
from worker.runs.store_run import RecordedRun, record_run

SLICE = ("2003-01-01", "2004-07-31")  # beyond the first report


def slice_bars() -> BarSeries:
    return fewer_bars(*SLICE)


def seeded(seed: int) -> Settings:
    """A configuration of its own that decides as every other does."""
    return Settings(seed=seed, policy_loop=PolicyLoopSettings(explore=0.0))  # whose draws are of the seed


def address(folder: Path) -> str:
    return f"sqlite:///{folder}/trials.db"


def stored_run(
    folder: Path, settings: Settings, bars: BarSeries | None = None, *, fresh: bool | None = False
) -> RecordedRun:
    """Run it into the store of a folder."""
    series = bars or slice_bars()
    data: dict[str, Any] = {"source": "embedded", "path": None, "sha256": series.sha256}
    data |= {"symbols": list(series.symbols), "timeframe": series.timeframe, "bars": series.bar_count}
    new = NewRun("test", 0, "backtest", settings.config_hash, settings.payload(), data, {})

    async def scenario() -> RecordedRun:
        async with await open_store(address(folder), create=True) as store:
            return await record_run(run_backtest, settings, series, store, new, fresh_ledger=fresh)

    return asyncio.run(scenario())


def read_requests(folder: Path, ask: Any) -> Any:
    """An answer of the store."""

    async def opened() -> Any:
        async with await open_store(address(folder), create=True) as store:
            return await ask(store)

    return asyncio.run(opened())


async def rows_of(store: Store, run_id: str, *kinds: str) -> list[Any]:
    return [row async for row in store.journal.rows(run_id, kinds=kinds or None)]
