"""The bars that a paper run took, for a worker that reflects: values of a playbook's grid are tried on them.

Read from the store and computed in a thread, on arrays of its own: waker, lease and watchdog go on meanwhile,
and the process that trades shares nothing with it.
"""

import asyncio
from collections.abc import Sequence

from schemas.config import Settings
from schemas.episode import Episode
from schemas.playbook import PlaybookDefinition
from schemas.reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.vocabulary import TIMEFRAME_SECONDS
from services.clock import SimulatedClock
from services.high_level_reflection_service import HighLevelReflectionService
from services.market_feed import BarRow
from services.slow_loop.standing_ledger import StandingLedgers
from services.store import RunRecord, Store
from trading_core.bars import NS
from trading_core.regime import regime_columns
from trading_core.rules import RuleColumns
from worker.feeds.bar_rows import series_of
from worker.scheduler.ports import Reflect
from worker.scheduler.slot_runner import RunOfSlots


def reflection_on_bars(store: Store, run: RunOfSlots) -> Reflect:
    """The high-level reflection by rules with grid trials on the run's own bars, in a thread."""

    async def reflect(
        request: HighLevelReflectionRequest,
        episodes: Sequence[Episode],
        definitions: Sequence[PlaybookDefinition],
    ) -> HighLevelReflectionReport:
        record = await store.runs.find(run.run_id)
        bar_ns = TIMEFRAME_SECONDS[record.data["timeframe"]] * NS
        shift = 0 if record.data["label"] == "close" else bar_ns
        rows = [row async for row in store.trading.rows(run.run_id) if row.label + shift <= request.known_at]
        work = _reflected(run.settings, record, rows, request, episodes, definitions)
        return await asyncio.to_thread(asyncio.run, work)

    return reflect


async def _reflected(
    settings: Settings,
    record: RunRecord,
    rows: Sequence[BarRow],
    request: HighLevelReflectionRequest,
    episodes: Sequence[Episode],
    definitions: Sequence[PlaybookDefinition],
) -> HighLevelReflectionReport:
    data = record.data
    bars = series_of(tuple(data["symbols"]), data["timeframe"], data["label"], rows)
    columns = RuleColumns(bars)
    regimes = regime_columns(bars, settings.policy_loop.regime, columns.features)
    clock = SimulatedClock(request.known_at)
    ledgers = StandingLedgers(bars, columns, regimes, settings.execution, settings.envelope, clock)
    service = HighLevelReflectionService(settings.gate, settings.high_level, grid=ledgers)
    return await service.reflect(request, episodes, definitions)
