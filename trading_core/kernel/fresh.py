"""Make the records with which an engine starts: parameters, state and portfolio."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.settings.envelope import CorrelationBucket, EnvelopeSettings
from schemas.settings.execution import ExecutionSettings
from trading_core.bars import NS
from trading_core.kernel import records as rec
from trading_core.kernel.flags import column_of

STALE_BARS = 5
STALE_NS = 7 * 86_400 * NS
_UNLIMITED = (
    "max_risk", "max_gross", "max_net", "max_symbol", "gross_breach", "net_breach", "bucket_breach",
    "max_daily_loss", "max_drawdown",
)  # fmt: skip


def parameter_record(
    execution: ExecutionSettings,
    envelope: EnvelopeSettings | None,
    *,
    heartbeat: int,
    emit_events: bool,
    fixed_quantity: float | None = None,
    least_reward: float = 0.0,
    side_cost: float = 0.0,
) -> npt.NDArray[Any]:
    """The kernel's parameter record (1,). Without an envelope nothing limits size, exposure or loss.

    Args:
        execution: fill rules, costs and sizing.
        envelope: limits; None for rule research and shadow ledgers.
        heartbeat: own bars between heartbeats, 0 never.
        emit_events: whether events are recorded and boundaries stop the kernel.
        fixed_quantity: units per trade instead of the configured sizing.
        least_reward: reward to risk after costs below which an entry is refused; 0: any.
        side_cost: fraction of notional that each side costs there.
    """
    p = np.zeros(1, dtype=rec.PARAMETERS)
    maker = execution.fee_bps if execution.maker_fee_bps is None else execution.maker_fee_bps
    sizing = execution.sizing if fixed_quantity is None else "fixed"
    values: dict[str, Any] = {
        "fee": execution.fee_bps * 1e-4,
        "maker_fee": maker * 1e-4,
        "fee_per_fill": execution.fee_per_trade,
        "fee_rounding": execution.fee_rounding,
        "slippage": execution.slippage,
        "passive_target": execution.maker_fee_bps is not None,
        "tick": execution.tick_size,
        "lot": execution.lot_size,
        "carry": execution.funding_bps != 0.0 or execution.borrow_bps != 0.0,
        "funding": execution.funding_bps * 1e-4,
        "borrow": execution.borrow_bps * 1e-4,
        "fill_close": execution.fill == "close",
        "base_fill": execution.level_base == "fill",
        "entry_bar_exits": execution.entry_bar_exits,
        "both_hit": rec.BOTH_HIT.index(execution.both_hit),
        "gap_open": execution.gap == "open",
        "through": execution.limit_fill == "through",
        "time_exit": rec.TIME_EXITS.index(execution.time_exit),
        "reentry": execution.reentry,
        "sizing": rec.SIZINGS.index(sizing),
        "fixed_quantity": execution.fixed_quantity if fixed_quantity is None else fixed_quantity,
        "volatility_multiple": execution.volatility_multiple,
        "least_reward": least_reward,
        "side_cost": side_cost,
        "heartbeat": heartbeat,
        "emit": emit_events,
        "boundaries": emit_events,
        "stale_ns": rec.NEVER,
    }
    for name, value in values.items():
        p[name] = value
    _limit(p, envelope)
    return p


def _limit(p: npt.NDArray[Any], envelope: EnvelopeSettings | None) -> None:
    if envelope is None:
        for name in _UNLIMITED:
            p[name] = np.inf
        p["max_losses"], p["max_symbol_losses"] = rec.NEVER, rec.NEVER
        return
    drift = 1.0 + envelope.max_exposure_drift
    p["limited"] = 1
    for name, _, setting in rec.LIMITS:
        p[name] = getattr(envelope, setting)
    p["gross_breach"] = envelope.max_gross_exposure * drift
    p["net_breach"], p["bucket_breach"] = envelope.max_net_exposure * drift, drift
    p["buckets"] = len(envelope.correlation_buckets)
    for k, bucket in enumerate(envelope.correlation_buckets):
        p["bucket_caps"][0, k] = bucket.max_exposure
    p["stale_bars"], p["stale_ns"] = STALE_BARS, STALE_NS


def bucket_bits(symbols: Sequence[str], buckets: Sequence[CorrelationBucket]) -> npt.NDArray[np.int64]:
    """int64 (S,): bit b set where the symbol is a member of bucket b.

    Raises:
        ConfigError: a bucket names an unknown symbol.
    """
    bits = np.zeros(len(symbols), dtype=np.int64)
    for k, bucket in enumerate(buckets):
        for symbol in bucket.symbols:
            bits[column_of(symbol, symbols, f"correlation_buckets {bucket.name!r}")] |= 1 << k
    return bits


def fresh_state(symbols: int, cash: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Symbol records (S,) and portfolio record (1,) before the first bar."""
    state = np.zeros(symbols, dtype=rec.SYMBOL)
    for name in rec.SYMBOL.names or ():
        if name.startswith("k_"):
            state[name] = -1
    for name in (
        "last_t", "policy", "position_policy", "exit_reason", "exit_own", "position_invalidation",
        "position_trail", "position_target",
    ):  # fmt: skip
        state[name] = -1
    for name in (
        "armed_stop", "policy_stop_pct", "policy_target_pct", "policy_break_even_r", "policy_scale_r",
        "policy_scale_share", "break_even_r", "scale_price", "add_r", "policy_add_r", "policy_add_share",
    ):  # fmt: skip
        state[name] = np.nan
    portfolio = np.zeros(1, dtype=rec.PORTFOLIO)
    for name in ("cash", "equity", "peak", "day_start"):
        portfolio[name] = cash
    for name in ("halt_until", "recovery_from"):
        portfolio[name] = -1
    # No day yet, and no halted one: labels before 1970 are negative.
    portfolio["day_ends"] = portfolio["halt_day"] = portfolio["block_ends"] = -rec.NEVER
    portfolio["day"] = 1 - rec.NEVER
    return state, portfolio
