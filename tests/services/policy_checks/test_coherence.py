from typing import Any, cast

import pytest

from schemas.regime import RegimeLabels
from schemas.vocabulary import Severity
from services.playbooks.rendering import render_rules
from services.policy_checks.coherence import check_coherence, lint_findings
from services.policy_checks.plan_levels import read_levels
from tests.each_case import check_each
from tests.services.policy_checks.plans import (
    PLAN_IDS,
    PLANS,
    acting,
    changed,
    codes,
    playbook_named,
    right_request,
)
from trading_core.rules import LintFinding

EVERY_PLAN = check_each(("playbook", "direction"), PLANS, ids=PLAN_IDS)


def check(request, lint=()):
    return check_coherence(request, read_levels(request), lint)


def other(direction):
    return "short" if direction == "long" else "long"


def sides(direction):
    return ("-", "+") if direction == "long" else ("+", "-")


@EVERY_PLAN
def test_coherence_right_plan_finds_nothing(playbook, direction):
    assert check(right_request(playbook, direction)) == ()


@EVERY_PLAN
def test_coherence_flipped_direction_is_found_in_text_and_levels(playbook, direction):
    request = right_request(playbook, direction)
    flipped = changed(
        request,
        {
            "proposal.direction": other(direction),
            "snapshot.regime.labels": _labels_for(playbook, other(direction)),
        },
    )
    found = codes(check(flipped))
    assert "stop_on_wrong_side" in found
    assert "target_on_wrong_side" in found
    assert "text_contradicts_direction" in found
    assert "rules_differ_from_playbook" in found


@EVERY_PLAN
@check_each("role", ["setup", "stop", "target", "invalidation"])
def test_coherence_broken_rule_is_found_with_its_role(role, playbook, direction):
    found = check(changed(right_request(playbook, direction), {f"proposal.{role}": "close >"}))
    assert [f.evidence for f in found if f.code == "rule_invalid"] == [(role,)]
    assert all(f.severity is Severity.MAJOR for f in found)


def test_coherence_unknown_feature_error_names_the_nearest():
    found = check(changed(right_request(), {"proposal.stop": "close - 2 * art_14"}))
    assert any("atr_14" in f.message for f in found if f.code == "rule_invalid")


@pytest.mark.parametrize(
    ("direction", "stop", "message"),
    [
        ("long", "102", "the stop 102.0 of a long plan must lie below the close 100.0"),
        ("short", "98", "the stop 98.0 of a short plan must lie above the close 100.0"),
    ],
)
def test_coherence_level_on_the_wrong_side_message_says_where_it_must_lie(direction, stop, message):
    request = changed(acting(right_request(direction=direction)), {"proposal.stop": stop})
    assert message in [f.message for f in check(request)]


def test_coherence_stop_at_zero_is_no_price():
    assert "level_not_a_price" in codes(check(changed(acting(right_request()), {"proposal.stop": "0"})))


def test_coherence_reward_exactly_at_the_minimum_finds_nothing_about_it():
    free = {"proposal.stop": "96", "proposal.target": "102", "invariants.cost_bps_per_side": 0.0}
    at, above = {"invariants.min_reward_to_risk": 0.5}, {"invariants.min_reward_to_risk": 0.51}
    assert "reward_to_risk_too_low" not in codes(check(changed(right_request(), free | at)))
    assert "reward_to_risk_too_low" in codes(check(changed(right_request(), free | above)))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("close < 99.99", []),
        ("close < 96.07", []),
        ("close < 96", ["invalidation_beyond_stop"]),
        ("close <= 96", ["invalidation_beyond_stop"]),
        ("close < 100", []),
        ("close <= 100", ["invalidation_already_true"]),
    ],
)
def test_coherence_invalidation_at_the_ends_of_the_way_to_the_stop_is_told_apart(text, found):
    request = changed(acting(right_request()), {"proposal.stop": "96", "proposal.invalidation": text})
    assert [code for code in codes(check(request)) if code.startswith("invalidation")] == found


@pytest.mark.parametrize(
    ("text", "found"), [("low < 99.5", True), ("high > 100.5", True), ("low < 99.3", False)]
)
def test_coherence_invalidation_on_the_bars_extremes_is_read_where_they_lie(text, found):
    request = changed(acting(right_request()), {"proposal.invalidation": text})
    extremes = dict(request.snapshot.features) | {"low": 99.4, "high": 100.6}
    request = changed(request, {"snapshot.features": extremes})
    assert ("invalidation_already_true" in codes(check(request))) is found


@EVERY_PLAN
def test_coherence_invalidation_far_beyond_the_stop_is_found(playbook, direction):
    text = "close < ema_20 - 20 * atr_14" if direction == "long" else "close > ema_20 + 20 * atr_14"
    request = changed(right_request(playbook, direction), {"proposal.invalidation": text})
    features = request.snapshot.features | {"ema_20": 100.0}
    assert "invalidation_beyond_stop" in codes(check(changed(request, {"snapshot.features": features})))


@EVERY_PLAN
@check_each("form", ["close {op} close {away} 2 * atr_14", "close < 0 - 1"])
def test_coherence_invalidation_that_no_price_makes_true_is_found(form, playbook, direction):
    away, _ = sides(direction)
    text = form.format(op="<" if direction == "long" else ">", away=away)
    request = changed(right_request(playbook, direction), {"proposal.invalidation": text})
    assert "invalidation_never_fires" in codes(check(request))


@EVERY_PLAN
@check_each("form", ["close {op} {level}", "not close {inverse} {level}", "crosses_{cross}(close, {level})"])
def test_coherence_invalidation_that_fires_on_success_is_found(form, playbook, direction):
    up = direction == "long"
    text = form.format(
        op=">" if up else "<",
        inverse="<=" if up else ">=",
        cross="above" if up else "below",
        level="102" if up else "98",
    )
    request = changed(right_request(playbook, direction), {"proposal.invalidation": text})
    assert "invalidation_contradicts_direction" in codes(check(request))


@pytest.mark.parametrize(
    "text",
    [
        "close < ema_20 - 0.5 * atr_14",
        "not close >= ema_20",
        "crosses_below(close, ema_20)",
        "low < ema_20 - atr_14 or rsi_14 < 30",
        "close - ema_20 < -0.25 * atr_14",
        "trend_strength_20_50 < 0",
    ],
)
def test_coherence_invalidation_on_the_way_to_the_stop_in_any_form_finds_nothing_about_it(text):
    request = changed(right_request(), {"proposal.invalidation": text})
    features = request.snapshot.features | {"rsi_14": 55.0, "trend_strength_20_50": 1.0, "low": 99.4}
    found = codes(check(changed(request, {"snapshot.features": features})))
    assert [code for code in found if code.startswith(("invalidation", "level"))] == []


def test_coherence_invalidation_needing_one_branch_only_within_reach_finds_nothing_about_it():
    text = "close < 50 or close < ema_20 - 0.5 * atr_14"
    found = codes(check(changed(right_request(), {"proposal.invalidation": text})))
    assert "invalidation_beyond_stop" not in found


@EVERY_PLAN
@check_each("missing", [None, "absent"])
def test_coherence_unknown_level_is_found(missing, playbook, direction):
    request = right_request(playbook, direction)
    features = {name: value for name, value in request.snapshot.features.items() if name != "atr_14"}
    if missing is None:
        features["atr_14"] = None
    found = check(changed(request, {"snapshot.features": features}))
    roles = ["stop", "target"] if playbook.entry_kind == "market" else ["entry", "stop", "target"]
    assert [f.evidence for f in found if f.code == "level_unknown"] == [(role,) for role in roles]


def test_coherence_unknown_invalidation_is_found():
    request = changed(right_request(), {"proposal.invalidation": "close < sma_200"})
    assert [f.evidence for f in check(request) if f.code == "level_unknown"] == [("invalidation",)]


@pytest.mark.parametrize("role", ["stop", "invalidation"])
def test_coherence_own_rule_of_a_playbook_that_needs_bars_before_is_left_to_the_engine(role):
    """What a strategist changed to such a rule is unknown all the same."""
    text = {"stop": "prev(low, 1) - 2 * atr_14", "invalidation": "prev(close, 1) < lowest_20"}[role]
    book = right_request().playbook
    rules = {**book.rules, "long": changed(book.rules["long"], {role: text})}
    own = right_request(changed(book, {"rules": rules}))
    assert not any(finding.code == "level_unknown" for finding in check(own))
    request = changed(right_request(), {f"proposal.{role}": text})
    assert [finding.evidence for finding in check(request) if finding.code == "level_unknown"] == [(role,)]


@pytest.mark.parametrize(("cost_bps", "found"), [(7.0, False), (100.0, True)])
def test_coherence_reward_to_risk_counts_the_costs_of_both_sides(cost_bps, found):
    # Risk 4 and reward 4: 0.932 after 0.14 a round trip, 0.333 after 2.
    request = changed(
        right_request(),
        {"proposal.stop": "96", "proposal.target": "104", "invariants.cost_bps_per_side": cost_bps},
    )
    assert ("reward_to_risk_too_low" in codes(check(request))) is found


@EVERY_PLAN
def test_coherence_parameter_elsewhere_on_its_grid_is_the_playbooks_own_rule(playbook, direction):
    for name, parameter in playbook.parameters.items():
        for value in parameter.grid:
            texts = render_rules(playbook, direction, {name: value}).model_dump()
            request = changed(
                right_request(playbook, direction), {f"proposal.{r}": t for r, t in texts.items()}
            )
            assert "rules_differ_from_playbook" not in codes(check(request))


def test_coherence_parameter_with_two_values_in_two_rules_is_found():
    playbook = playbook_named("trend_pullback")
    texts = render_rules(playbook, "long", {"stop_atr": 2.5}).model_dump()
    request = changed(right_request(playbook, "long"), {"proposal.stop": texts["stop"]})
    found = [f.message for f in check(request) if f.code == "rules_differ_from_playbook"]
    assert found == ["parameter 'stop_atr' is 2.5 in stop and 2.0 in target"]


def test_coherence_rule_left_out_is_found():
    request = right_request(playbook_named("momentum_continuation"))
    found = check(changed(request, {"proposal.refinement": None}))
    assert codes(found) == ["rules_differ_from_playbook"]


def test_coherence_rule_in_other_spelling_finds_nothing():
    request = right_request()
    spaced = request.proposal.stop.replace(" ", "  ").replace("min(", "min( ")
    assert check(changed(request, {"proposal.stop": f"({spaced})"})) == ()


def _labels_for(playbook, direction):
    eligible = playbook.eligibility[direction]
    return RegimeLabels(
        trend=eligible.trend[0], volatility=eligible.volatility[0], structure=eligible.structure[0]
    )


@pytest.mark.parametrize(
    ("code", "severity"),
    [
        ("unknown_feature", Severity.MAJOR),
        ("tautology", Severity.MAJOR),
        ("unreachable", Severity.MAJOR),
        ("never_fired", Severity.MINOR),
        ("always_fired", Severity.MINOR),
    ],
)
def test_coherence_lint_finding_keeps_its_code_and_role(code, severity):
    found = check(right_request(), (LintFinding(code=code, role="setup", message="x"),))
    assert [(f.code, f.severity, f.evidence) for f in found] == [(code, severity, ("setup",))]


@EVERY_PLAN
@check_each("role", ["setup", "activation", "invalidation"])
@check_each(("code", "text"), [("unreachable", "rsi_14 > 70 and rsi_14 < 30"), ("tautology", "rsi_14 >= 0")])
def test_coherence_rule_that_is_constant_is_found_without_bars(code, text, role, playbook, direction):
    found = check(changed(right_request(playbook, direction), {f"proposal.{role}": text}))
    assert [f.evidence for f in found if f.code == code] == [(role,)]


def test_coherence_constant_rule_seen_by_the_linter_too_is_found_once():
    request = changed(right_request(), {"proposal.setup": "1 > 2"})
    found = check(request, (LintFinding(code="unreachable", role="setup", message="x"),))
    assert codes(found).count("unreachable") == 1


def test_coherence_lint_code_nobody_weighed_error():
    with pytest.raises(KeyError):
        lint_findings((LintFinding(code=cast(Any, "new_code"), role="setup", message="x"),))
