"""The shadow ledger of an ablation, from the journals of its stored arms."""

from typing import TYPE_CHECKING

from schemas.settings import Settings
from trading_core.bars import BarSeries
from worker.runs.sifted_bars import sifted_bars
from worker.studies.ablation.arms import Arm
from worker.studies.ablation.refused_plans import (
    KINDS,
    PaperTrader,
    PaperTrades,
    banned_trades,
    refused_plans,
)
from worker.studies.ablation.runner import Ablation

if TYPE_CHECKING:
    from services.store import Store


async def shadow_ledger(
    ablation: Ablation, store: "Store", bars: BarSeries, settings: Settings
) -> list[PaperTrades]:
    """What the fast reflection refused when it was alone, and what the slow loop banned when it was on.

    Plans are traded on the bars that the arms traded: bars in doubt are left out as they were there.
    """
    bars = sifted_bars(bars, settings.data).bars

    def journal_of(arm: Arm) -> str:
        return ablation.arms[arm].run_id or ""

    plans = await refused_plans(store.journal.rows(journal_of(Arm.FAST_ONLY), kinds=KINDS), bars)
    found = list(PaperTrader(bars, settings.execution).trade(plans))
    shadow = store.journal.rows(journal_of(Arm.DETERMINISTIC), kinds={"shadow_episode"})
    banned = await banned_trades(shadow)
    return found if banned is None else [*found, banned]
