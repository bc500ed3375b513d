"""The facts of a change plan from a store: a fold over the rows of a run, and the last bars that it took."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from schemas.errors import ConfigError
from schemas.settings import Settings
from schemas.timeframes import close_in_run
from services.plans.basis import ATR_BARS, mean_true_range
from services.plans.drafting import PlanFacts
from services.plans.facts import facts_of
from services.slow_loop.loop_facts import LoopFacts

if TYPE_CHECKING:
    from services.feeds.port import BarRow
    from services.store import RunRecord, Store

ROWS = 10 * ATR_BARS  # of bars: a symbol may have none in some of them


async def read_plan_facts(
    store: "Store", run: "RunRecord", settings: Settings, *, trades: bool, at: int | None = None
) -> PlanFacts:
    """The facts of a run as of a time in ns, or of its last row.

    A run that is over has no market any more: its facts name no position and no close.

    Raises:
        ConfigError: the run has not begun.
        StoreError: a row is damaged.
    """
    fold, clock = LoopFacts(settings), 0
    async for row in store.journal.rows(run.run_id, kinds=fold.kinds, until=at):
        fold.add(row)
        clock = max(clock, row.known_at)
    if not fold.begun:
        raise ConfigError(f"run {run.run_id} has not begun: nothing can be planned for it")
    clock = clock if at is None else at
    if not trades:
        return replace(facts_of(fold, clock, {}, {}, settings), positions=(), symbols={})
    last = await store.trading.last_bars(run.run_id)
    if last is None:
        raise ConfigError(f"run {run.run_id} has taken no bar: nothing can be planned for it")
    bars = [row async for row in store.trading.rows(run.run_id, max(0, last[0] - ROWS))]
    closes, atr = _market(bars)
    facts = facts_of(fold, max(clock, close_in_run(last[1], run.data)), closes, atr, settings)
    symbols = {name: tuple(s for s in traded if s in closes) for name, traded in facts.symbols.items()}
    return replace(facts, symbols=symbols)


def _market(rows: Sequence["BarRow"]) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Last close and mean true range of 14 bars of each symbol, in price."""
    closes: dict[str, float] = {}
    atr: dict[str, float] = {}
    for symbol in sorted({name for row in rows for name in row.bars}):
        bars = [row.bars[symbol] for row in rows if symbol in row.bars]
        high, low, close = (
            np.array([getattr(bar, name) for bar in bars]) for name in ("high", "low", "close")
        )
        closes[symbol], atr[symbol] = float(close[-1]), mean_true_range(high, low, close)
    return closes, atr


async def last_close(store: "Store", run: "RunRecord") -> int:
    """When the last bar of a run was closed, ns; 0 before the first."""
    last = await store.trading.last_bars(run.run_id)
    return 0 if last is None else close_in_run(last[1], run.data)
