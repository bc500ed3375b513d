"""An ablation from its first arm to its document: what the command prints, and what a script gets."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from trading_core.bars import BarSeries
from worker.feeds.selected_bars import describe
from worker.runs.store_run import Progress, new_run
from worker.studies.ablation.refused_plans import shadow_ledger
from worker.studies.ablation.runner import MODE, AblationRunner
from worker.studies.ablation.worth import worth_document

if TYPE_CHECKING:
    from services.store import NewRun, Store

Watched = Callable[[str], AbstractContextManager[Progress]]


async def measured_worth(
    settings: Settings,
    bars: BarSeries,
    definitions: Sequence[PlaybookDefinition],
    store: "Store",
    watched: Watched,
    *,
    name: str,
    seeds: int,
    keep_all: bool = False,
) -> dict[str, Any]:
    """The document of an ablation, every arm a run in the store.

    Args:
        settings: the configuration in force.
        bars: of every arm.
        definitions: playbooks of every arm.
        store: takes the runs.
        watched: a progress bar with a title.
        name: of the runs, before that of the arm.
        seeds: runs of the coin.
        keep_all: whether the run of every seed is stored; else only that of the first.
    """

    def of_arm(arm: Settings, arm_name: str) -> "NewRun":
        return new_run(arm, f"{name}: {arm_name}", MODE, describe(bars, arm))

    runner = AblationRunner(settings, bars, definitions, store, of_arm, watched, keep_all)
    ablation = await runner.run(seeds)
    ledger = await shadow_ledger(ablation, store, bars, settings)
    worth = worth_document(ablation, ledger, bars.timeframe, settings.seed, settings.gate)
    return {"data": describe(bars, settings)} | worth
