"""The engine that trades the account, as the settings have it."""

import numpy as np
import numpy.typing as npt

from schemas.settings import Settings
from services.context import RunContext
from services.policy_loop.invariant_context import cost_bps
from services.statistics.calendar_units import later_starts, unit_of_timeframe
from trading_core.bars import BarSeries
from trading_core.kernel.flags import event_flags
from trading_core.kernel.fresh import STALE_BARS, bucket_bits, parameter_record
from trading_core.market import Market
from trading_core.rules.columns import SharedColumns
from trading_core.tick_events import TickEventDecoder
from trading_core.trigger_engine import TriggerEngine

BASIS_POINTS = 10_000.0


def account_engine(context: RunContext, market: Market) -> TriggerEngine:
    """An engine before the first bar of a market, with the kill switch as it is set."""
    settings = context.settings
    bars, envelope, reflection = market.bars, settings.envelope, settings.reflection
    parameters = parameter_record(
        settings.execution,
        envelope,
        heartbeat=settings.policy_loop.heartbeat_bars(bars.timeframe),
        emit_events=True,
        least_reward=0.0 if reflection.mode == "off" else reflection.min_reward_to_risk,
        side_cost=cost_bps(settings.execution) / BASIS_POINTS,
    )
    lasting = STALE_BARS * bars.bar_ns  # weeks and months are longer than the span of shorter bars
    parameters["stale_ns"] = np.maximum(parameters["stale_ns"], lasting)
    windows = envelope.no_trade_windows
    engine = TriggerEngine(
        bars,
        event_flags(market.regimes.flags, bars, windows),
        parameters,
        settings.account.cash,
        context.guard,
        TickEventDecoder(bars, settings.config_hash, settings.account.name, windows),
        columns=SharedColumns(market.columns),
        buckets=bucket_bits(bars.symbols, envelope.correlation_buckets),
        block_edges=_block_edges(settings, bars),
    )
    engine.set_kill_switch(envelope.kill_switch)
    return engine


def _block_edges(settings: Settings, bars: BarSeries) -> npt.NDArray[np.int64] | None:
    """Closes at which a block of the gate begins; None where entries per block have no limit."""
    if not settings.envelope.max_entries_per_block:
        return None
    unit = unit_of_timeframe(settings.gate.block, bars.timeframe)  # a bar belongs to the block of its label
    return bars.closes_of(later_starts(int(bars.times[0]), unit))
