"""Ways to spoil a right plan, one at a time: each a pure function with the codes that must be found.

A fault that has no place in a plan returns None.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from schemas.no_learn import NoLearnZone
from schemas.reasons import MOST_REASONS, PlanReason
from schemas.reflection import PolicyLevelReflectionRequest
from schemas.regime import RegimeLabels
from schemas.vocabulary import Structure, Trend, VolatilityBand
from services.playbooks.rendering import number_text, render_rules, rule_texts
from services.policy_checks.expectation import expectation_of
from services.policy_checks.plan_levels import PlanLevels, read_levels
from tests.services.policy_checks.plans import (
    DAY,
    NOW,
    PLAYBOOKS,
    account,
    acting,
    changed,
    estimate,
    held,
    summary,
)

Request = PolicyLevelReflectionRequest
Spoil = Callable[[Request], Request | None]


@dataclass(frozen=True)
class Fault:
    """One way to spoil a plan, and the codes that all have to be found."""

    name: str
    codes: tuple[str, ...]
    spoil: Spoil


FAULTS: list[Fault] = []


def fault(*codes: str) -> Callable[[Spoil], Spoil]:
    """Register an operator with the codes that it must bring about."""

    def register(spoil: Spoil) -> Spoil:
        FAULTS.append(Fault(spoil.__name__, codes, spoil))
        return spoil

    return register


def plan(request: Request, **fields: Any) -> Request:
    """The request with other values in its proposal."""
    return changed(request, {"proposal": changed(request.proposal, fields)})


def sign(request: Request) -> float:
    return 1.0 if request.proposal.direction == "long" else -1.0


def levels(request: Request) -> PlanLevels:
    """Levels of a right plan: all of them are known."""
    return read_levels(request)


def priced(price: float) -> str:
    return number_text(price)


def ahead(request: Request, share_of_risk: float) -> str | None:
    """A price so many planned risks ahead of the entry; None where there is no such price."""
    read = levels(request)
    assert read.entry is not None
    assert read.risk is not None
    price = read.entry + sign(request) * share_of_risk * read.risk
    return priced(price) if price > 0 else None


def against(request: Request, share_of_risk: float) -> str:
    price = ahead(request, -share_of_risk)
    assert price is not None
    return price


@fault("stop_on_wrong_side", "target_on_wrong_side", "rules_differ_from_playbook")
def flipped_direction(request: Request) -> Request:
    other = "short" if request.proposal.direction == "long" else "long"
    return plan(request, direction=other)


@fault("stop_on_wrong_side")
def stop_on_the_winning_side(request: Request) -> Request:
    return plan(acting(request), stop=ahead(request, 0.5))


@fault("stop_on_wrong_side")
def stop_at_the_entry(request: Request) -> Request:
    return plan(request, stop=request.proposal.entry or "close")


@fault("target_on_wrong_side")
def target_on_the_losing_side(request: Request) -> Request:
    return plan(acting(request), target=against(request, 0.5))


@fault("target_on_wrong_side", "stop_on_wrong_side")
def stop_and_target_exchanged(request: Request) -> Request:
    return plan(request, stop=request.proposal.target, target=request.proposal.stop)


@fault("level_not_a_price")
def level_below_zero(request: Request) -> Request:
    role = "stop" if request.proposal.direction == "long" else "target"
    return plan(acting(request), **{role: "close - 2 * close"})


@fault("level_unknown")
def stop_that_needs_bars_before(request: Request) -> Request:
    return plan(request, stop="prev(low, 3)" if sign(request) > 0 else "prev(high, 3)")


@fault("entry_on_wrong_side", "orders_differ_from_playbook")
def limit_beyond_the_market(request: Request) -> Request:
    price = priced(request.snapshot.close * (1.0 + 0.01 * sign(request)))
    refinement = {"refinement": None, "refinement_kind": "stop"}
    return plan(acting(request), entry_kind="limit", entry=price, **refinement)


@fault("invalidation_beyond_stop")
def invalidation_beyond_the_stop(request: Request) -> Request:
    return plan(request, invalidation=_beyond(request, against(request, 1.1)))


@fault("invalidation_already_true")
def invalidation_true_already(request: Request) -> Request:
    close = request.snapshot.close
    return plan(acting(request), invalidation=_beyond(request, priced(close * (1.0 + 0.001 * sign(request)))))


@fault("invalidation_contradicts_direction")
def invalidation_fires_with_the_plan(request: Request) -> Request:
    op = ">" if sign(request) > 0 else "<"
    return plan(request, invalidation=f"close {op} {ahead(request, 0.4)}")


@fault("invalidation_never_fires")
def invalidation_that_no_price_reaches(request: Request) -> Request:
    op, side = ("<", "-") if sign(request) > 0 else (">", "+")
    return plan(request, invalidation=f"close {op} close {side} 2 * atr_14")


def _beyond(request: Request, price: str) -> str:
    return f"close {'<' if sign(request) > 0 else '>'} {price}"


@fault("missing_entry")
def setup_missing(request: Request) -> Request:
    return plan(request, setup=" ")


@fault("missing_entry")
def activation_blank(request: Request) -> Request:
    return plan(request, activation="\t")


@fault("missing_stop")
def stop_missing(request: Request) -> Request:
    return plan(request, stop="")


@fault("missing_target")
def target_missing(request: Request) -> Request:
    return plan(request, target="  ")


@fault("missing_invalidation")
def invalidation_missing(request: Request) -> Request:
    return plan(request, invalidation="\n")


@fault("unreachable", "rules_differ_from_playbook")
def setup_beyond_its_feature(request: Request) -> Request:
    return plan(request, setup="rsi_14 > 101")


@fault("unreachable", "rules_differ_from_playbook")
def setup_that_contradicts_itself(request: Request) -> Request:
    return plan(request, setup=f"({request.proposal.setup}) and close > ema_20 and close < ema_20")


@fault("unreachable")
def activation_that_cannot_fire(request: Request) -> Request:
    return plan(request, activation="between(rsi_14, 70, 30)")


@fault("tautology")
def activation_that_is_always_true(request: Request) -> Request:
    return plan(request, activation="close >= close")


@fault("tautology")
def setup_that_is_always_true(request: Request) -> Request:
    return plan(request, setup="rsi_14 >= 0 or close > ema_20")


@fault("rule_invalid")
def feature_that_does_not_exist(request: Request) -> Request:
    return plan(request, stop=request.proposal.stop.replace("atr_14", "art_14"))


@fault("rule_invalid")
def condition_where_a_price_belongs(request: Request) -> Request:
    return plan(request, target="close > ema_20")


@fault("rule_invalid")
def price_where_a_condition_belongs(request: Request) -> Request:
    return plan(request, setup="ema_20 + atr_14")


@fault("rule_invalid")
def prose_instead_of_a_rule(request: Request) -> Request:
    return plan(request, invalidation="leave when it stops working")


@fault("rule_invalid")
def rule_cut_in_the_middle(request: Request) -> Request:
    stop = request.proposal.stop
    return plan(request, stop=f"{stop[: len(stop) // 2]} *")


@fault("rules_differ_from_playbook")
def rules_of_another_playbook(request: Request) -> Request:
    other = next(
        playbook
        for playbook in PLAYBOOKS
        if playbook.id != request.playbook.id and playbook.entry_kind == "market"
    )
    texts = rule_texts(render_rules(other, request.proposal.direction))
    return plan(request, **{role: texts[role] for role in ("setup", "stop", "target", "invalidation")})


@fault("rules_differ_from_playbook")
def parameter_off_its_grid(request: Request) -> Request:
    off = request.playbook.parameters["stop_atr"].grid[-1] + 0.3
    texts = rule_texts(render_rules(request.playbook, request.proposal.direction, {"stop_atr": off}))
    return plan(request, stop=texts["stop"], target=texts["target"])


@fault("rules_differ_from_playbook")
def trail_of_its_own(request: Request) -> Request:
    return plan(request, trail=request.proposal.stop if request.proposal.trail is None else None)


@fault("orders_differ_from_playbook")
def break_even_of_its_own(request: Request) -> Request:
    return plan(request, break_even_r=0.7)


@fault("orders_differ_from_playbook")
def scale_out_of_its_own(request: Request) -> Request:
    return plan(request, scale_out_r=0.6, scale_out_share=0.2)


@fault("scale_out_beyond_target")
def scale_out_behind_the_target(request: Request) -> Request:
    return plan(request, scale_out_r=12.0, scale_out_share=0.5)


@fault("break_even_beyond_target")
def break_even_behind_the_target(request: Request) -> Request:
    return plan(request, break_even_r=12.0)


@fault("horizon_exceeds_playbook")
def horizon_longer_than_the_playbooks(request: Request) -> Request:
    return plan(request, horizon_bars=request.playbook.horizon_bars + 1)


@fault("activation_window_exceeds_playbook")
def window_longer_than_the_playbooks(request: Request) -> Request:
    return plan(request, activation_window_bars=request.playbook.activation_window_bars + 1)


@fault("horizon_over_bound")
def horizon_over_the_bound(request: Request) -> Request:
    return plan(request, horizon_bars=request.invariants.max_horizon_bars + 1)


@fault("activation_window_over_bound")
def window_over_the_bound(request: Request) -> Request:
    return plan(request, activation_window_bars=request.invariants.max_activation_window_bars + 1)


@fault("over_confident")
def almost_certain(request: Request) -> Request:
    return plan(request, conviction=0.97)


@fault("over_confident")
def conviction_just_above_what_the_hit_rate_allows(request: Request) -> Request:
    return plan(request, conviction=expectation_of(request).hit_rate + 0.251)


@fault("horizon_too_long")
def horizon_far_beyond_p90(request: Request) -> Request | None:
    bars = request.proposal.horizon_bars
    if bars < 4:
        return None
    return _expecting(request, hold_p50_bars=1.0, hold_p90_bars=bars / 2 - 0.6)


@fault("horizon_too_short")
def horizon_below_p50(request: Request) -> Request:
    return plan(request, horizon_bars=1)


@fault("stop_inside_winner_mae")
def stop_inside_the_excursion_of_winners(request: Request) -> Request:
    return plan(request, stop=against(request, 0.2))


@fault("stop_inside_winner_mae")
def winners_that_went_as_far_as_the_stop(request: Request) -> Request:
    return _expecting(request, winner_mae_p80_r=-1.6)


@fault("target_beyond_mfe")
def target_beyond_three_best_excursions(request: Request) -> Request | None:
    target = ahead(request, 3.0 * 1.6 + 1.0)
    return None if target is None else plan(_expecting(request, mfe_p50_r=1.0), target=target)


@fault("target_beyond_mfe")
def excursions_that_never_came_near_the_target(request: Request) -> Request:
    return _expecting(acting(request), mfe_p50_r=0.25)


@fault("reward_to_risk_too_low")
def target_too_near(request: Request) -> Request:
    return plan(request, target=ahead(request, 0.5))


@fault("reward_to_risk_too_low")
def costs_that_eat_the_reward(request: Request) -> Request:
    risk = levels(request).risk
    assert risk is not None
    bps = 0.75 * risk / request.snapshot.close * 10_000
    return changed(acting(request), {"invariants.cost_bps_per_side": bps})


def _expecting(request: Request, **measured: float) -> Request:
    known = changed(expectation_of(request), measured | {"n": 200})
    return changed(request, {"snapshot.expectations": (known,)})


@fault("exposure_cap_reached")
def exposure_cap_broken(request: Request) -> Request:
    return changed(request, account(gross_exposure=1.01))


@fault("symbol_not_allowed")
def banned_symbol(request: Request) -> Request:
    return changed(request, {"invariants.allowed_symbols": ("ZZZ",)})


@fault("playbook_not_allowed")
def banned_playbook(request: Request) -> Request:
    return changed(request, {"invariants.allowed_playbooks": ("another",)})


@fault("direction_not_allowed")
def banned_direction(request: Request) -> Request:
    other = "short" if request.proposal.direction == "long" else "long"
    return changed(request, {"invariants.allowed_directions": (other,)})


@fault("direction_not_in_playbook")
def direction_the_playbook_has_not(request: Request) -> Request:
    other = "short" if request.proposal.direction == "long" else "long"
    fields = ("rules", "eligibility")
    left = {name: {other: getattr(request.playbook, name)[other]} for name in fields}
    return changed(request, {"playbook": changed(request.playbook, left)})


@fault("kill_switch")
def kill_switch_on(request: Request) -> Request:
    return changed(request, account(kill_switch=True))


@fault("trading_halted")
def daily_loss_halted_entries(request: Request) -> Request:
    return changed(request, account(halted=True) | {"snapshot.risk.daily_loss": 0.04})


@fault("no_learn_zone_active")
def no_learn_zone_now(request: Request) -> Request:
    return _zone(request, NoLearnZone(start=NOW - DAY, end=NOW + DAY, reason="feed gap"))


@fault("no_learn_zone_cited")
def no_learn_day_cited(request: Request) -> Request:
    zoned = _zone(request, NoLearnZone(start=NOW - 3 * DAY, end=NOW - 2 * DAY, reason="halt"))
    return plan(zoned, rationale=f"{request.proposal.rationale} It looks like 2009-12-29 again.")


@fault("no_learn_zone_cited")
def no_learn_reason_cited(request: Request) -> Request:
    symbol = request.snapshot.symbol
    zone = NoLearnZone(start=NOW - 9 * DAY, end=NOW - 8 * DAY, symbol=symbol, reason="exchange halt")
    return plan(_zone(request, zone), thesis=f"{request.proposal.thesis} As after the Exchange Halt.")


def _zone(request: Request, zone: NoLearnZone) -> Request:
    return changed(request, {"invariants.no_learn_zones": (zone,)})


@fault("stale_snapshot")
def bar_too_old(request: Request) -> Request:
    return changed(request, {"snapshot.staleness_bars": 3})


@fault("entry_while_in_position")
def entry_on_top_of_a_position(request: Request) -> Request:
    return changed(request, held(request))


@fault("playbook_mismatch")
def playbook_of_another_name(request: Request) -> Request:
    return changed(request, {"proposal.playbook_id": "another", "invariants.allowed_playbooks": ()})


@fault("playbook_disabled")
def playbook_switched_off(request: Request) -> Request:
    return changed(request, {"playbook.enabled": False})


@fault("playbook_from_the_future")
def playbook_not_known_yet(request: Request) -> Request:
    return changed(request, {"playbook.known_at": NOW + 1})


@fault("playbook_not_eligible")
def regime_not_eligible(request: Request) -> Request:
    wrong = RegimeLabels(
        trend=Trend.DOWN if sign(request) > 0 else Trend.UP,
        volatility=VolatilityBand.EXTREME,
        structure=Structure.NEUTRAL,
    )
    return changed(request, {"snapshot.regime.labels": wrong})


@fault("playbook_not_eligible")
def regime_banned_by_a_lesson(request: Request) -> Request:
    regime = request.snapshot.regime
    assert regime is not None
    direction = request.proposal.direction
    banned = changed(request.playbook.eligibility[direction], {"banned": (regime.labels.key,)})
    return changed(request, {f"playbook.eligibility.{direction}": banned})


@fault("regime_unknown")
def regime_missing(request: Request) -> Request:
    return changed(request, {"snapshot.regime": None})


@fault("timeframe_not_eligible")
def timeframe_of_another_playbook(request: Request) -> Request:
    return changed(request, {"playbook.timeframes": ("1w",)})


@fault("memory_contradicts")
def place_where_less_than_nothing_is_earned(request: Request) -> Request:
    lost = summary(
        winners=(1.0,),
        losers=(-1.0, -0.9, -1.1, -1.0),
        population=(10, 190),
        of=request.playbook.id,
        estimates=(estimate(),),
    )
    sure = expectation_of(request).hit_rate  # a plan that doubts itself may stay
    return changed(request, {"memory": lost, "proposal.conviction": sure})


@fault("rationale_misses_playbook")
def reasons_beside_the_playbook(request: Request) -> Request:
    reasons = (PlanReason(kind="regime", name="trend"), PlanReason(kind="case_rate", name="all"))
    return plan(request, because=reasons)


@fault("reason_not_so")
def reason_of_a_rule_that_is_not_true(request: Request) -> Request | None:
    because = (*request.proposal.because, PlanReason(kind="rule", name="activation"))
    if any(reason.name == "activation" for reason in request.proposal.because):
        return None
    return plan(request, because=because[-MOST_REASONS:])


@fault("reason_not_so")
def reason_of_a_feature_that_no_rule_uses(request: Request) -> Request:
    features = {**request.snapshot.features, "adx_99": 31.0}
    because = (request.proposal.because[0], PlanReason(kind="feature", name="adx_99"))
    return changed(plan(request, because=because), {"snapshot.features": features})


@fault("text_contradicts_direction")
def text_that_orders_the_other_side(request: Request) -> Request:
    order = "Sell short here." if request.proposal.direction == "long" else "Buy the dip."
    return plan(request, rationale=f"{request.proposal.rationale} {order}")


@fault("text_contradicts_direction")
def author_who_argues_for_neither(request: Request) -> Request:
    return plan(request, argues_for="neither")


@fault("text_contradicts_direction")
def author_who_argues_for_the_other_direction(request: Request) -> Request:
    return plan(request, argues_for="short" if request.proposal.direction == "long" else "long")
