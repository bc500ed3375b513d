"""The deterministic guardrails in force at a boundary, gathered from the settings and the portfolio."""

from typing import Any

from schemas.reflection import InvariantContext
from schemas.settings import ExecutionSettings, Settings
from schemas.snapshot import PolicySnapshot
from services.policy_checks.expectation import FARTHEST_TARGET_MFE
from services.ports import PlaybookReader


def invariant_context(
    settings: Settings, snapshot: PolicySnapshot, playbooks: PlaybookReader, symbols: tuple[str, ...]
) -> InvariantContext:
    """Guardrails for one snapshot; empty lists of the settings mean everything that is loaded."""
    envelope = settings.envelope
    loaded = tuple(version.definition.id for version in playbooks.active() if version.definition.enabled)
    return InvariantContext.trust(
        kill_switch=snapshot.risk.kill_switch,
        halted=snapshot.risk.halted,
        allowed_symbols=envelope.allowed_symbols or symbols,
        allowed_directions=envelope.allowed_directions,
        allowed_playbooks=envelope.allowed_playbooks or loaded,
        max_risk_fraction=envelope.risk_cap,
        max_gross_exposure=envelope.max_gross_exposure,
        gross_exposure=snapshot.risk.gross_exposure,
        max_staleness_bars=settings.reflection.max_staleness_bars,
        min_reward_to_risk=settings.reflection.min_reward_to_risk,
        cost_bps_per_side=cost_bps(settings.execution),
        spread_bps=settings.execution.spread_bps,
        tick_size=settings.execution.tick_size,
        no_learn_zones=envelope.no_learn_zones,
        allows_own_plans=not envelope.allowed_playbooks,
    )


def tolerances(settings: Settings) -> dict[str, Any]:
    """What the checks measure every plan by, as a strategist is told it; the same for all of a run.

    A tick says what prices are like, so a run whose questions are anonymised does not name it.
    """
    execution, reflection, bounds = settings.execution, settings.reflection, InvariantContext.model_fields
    tick = {} if settings.llm.anonymise else {"tick_size": execution.tick_size}
    return {
        "conviction_at_most_hit_rate_plus": reflection.conviction_tolerance,
        "reward_to_risk_after_costs_at_least": reflection.min_reward_to_risk,
        "cost_bps_per_side": cost_bps(execution),
        "spread_bps": execution.spread_bps,
        "target_at_most_median_best_excursions": FARTHEST_TARGET_MFE,
        "horizon_bars_at_most": bounds["max_horizon_bars"].default,
        "activation_window_bars_at_most": bounds["max_activation_window_bars"].default,
        "staleness_bars_at_most": reflection.max_staleness_bars,
        "revisions_at_most": settings.policy_loop.max_revisions,
        "directions": list(settings.envelope.allowed_directions),
        **tick,
    }


def cost_bps(execution: ExecutionSettings) -> float:
    """Cost of one side of a market order in basis points of notional."""
    slippage = execution.slippage_bps + execution.slippage_spread_fraction * execution.spread_bps
    return execution.fee_bps + slippage
