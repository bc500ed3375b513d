"""The deterministic guardrails in force at a boundary, gathered from the settings and the portfolio."""

from schemas.config import ExecutionSettings, Settings
from schemas.reflection import InvariantContext
from schemas.snapshot import PolicySnapshot
from services.ports import PlaybookReader

# A playbook above it and above the envelope is blocked; one above the envelope alone is clamped by the
# engine, which is an event.
HARD_RISK_CAP = 0.01


def invariant_context(
    settings: Settings, snapshot: PolicySnapshot, playbooks: PlaybookReader, symbols: tuple[str, ...]
) -> InvariantContext:
    """Guardrails for one snapshot; empty lists of the settings mean everything that is loaded."""
    envelope = settings.envelope
    loaded = tuple(version.definition.id for version in playbooks.active() if version.definition.enabled)
    return InvariantContext(
        kill_switch=snapshot.risk.kill_switch,
        halted=snapshot.risk.halted,
        allowed_symbols=envelope.allowed_symbols or symbols,
        allowed_directions=envelope.allowed_directions,
        allowed_playbooks=envelope.allowed_playbooks or loaded,
        max_risk_fraction=max(HARD_RISK_CAP, envelope.risk_fraction),
        max_gross_exposure=envelope.max_gross_exposure,
        gross_exposure=snapshot.risk.gross_exposure,
        max_staleness_bars=settings.reflection.max_staleness_bars,
        min_reward_to_risk=settings.reflection.min_reward_to_risk,
        cost_bps_per_side=cost_bps(settings.execution),
        spread_bps=settings.execution.spread_bps,
        tick_size=settings.execution.tick_size,
        no_learn_zones=envelope.no_learn_zones,
    )


def cost_bps(execution: ExecutionSettings) -> float:
    """Cost of one side of a market order in basis points of notional."""
    slippage = execution.slippage_bps + execution.slippage_spread_fraction * execution.spread_bps
    return execution.fee_bps + slippage
