"""Worlds in which the fast reflection's veto is right, wrong, or beside the point, by construction.

In the `reverting` world whoever buys strength loses and whoever buys weakness wins. Two playbooks do one of
them each, and one of the two promises too little reward for its risk, which is what the reflection refuses.
Each is eligible in a trend of its own, so that no other takes the place of a refused one.
"""

import asyncio
import time
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from schemas.playbook import PlaybookDefinition
from schemas.settings import EnvelopeSettings, ExecutionSettings, ReflectionSettings, Settings
from services.playbooks.loader import load_playbooks
from services.store import NewRun, open_store
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.studies.ablation.refused_plans import shadow_ledger
from worker.studies.ablation.runner import Ablation, AblationRunner
from worker.studies.ablation.worth import worth_document
from worker.studies.scenarios import PLANTED

Veto = Literal["right", "wrong", "random"]
SEEDS = 2
STINGY, FAIR = 0.7, 1.2  # reward over risk; the reflection asks for 0.8


def settings() -> Settings:
    """Nothing but the reward check may refuse a plan, and no envelope cuts a losing arm short."""
    return Settings(
        envelope=EnvelopeSettings(max_drawdown=0.9, max_daily_loss=0.5, max_consecutive_losses=10_000),
        reflection=ReflectionSettings(conviction_tolerance=1.0),
        execution=ExecutionSettings(fee_bps=0.0, slippage_bps=0.0),
    )


def playbook(name: str, side: float, reward: float, trend: str) -> PlaybookDefinition:
    """Buys strength (side 1) or weakness (side -1) in one trend, with a target at `reward` times the risk."""
    (found,) = load_playbooks(PLANTED)
    payload = found.payload()
    payload["id"], payload["title"] = name, name
    payload["parameters"]["side"]["value"] = side
    rules = payload["rules"]["long"]
    rules["target"] = f"close + {reward} * (close - ({rules['stop']}))"
    eligibility = payload["eligibility"]["long"]
    eligibility["trend"] = [trend]
    eligibility["structure"] = ["neutral", "compression", "expansion", "mean_reverting"]
    return PlaybookDefinition.model_validate(payload)


def books(veto: Veto) -> tuple[PlaybookDefinition, ...]:
    """The loser is refused when the veto is right, the winner when it is wrong."""
    loser, winner = (STINGY, FAIR) if veto == "right" else (FAIR, STINGY)
    return playbook("buys_strength", 1.0, loser, "up"), playbook("buys_weakness", -1.0, winner, "sideways")


def run(
    bars: BarSeries, base: Settings, definitions: Any, url: str, seeds: int = SEEDS
) -> tuple[Ablation, dict[str, Any]]:
    """An ablation over bars with its document."""

    def new_run(arm: Settings, name: str) -> NewRun:
        data = {"sha256": bars.sha256, "path": None, "symbols": list(bars.symbols)}
        return NewRun(name, time.time_ns(), "ablation", arm.config_hash, arm.payload(), data, {})

    async def running() -> tuple[Ablation, dict[str, Any]]:
        async with await open_store(url, create=True) as store:
            runner = AblationRunner(
                base, bars, definitions, store, new_run, lambda title: nullcontext(lambda done, total: None)
            )
            found = await runner.run(seeds)
            ledger = await shadow_ledger(found, store, bars, base)
        return found, worth_document(found, ledger, bars.timeframe, base.seed, base.gate)

    return asyncio.run(running())


@cache
def planted(veto: Veto) -> tuple[Ablation, dict[str, Any]]:
    """The ablation of one planted world."""
    kind: Any = "random_walk" if veto == "random" else "reverting"
    bars, symbols = {"right": (1_800, 5), "wrong": (1_200, 5), "random": (1_000, 4)}[veto]
    world = make_world(kind, seed=5, bars=bars, symbols=symbols)
    with TemporaryDirectory() as folder:
        return run(world, settings(), books(veto), f"sqlite:///{Path(folder) / 'a.db'}")
