"""Make the records with which an engine starts: event flags, parameters, state and portfolio."""

from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.config import EnvelopeSettings, ExecutionSettings
from trading_core import records as rec
from trading_core.regime import RegimeColumns

STALE_BARS = 5
STALE_NS = 7 * 86_400_000_000_000


def event_flags(regimes: RegimeColumns) -> npt.NDArray[np.uint8]:
    """uint8 (T, S): bit 0 regime change, bit 1 volatility band shift, bit 2 volatility shock."""
    return (regimes.trend_change | regimes.band_shift << 1 | regimes.shock << 2).astype(np.uint8)


def parameter_record(
    execution: ExecutionSettings,
    envelope: EnvelopeSettings | None,
    *,
    heartbeat: int,
    emit_events: bool,
    fixed_quantity: float = float("nan"),
) -> npt.NDArray[Any]:
    """The kernel's parameter record (1,). Without an envelope nothing limits size, exposure or loss."""
    p = np.zeros(1, dtype=rec.PARAMETERS)
    p["fee"], p["slippage"] = execution.fee_bps * 1e-4, execution.slippage_bps * 1e-4
    p["fill_close"] = execution.fill == "close"
    p["base_fill"] = execution.level_base == "fill"
    p["entry_bar_exits"] = execution.entry_bar_exits
    p["both_hit"] = rec.BOTH_HIT.index(execution.both_hit)
    p["gap_open"] = execution.gap == "open"
    p["fixed_quantity"] = fixed_quantity
    p["heartbeat"], p["emit"], p["boundaries"] = heartbeat, emit_events, emit_events
    if envelope is None:
        for name in ("max_risk", "max_gross", "gross_breach", "max_daily_loss", "max_drawdown"):
            p[name] = np.inf
        return p
    p["max_risk"], p["max_gross"] = envelope.risk_fraction, envelope.max_gross_exposure
    p["gross_breach"] = envelope.max_gross_exposure * (1.0 + envelope.max_exposure_drift)
    p["max_daily_loss"], p["max_drawdown"] = envelope.max_daily_loss, envelope.max_drawdown
    p["release_bars"], p["recovery_bars"] = envelope.drawdown_release_bars, envelope.recovery_bars
    p["cooldown"], p["stale_bars"], p["stale_ns"] = envelope.cooldown_bars, STALE_BARS, STALE_NS
    return p


def fresh_state(symbols: int, cash: float) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Symbol records (S,) and portfolio record (1,) before the first bar."""
    state = np.zeros(symbols, dtype=rec.SYMBOL)
    for name in ("last_t", "policy", "position_policy", "exit_reason", "position_invalidation"):
        state[name] = -1
    for name in ("k_setup", "k_activation", "k_invalidation", "k_stop", "k_target", "k_refinement"):
        state[name] = -1
    for name in ("armed_stop", "policy_stop_pct", "policy_target_pct"):
        state[name] = np.nan
    portfolio = np.zeros(1, dtype=rec.PORTFOLIO)
    for name in ("cash", "equity", "peak", "day_start"):
        portfolio[name] = cash
    for name in ("day", "halt_day", "halt_until", "recovery_from"):
        portfolio[name] = -1
    return state, portfolio
