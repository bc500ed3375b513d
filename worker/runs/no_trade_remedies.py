"""What would change it, by reason: the keys of a playbook file or of the settings.

Text only, nothing is decided here. A name in braces is a value of the playbook; dotted names and names in
brackets are keys and sections.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from schemas.playbook import PlaybookDefinition
from schemas.reflection import Remedy

WISHES: Final = {"at_most": "at most", "at_least": "at least", "equals": "should be"}
MOST_NAMED: Final = 3
READ_CODE: Final = "see docs/reference/findings.md"

# Keys in the file of a playbook, and what to do with them.
FINDINGS: Final[Mapping[str, str]] = {
    "target_beyond_mfe": "bring rules.{direction}.target nearer, or raise expectation.mfe_p50_r "
    "({mfe_p50_r:g}): a target may lie 3 of them away",
    "horizon_too_long": "lower horizon_bars ({horizon_bars}) to 2 * expectation.hold_p90_bars = "
    "{twice_p90:g}, or raise hold_p90_bars ({hold_p90_bars:g}) to {half_horizon:g}",
    "horizon_too_short": "raise horizon_bars ({horizon_bars}) to expectation.hold_p50_bars "
    "({hold_p50_bars:g}), or lower that",
    "stop_inside_winner_mae": "move rules.{direction}.stop away, or raise "
    "expectation.winner_mae_p80_r ({winner_mae_p80_r:g}) towards 0",
    "over_confident": "raise expectation.hit_rate ({hit_rate:g}), or "
    "reflection.conviction_tolerance in the settings",
    "reward_to_risk_too_low": "move rules.{direction}.target away or .stop nearer, or lower "
    "reflection.min_reward_to_risk in the settings",
    "invalidation_beyond_stop": "let rules.{direction}.invalidation be true before price reaches "
    "rules.{direction}.stop",
    "invalidation_already_true": "rules.{direction}.invalidation is true when the plan is made: let "
    "it be false where the setup may be true",
    "invalidation_contradicts_direction": "turn rules.{direction}.invalidation round: it is true "
    "when the plan is right",
    "invalidation_never_fires": "let some price make rules.{direction}.invalidation true",
    "stop_on_wrong_side": "keep rules.{direction}.stop on the losing side of the entry at every "
    "close, with min() or max() if need be",
    "target_on_wrong_side": "keep rules.{direction}.target on the winning side of the entry at "
    "every close, with min() or max() if need be",
    "entry_on_wrong_side": "keep rules.{direction}.entry on its side of the market",
    "level_not_a_price": "keep the levels of rules.{direction} above zero at every close",
    "level_unknown": "levels of rules.{direction} have to be readable on one bar: no prev, no "
    "crossing, and features with enough bars behind them",
    "scale_out_beyond_target": "let scale_out_r lie before rules.{direction}.target",
    "break_even_beyond_target": "let break_even_r lie before rules.{direction}.target",
    "text_contradicts_direction": "order nothing but a {direction} trade in title",
    "rationale_misses_playbook": "name a rule of rules.{direction} that is true, or a feature that one uses",
    "reason_not_so": "name rules of rules.{direction} that are true, and features that such rules use",
    "timeframe_not_eligible": "add the timeframe of the bars to timeframes, or leave it empty",
    "playbook_not_eligible": "widen [eligibility.{direction}]",
    "memory_contradicts": "its nearest past trades lost: reflection.contradiction_share in the settings",
    "horizon_over_bound": "lower horizon_bars ({horizon_bars})",
    "activation_window_over_bound": "lower activation_window_bars ({activation_window_bars})",
    "kill_switch": "set envelope.kill_switch = false in the settings",
    "trading_halted": "a limit of [envelope] is broken: `thinktwice journal RUN --kind "
    "envelope_breach` says which",
    "symbol_not_allowed": "add the symbol to envelope.allowed_symbols in the settings",
    "direction_not_allowed": "add {direction} to envelope.allowed_directions in the settings",
    "playbook_not_allowed": "add the playbook to envelope.allowed_playbooks in the settings",
    "exposure_cap_reached": "raise envelope.max_gross_exposure in the settings",
    "no_learn_zone_active": "the bars lie in an envelope.no_learn_zones of the settings",
    "stale_snapshot": "the symbol has too few bars: reflection.max_staleness_bars in the settings",
}  # fmt: skip

# Why the engine refused an order, and what it hangs on.
REFUSALS: Final[Mapping[str, str]] = {
    "wrong_side": "at the signal bar a level lies on the wrong side: rules.*.stop and .target of "
    "the playbook",
    "no_planned_risk": "stop and entry are the same price: rules.*.stop of the playbook",
    "halted": "the envelope has halted entries: [envelope], `thinktwice journal RUN --kind envelope_breach`",
    "no_capacity": "no lot fits: account.cash, execution.lot_size, or envelope.max_gross_exposure",
    "level_unknown": "a level was unknown at the signal bar: features of rules.* need more bars",
    "envelope": "a cap of [envelope] leaves no room: max_gross_exposure, max_net_exposure, buckets",
    "retired": "the policy was retired before its order was met",
    "throttled": "envelope.max_entries_per_hour or max_entries_per_block",
    "no_trade_window": "envelope.no_trade_windows (`thinktwice journal RUN --kind order_refused` names "
    "them), or entries that the feed or the operator has blocked",
    "paused_after_losses": "envelope.max_symbol_losses and loss_pause_bars",
    "unfilled": "the market never met the entry order: rules.*.entry, or entry_kind",
    "reward_to_risk": "move rules.*.target away or .stop nearer, or lower reflection.min_reward_to_risk",
    "invalidated": "rules.*.invalidation was true before the order was met",
}


def features_unknown(needed_bars: int) -> str:
    """What to do where a symbol has bars enough and its features are still not known."""
    return (
        f"a symbol has the {needed_bars:,} bars that it needs, and features of the regime cannot be computed "
        "from its prices and volumes: check their size and unit, and whether they change at all"
    )


def of_finding(
    code: str, met: Sequence[tuple[PlaybookDefinition, str]], seen: str, wish: Remedy | None
) -> str:
    """What would settle findings of a code, with an example of one.

    Args:
        code: of the findings.
        met: playbooks whose plans it sent back, as far as they are loaded, with the direction of the first.
        seen: message of the example.
        wish: remedy of the example.
    """
    deed = READ_CODE
    if met and code in FINDINGS:
        deed = "; ".join(
            f"playbook {playbook.id}: {FINDINGS[code].format(direction=direction, **_values(playbook))}"
            for playbook, direction in met[:MOST_NAMED]
        )
        deed += f"; and {len(met) - MOST_NAMED} more" if len(met) > MOST_NAMED else ""
    would = "" if wish is None else f"; {wish.field} {WISHES[wish.op]} {_short(wish.value)} would settle it"
    return f"{deed} (once: {seen}{would})"


def _values(playbook: PlaybookDefinition) -> dict[str, float]:
    expected = playbook.expectation
    return {
        "horizon_bars": playbook.horizon_bars,
        "activation_window_bars": playbook.activation_window_bars,
        "risk_fraction": playbook.risk_fraction,
        "hit_rate": expected.hit_rate,
        "hold_p50_bars": expected.hold_p50_bars,
        "hold_p90_bars": expected.hold_p90_bars,
        "twice_p90": 2 * expected.hold_p90_bars,
        "half_horizon": playbook.horizon_bars / 2,
        "winner_mae_p80_r": expected.winner_mae_p80_r,
        "mfe_p50_r": expected.mfe_p50_r,
    }


def _short(value: float | int | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
