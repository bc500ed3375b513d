"""How often an ablation says something where there is nothing to say: `python -m benchmarks.ablation_worlds`.

Every world is a random walk, so no veto can know anything. Without costs no tier is worth anything, and any
answer but `unknown` is wrong. With costs whoever trades less loses less, so a tier may earn more than no
tier at all; to call it `helped` is wrong all the same, because a coin at its rate earns that too. Whole
ablations are run, engine and all; the stated level is shared by the comparisons of one ablation.
"""

import argparse
import asyncio
import tempfile
import time
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from schemas.settings import ExecutionSettings, Settings
from services.playbooks.loader import load_playbooks
from services.statistics.paired import ALPHA
from services.store import NewRun, open_store
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.studies.ablation.refused_plans import shadow_ledger
from worker.studies.ablation.runner import MODE, AblationRunner
from worker.studies.ablation.worth import worth_document

COSTS = {"no costs": ExecutionSettings(fee_bps=0.0, slippage_bps=0.0), "usual costs": ExecutionSettings()}
BARS, SYMBOLS, SEEDS = 1_500, 3, 5


async def ablate(bars: BarSeries, settings: Settings, url: str) -> dict[str, Any]:
    """The document of one ablation."""

    def new_run(arm: Settings, name: str) -> NewRun:
        return NewRun(name, time.time_ns(), MODE, arm.config_hash, arm.payload(), {}, {})

    async with await open_store(url, create=True) as store:
        runner = AblationRunner(
            settings,
            bars,
            load_playbooks(None),
            store,
            new_run,
            lambda title: nullcontext(lambda done, rows: None),
        )
        found = await runner.run(SEEDS)
        ledger = await shadow_ledger(found, store, bars, settings)
    return worth_document(found, ledger, bars.timeframe, settings.seed, settings.gate)


def count_answers(
    execution: ExecutionSettings, runs: int, first: int
) -> tuple[Counter[str], Counter[str], int]:
    """Answers by tier, what the shadow ledgers said, and ablations in which any tier was helped or hurt."""
    answers: Counter[str] = Counter()
    papers: Counter[str] = Counter()
    shown = 0
    for seed in range(first, first + runs):
        world = make_world("random_walk", seed=seed, bars=BARS, symbols=SYMBOLS)
        with tempfile.TemporaryDirectory() as folder:
            url = f"sqlite:///{Path(folder) / 'a.db'}"
            document = asyncio.run(ablate(world, Settings(execution=execution), url))
        found = {tier["tier"]: tier["answer"] for tier in document["tiers"] if tier["answer"] is not None}
        answers.update(f"{tier}: {answer}" for tier, answer in found.items())
        papers.update(row["answer"] for row in document["shadow_ledger"])
        shown += any(answer in ("helped", "hurt") for answer in found.values())
    return answers, papers, shown


def main() -> None:
    """Print both kinds of world."""
    parser = argparse.ArgumentParser(description="Answers of ablations on random walks.")
    parser.add_argument("--runs", type=int, default=20, help="worlds of each kind")
    parser.add_argument("--seed", type=int, default=1_000, help="first seed of the worlds")
    given = parser.parse_args()
    for name, execution in COSTS.items():
        answers, papers, shown = count_answers(execution, given.runs, given.seed)
        print(f"{name}: helped or hurt in {shown} of {given.runs} ablations, stated level {ALPHA:.0%}")
        for answer, count in sorted(answers.items()):
            print(f"  {answer}: {count}")
        print(f"  groups of the shadow ledger: {dict(sorted(papers.items()))}")


if __name__ == "__main__":
    main()
