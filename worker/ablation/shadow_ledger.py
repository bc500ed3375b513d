"""The shadow ledger of an ablation, from the journals of its stored arms."""

from typing import TYPE_CHECKING

from schemas.config import ExecutionSettings
from trading_core.bars import BarSeries
from worker.ablation.arms import Arm
from worker.ablation.refused_plans import KINDS, PaperTrader, PaperTrades, banned_trades, refused_plans
from worker.ablation.runner import Ablation

if TYPE_CHECKING:
    from services.store import Store


async def shadow_ledger(
    ablation: Ablation, store: "Store", bars: BarSeries, execution: ExecutionSettings
) -> list[PaperTrades]:
    """What the fast reflection refused when it was alone, and what the slow loop banned when it was on."""

    def journal_of(arm: Arm) -> str:
        return ablation.arms[arm].run_id or ""

    plans = await refused_plans(store.journal.rows(journal_of(Arm.FAST_ONLY), kinds=KINDS), bars)
    found = list(PaperTrader(bars, execution).trade(plans))
    shadow = store.journal.rows(journal_of(Arm.DETERMINISTIC), kinds={"shadow_episode"})
    banned = await banned_trades(shadow)
    return found if banned is None else [*found, banned]
