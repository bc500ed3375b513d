"""What would change it, by reason: the keys of a playbook file or of the settings.

Text only, nothing is decided here. Dotted names and names in brackets are keys and sections; a `*` stands for
either direction.
"""

from collections.abc import Mapping
from typing import Final

WISHES: Final = {"at_most": "at most", "at_least": "at least", "equals": "should be"}
READ_CODE: Final = "see docs/reference/findings.md"
ENDS: Final = ("thesis_expired", "invalidation_hit", "policy_expired", "run_ended")

REMEDIES: Final[Mapping[str, str]] = {
    # Codes of findings: keys in the file of a playbook, and what to do with them.
    "target_beyond_mfe": "bring rules.*.target nearer, or raise expectation.mfe_p50_r",
    "horizon_too_long": "lower horizon_bars, or raise expectation.hold_p90_bars",
    "horizon_too_short": "raise horizon_bars, or lower expectation.hold_p50_bars",
    "stop_inside_winner_mae": "move rules.*.stop away, or raise expectation.winner_mae_p80_r towards 0",
    "over_confident": "raise expectation.hit_rate, or reflection.conviction_tolerance in the settings",
    "reward_to_risk_too_low": "move rules.*.target away or .stop nearer, or lower "
    "reflection.min_reward_to_risk in the settings",
    "invalidation_beyond_stop": "let rules.*.invalidation be true before price reaches rules.*.stop",
    "invalidation_already_true": "let rules.*.invalidation be false where the setup may be true",
    "invalidation_contradicts_direction": "turn rules.*.invalidation round: it is true when plans are right",
    "invalidation_never_fires": "let some price make rules.*.invalidation true",
    "tautology": "narrow the rule of rules.* that is always true, which `thinktwice playbooks list` names",
    "unreachable": "loosen the rule of rules.* that is never true, which `thinktwice playbooks list` names",
    "stop_on_wrong_side": "keep rules.*.stop on the losing side of the entry, by min() or max() if need be",
    "target_on_wrong_side": "keep rules.*.target on the winning side of the entry, with min() or max() if "
    "need be",
    "entry_on_wrong_side": "keep rules.*.entry on its side of the market",
    "level_not_a_price": "keep the levels of rules.* above zero at every close",
    "level_unknown": "levels of rules.* have to be readable on one bar: no prev, no crossing, and features "
    "with enough bars behind them",
    "scale_out_beyond_target": "let scale_out_r lie before rules.*.target",
    "break_even_beyond_target": "let break_even_r lie before rules.*.target",
    "text_contradicts_direction": "order nothing but a trade of its direction in title",
    "rationale_misses_playbook": "name a rule that is true, or a feature that one uses",
    "reason_not_so": "name rules that are true, and features that such rules use",
    "timeframe_not_eligible": "add the timeframe of the bars to timeframes, or leave it empty",
    "playbook_not_eligible": "widen [eligibility.*]",
    "memory_contradicts": "past trades around these ranks lost: narrow [eligibility.*] to where it earns",
    "horizon_over_bound": "lower horizon_bars",
    "activation_window_over_bound": "lower activation_window_bars",
    "kill_switch": "set envelope.kill_switch = false, or let the operator release it",
    "trading_halted": "a limit of [envelope] is broken: `thinktwice journal RUN --kind "
    "envelope_breach` says which",
    "symbol_not_allowed": "add the symbol to envelope.allowed_symbols in the settings",
    "direction_not_allowed": "add the direction to envelope.allowed_directions in the settings",
    "playbook_not_allowed": "add the playbook to envelope.allowed_playbooks in the settings",
    "exposure_cap_reached": "raise envelope.max_gross_exposure in the settings",
    "no_learn_zone_active": "the bars lie in an envelope.no_learn_zones of the settings",
    "stale_snapshot": "the symbol has too few bars: reflection.max_staleness_bars in the settings",
    # Why a signal met no plan, where no finding says it.
    "abstained": "the strategist proposed nothing: `thinktwice journal RUN --kind policy_proposal` has its "
    "reasons",
    "expired": "its plan reached its horizon, and none came at once: a longer horizon_bars",
    "features_unknown": "bars enough, and features of the regime cannot be computed from their prices and "
    "volumes: check their size and unit, and whether they change at all",
    "halted": "a limit of [envelope] or the operator ended its plan",
    "invalidated": "its plan was proven wrong, and no other plan came at once",
    "judge_refused": "the judge approved none of these plans that had passed: `thinktwice journal RUN --kind "
    "boundary_verdict` has its reasons",
    "invalidation_true": "rules.*.invalidation was true as well: let it be false where the setup may be true",
    "no_evaluation": "nothing asked for a plan: policy_loop.events and heartbeat_s, or more bars",
    "not_eligible": "widen [eligibility.*], or the key of that name in the playbook or in [envelope]",
    "order_refused": "the order of its plan was refused, and no other plan came at once",
    "other_plan": "another plan was in force: leave its playbook out with envelope.allowed_playbooks",
    "plan_setup_not_true": "the strategist waits for another setup than the playbook's",
    "stale": "answers came too late: policy_loop.max_answer_bars, or a faster strategist",
    "stood_down": "no plan passed: `thinktwice journal RUN --kind policy_evaluation` has the reasons",
    # How theses and plans ended that met their setup, and no order.
    "thesis_expired": "setups were true, their activation never was: rules.*.activation, or a longer "
    "activation_window_bars",
    "invalidation_hit": "theses were proven wrong before activation: rules.*.invalidation",
    "policy_expired": "policies reached their horizon without an entry: a longer horizon_bars",
    "run_ended": "something was still waiting when the bars ended: give the run more bars",
    # Why the engine refused an order, and what it hangs on.
    "order_wrong_side": "at the signal bar a level lies on the wrong side: rules.*.stop and .target of "
    "the playbook",
    "order_no_planned_risk": "stop and entry are the same price: rules.*.stop of the playbook",
    "order_halted": "a limit of [envelope] halted entries: `thinktwice journal RUN --kind envelope_breach`",
    "order_no_capacity": "no lot fits: account.cash, execution.lot_size, or envelope.max_gross_exposure",
    "order_level_unknown": "a level was unknown at the signal bar: features of rules.* need more bars",
    "order_envelope": "a cap of [envelope] leaves no room: max_gross_exposure, max_net_exposure, buckets",
    "order_retired": "the policy was retired before its order was met",
    "order_throttled": "envelope.max_entries_per_hour or max_entries_per_block",
    "order_no_trade_window": "envelope.no_trade_windows (`thinktwice journal RUN --kind order_refused` names "
    "them), or entries that the feed or the operator has blocked",
    "order_paused_after_losses": "envelope.max_symbol_losses and loss_pause_bars",
    "order_unfilled": "the market never met the entry order: rules.*.entry, or entry_kind",
    "order_reward_to_risk": "move rules.*.target away or .stop nearer, or lower "
    "reflection.min_reward_to_risk",
    "order_invalidated": "rules.*.invalidation was true before the order was met",
}
