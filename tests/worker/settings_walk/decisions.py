"""How each setting of a decision is seen to act: one line for one setting.

`TRADES` and its like run a year and a half of the embedded bars; `beside` puts the run where a setting that
seldom matters does.
"""

from tests.worker.settings_walk.runs_seen import (
    BUSY_TRADES,
    DOUBTS,
    EAGER_HOURLY,
    EAGER_TRADES,
    EVALUATIONS,
    HOLED_REFLECTIONS,
    HOURLY,
    LATE_READS,
    LATE_REFLECTIONS,
    PATIENT_TRADES,
    REFLECTIONS,
    TRADES,
    contradictions,
    late_answers,
    order_names,
    refusal,
)
from tests.worker.settings_walk.slow_seen import BANNED, TRIED, permission, report, slots, trial, trigger
from tests.worker.settings_walk.walking import Entry

BUCKET = {"name": "tech", "symbols": ["AAPL", "IBM", "MSFT"], "max_exposure": 0.15}
STRANGE = BUCKET | {"symbols": ["NONE"]}
DATED = {
    "reason": "results",
    "symbol": "AAPL",
    "start": "2004-08-01T00:00:00Z",
    "end": "2005-03-01T00:00:00Z",
}
DAILY = {"reason": "night", "from_minute": 60, "to_minute": 600, "weekdays": [0, 1, 2]}
ZONE = {"reason": "outage", "start": "2004-09-01T00:00:00Z", "end": "2004-12-01T00:00:00Z"}
WINDOWS, ZONES, BUCKETS = (
    f"envelope.{name}" for name in ("no_trade_windows", "no_learn_zones", "correlation_buckets")
)
UNREFLECTED = {"reflection.mode": "off"}
PATIENT_BUDGETS = {"reflection.budget_event_ms": 1e9, "reflection.budget_heartbeat_ms": 1e9}
STEEP = {"envelope.max_drawdown": 0.01}
PROVEN = {"gate.bet_unit": "trade", "gate.q": 0.49, "gate.winsor_low": -1.0, "gate.winsor_high": 1.0}
SILENT = {
    "envelope.allowed_playbooks": ["buys_strength"],
    "envelope.max_drawdown": 0.9,
    "envelope.max_daily_loss": 0.5,
    "reflection.minimum_cases": 100_000,
}
REGIME = "policy_loop.regime."

NARROW = {"data.plausible_change": 0.005, "data.plausible_atr": 1.0}

DECISIONS: dict[str, Entry] = {
    "data.plausibility": Entry("always", DOUBTS, NARROW),
    "data.plausible_change": Entry(0.005, DOUBTS, {"data.plausibility": "always", "data.plausible_atr": 0.0}),
    "data.plausible_atr": Entry(
        1.0, DOUBTS, NARROW | {"data.plausibility": "always", "data.plausible_atr": 20.0}
    ),
    "account.name": Entry("other", order_names),
    "account.cash": Entry(50_000.0, TRADES),
    "execution.fee_bps": Entry(9.0, TRADES),
    "execution.maker_fee_bps": Entry(1.0, TRADES),
    "execution.fee_per_trade": Entry(1.0, TRADES),
    "execution.fee_rounding": Entry(0.5, TRADES),
    "execution.slippage_bps": Entry(5.0, TRADES),
    "execution.spread_bps": Entry(10.0, TRADES, {"execution.slippage_spread_fraction": 0.5}),
    "execution.slippage_spread_fraction": Entry(0.5, TRADES, {"execution.spread_bps": 10.0}),
    "execution.funding_bps": Entry(2.0, TRADES),
    "execution.borrow_bps": Entry(5.0, TRADES),
    "execution.fill": Entry("close", TRADES),
    "execution.level_base": Entry("fill", TRADES),
    "execution.entry_bar_exits": Entry(False, BUSY_TRADES, UNREFLECTED),
    "execution.both_hit": Entry("target", BUSY_TRADES, UNREFLECTED),
    "execution.gap": Entry("level", TRADES),
    "execution.limit_fill": Entry("through", PATIENT_TRADES, {"execution.tick_size": 0.5}),
    "execution.time_exit": Entry("close", TRADES),
    "execution.tick_size": Entry(0.25, TRADES),
    "execution.lot_size": Entry(10.0, TRADES),
    "execution.sizing": Entry("fixed", TRADES),
    "execution.volatility_multiple": Entry(4.0, TRADES, {"execution.sizing": "volatility"}),
    "execution.fixed_quantity": Entry(7.0, TRADES, {"execution.sizing": "fixed"}),
    "envelope.risk_fraction": Entry(0.002, TRADES),
    "envelope.max_gross_exposure": Entry(0.1, TRADES),
    "envelope.max_net_exposure": Entry(0.1, TRADES),
    "envelope.max_symbol_exposure": Entry(0.08, TRADES),
    BUCKETS: Entry([BUCKET], TRADES),
    f"{BUCKETS}[].name": Entry([STRANGE | {"name": "other"}], refusal, {BUCKETS: [STRANGE]}),
    f"{BUCKETS}[].symbols": Entry([BUCKET | {"symbols": ["IBM"]}], TRADES, {BUCKETS: [BUCKET]}),
    f"{BUCKETS}[].max_exposure": Entry([BUCKET | {"max_exposure": 0.1}], TRADES, {BUCKETS: [BUCKET]}),
    "envelope.max_exposure_drift": Entry(0.0, TRADES, {"envelope.max_gross_exposure": 0.1}),
    "envelope.max_daily_loss": Entry(0.001, TRADES),
    "envelope.max_drawdown": Entry(0.01, TRADES),
    "envelope.drawdown_release_bars": Entry(2, TRADES, STEEP),
    "envelope.recovery_bars": Entry(1, TRADES, STEEP),
    "envelope.max_consecutive_losses": Entry(2, TRADES),
    "envelope.max_symbol_losses": Entry(1, TRADES),
    "envelope.loss_pause_bars": Entry(40, TRADES, {"envelope.max_symbol_losses": 1}),
    "envelope.max_entries_per_hour": Entry(1, EAGER_TRADES),
    WINDOWS: Entry([DATED], TRADES),
    f"{WINDOWS}[].symbol": Entry([DATED | {"symbol": None}], TRADES, {WINDOWS: [DATED]}),
    f"{WINDOWS}[].start": Entry([DATED | {"start": "2005-01-01T00:00:00Z"}], TRADES, {WINDOWS: [DATED]}),
    f"{WINDOWS}[].end": Entry([DATED | {"end": "2004-09-01T00:00:00Z"}], TRADES, {WINDOWS: [DATED]}),
    f"{WINDOWS}[].from_minute": Entry([DAILY | {"from_minute": 500}], EAGER_HOURLY, {WINDOWS: [DAILY]}),
    f"{WINDOWS}[].to_minute": Entry([DAILY | {"to_minute": 120}], EAGER_HOURLY, {WINDOWS: [DAILY]}),
    f"{WINDOWS}[].weekdays": Entry([DAILY | {"weekdays": [5]}], EAGER_HOURLY, {WINDOWS: [DAILY]}),
    "envelope.cooldown_bars": Entry(30, TRADES),
    "envelope.kill_switch": Entry(True, TRADES),
    "envelope.allowed_symbols": Entry(["IBM"], TRADES),
    "envelope.allowed_directions": Entry(["long"], TRADES),
    "envelope.allowed_playbooks": Entry(["mean_reversion"], TRADES),
    ZONES: Entry([ZONE], TRADES),
    f"{ZONES}[].reason": Entry([ZONE | {"reason": "war"}], REFLECTIONS, {ZONES: [ZONE]}),
    f"{ZONES}[].symbol": Entry([ZONE | {"symbol": "IBM"}], REFLECTIONS, {ZONES: [ZONE]}),
    f"{ZONES}[].start": Entry([ZONE | {"start": "2004-11-01T00:00:00Z"}], TRADES, {ZONES: [ZONE]}),
    f"{ZONES}[].end": Entry([ZONE | {"end": "2004-10-01T00:00:00Z"}], TRADES, {ZONES: [ZONE]}),
    "policy_loop.events": Entry(["regime_change", "position_opened", "position_closed"], EVALUATIONS),
    "policy_loop.heartbeat_s": Entry(86_400, EVALUATIONS),
    "policy_loop.minimum_interval_s": Entry(36_000, HOURLY),
    "policy_loop.minimum_interval_bars": Entry(30, EVALUATIONS),
    "policy_loop.max_answer_bars": Entry(0, late_answers),
    "policy_loop.max_revisions": Entry(0, EVALUATIONS),
    f"{REGIME}weak_trend": Entry(0.6, EVALUATIONS),
    f"{REGIME}strong_trend": Entry(0.4, EVALUATIONS),
    f"{REGIME}fast_change": Entry(0.4, EVALUATIONS),
    f"{REGIME}chop_bars": Entry(10, EVALUATIONS),
    f"{REGIME}low_volatility": Entry(0.5, EVALUATIONS),
    f"{REGIME}high_volatility": Entry(0.5, EVALUATIONS),
    f"{REGIME}extreme_volatility": Entry(0.8, EVALUATIONS),
    f"{REGIME}shock": Entry(0.2, EVALUATIONS),
    f"{REGIME}compression": Entry(0.6, EVALUATIONS),
    f"{REGIME}expansion": Entry(0.4, EVALUATIONS),
    f"{REGIME}stretched": Entry(0.4, EVALUATIONS),
    f"{REGIME}confirm": Entry(1, EVALUATIONS),
    f"{REGIME}confirm_of": Entry(12, EVALUATIONS),
    f"{REGIME}sideways_confirm": Entry(1, EVALUATIONS),
    f"{REGIME}sideways_confirm_of": Entry(24, EVALUATIONS),
    f"{REGIME}dwell": Entry(0, EVALUATIONS),
    "reflection.mode": Entry("off", TRADES),
    "reflection.budget_event_ms": Entry(1e-6, LATE_REFLECTIONS, PATIENT_BUDGETS),
    "reflection.budget_heartbeat_ms": Entry(1e-6, LATE_REFLECTIONS, PATIENT_BUDGETS),
    "reflection.min_reward_to_risk": Entry(3.0, REFLECTIONS),
    "reflection.max_staleness_bars": Entry(0, HOLED_REFLECTIONS),
    "reflection.contradiction_share": Entry(0.9, contradictions),
    "reflection.minimum_cases": Entry(2, REFLECTIONS),
    "reflection.conviction_tolerance": Entry(0.0, REFLECTIONS),
    "memory.winners": Entry(1, REFLECTIONS),
    "memory.losers": Entry(1, REFLECTIONS),
    "memory.failures": Entry(1, REFLECTIONS),
    "high_level.enabled": Entry(False, slots, SILENT),
    "high_level.interval": Entry("weekly", slots, SILENT),
    "high_level.minimum_episodes": Entry(25, slots, SILENT),
    "high_level.structural_interval_days": Entry(12, permission),
    "high_level.window_bars": Entry(150, slots, SILENT),
    "high_level.surprise_limit_r": Entry(0.5, trigger),
    "gate.mode": Entry("significance_only", report),
    "gate.q": Entry(0.3, report),
    "gate.minimum_trades": Entry(31, report),
    "gate.regime_minimum": Entry(31, report, PROVEN),
    "gate.bet_unit": Entry("trade", report),
    "gate.winsor_low": Entry(-1.0, report),
    "gate.winsor_high": Entry(1.0, report),
    "gate.reference_r": Entry(0.3, report),
    "judge.minimum_eligible_playbooks": Entry(4, BANNED),
    "judge.action_ttl_bars": Entry(400, report, PROVEN),
    "judge.shadow_ttl_bars": Entry(1_000, report),
    "judge.promotion_minimum_trades": Entry(26, trial),
    "judge.promotion_alpha": Entry(0.1, trial),
    "judge.max_open_experiments": Entry(0, TRIED),
    "memory.budget_ms": Entry(1e-6, LATE_READS, {"memory.budget_ms": 1e9}),
}
