"""A store with a run of the planted world, beyond the bar at which the judge replans."""

import asyncio
from functools import cache, partial
from pathlib import Path
from typing import Any

from schemas.settings import JudgeSettings, Settings
from services.playbooks.loader import load_playbooks
from services.store import NewRun, open_store
from tests.worker.shared_runs import losing_settings
from tests.worker.trading_hours import in_trading_hours
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.runs.backtest import run_backtest
from worker.runs.store_run import record_run
from worker.studies.scenarios import PLANTED

BARS = 1_100
UNPROVEN = JudgeSettings(promotion_minimum_trades=10_000)  # paper trades prove nothing, experiments stay open


@cache
def world(bars: int = BARS) -> BarSeries:
    return in_trading_hours(make_world("reverting", seed=2, bars=bars, symbols=6))


@cache
def definitions() -> tuple[Any, ...]:
    others = [
        playbook for playbook in load_playbooks(None) if playbook.id in ("channel_breakout", "mean_reversion")
    ]
    return (*load_playbooks(PLANTED), *others)


def new_planted(settings: Settings, many: int = BARS) -> NewRun:
    bars = world(many)
    data: dict[str, Any] = {"source": "file", "path": None, "sha256": bars.sha256, "symbols": [*bars.symbols]}
    data |= {"timeframe": bars.timeframe, "label": bars.label, "bars": bars.bar_count}
    return NewRun("planted", 0, "backtest", settings.config_hash, settings.payload(), data, {})


def store_planted(path: Path, settings: Settings | None = None, bars: int = BARS) -> None:
    """Run it into a new store."""
    made = settings or losing_settings(UNPROVEN)

    async def scenario() -> None:
        async with await open_store(f"sqlite:///{path}", create=True) as store:
            run = partial(run_backtest, definitions=definitions())
            await record_run(
                lambda *given, **_: run(*given), made, world(bars), store, new_planted(made, bars)
            )

    asyncio.run(scenario())
