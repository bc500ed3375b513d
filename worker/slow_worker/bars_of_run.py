"""The bars that a paper run took, for a worker that reflects: values of a playbook's grid are tried on them.

Read from the store and computed in a thread, on arrays of its own: waker, lease and watchdog go on meanwhile,
and the process that trades shares nothing with it.
"""

import asyncio
from collections.abc import Sequence

from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.settings import Settings
from schemas.vocabulary import TIMEFRAME_SECONDS
from services.store import Store
from trading_core.bars import NS, BarSeries
from trading_core.market import Market
from trading_core.rules.columns import RuleColumns
from worker.bootstrap import slow_reflection
from worker.feeds.files.rows import series_of
from worker.slow_worker.ports import Reflect
from worker.slow_worker.slot_runner import Columns, RunOfSlots


def reflection_on_bars(store: Store, run: RunOfSlots) -> Reflect:
    """The high-level reflection by rules with grid trials on the run's own bars, in a thread."""

    async def reflect(
        request: HighLevelReflectionRequest,
        episodes: Sequence[Episode],
        definitions: Sequence[PlaybookDefinition],
    ) -> HighLevelReflectionReport:
        bars = await _bars(store, run.run_id, request.known_at)
        work = _reflected(run.settings, bars, request, episodes, definitions)
        return await asyncio.to_thread(asyncio.run, work)

    return reflect


def columns_of_run(store: Store, run: RunOfSlots) -> Columns:
    """The rule columns of a run's own bars that were closed at a time, ns."""

    async def columns(clock: int) -> RuleColumns:
        return RuleColumns(await _bars(store, run.run_id, clock))

    return columns


async def _bars(store: Store, run_id: str, clock: int) -> BarSeries:
    """The bars that a run took and that were closed at a time."""
    data = (await store.runs.find(run_id)).data
    shift = 0 if data["label"] == "close" else TIMEFRAME_SECONDS[data["timeframe"]] * NS
    rows = [row async for row in store.trading.rows(run_id) if row.label + shift <= clock]
    return series_of(tuple(data["symbols"]), data["timeframe"], data["label"], rows)


async def _reflected(
    settings: Settings,
    bars: BarSeries,
    request: HighLevelReflectionRequest,
    episodes: Sequence[Episode],
    definitions: Sequence[PlaybookDefinition],
) -> HighLevelReflectionReport:
    market = Market.of(bars, settings.policy_loop.regime, request.known_at)
    return await slow_reflection(settings, market).reflect(request, episodes, definitions)
