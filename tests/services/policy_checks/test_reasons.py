"""Reasons are names: code says whether each holds, writes its words, and refuses a plan that they miss."""

import re

import pytest

from schemas.background import DecisionBackground, FoundLesson, LessonInForce, RecentBar
from schemas.reasons import PlanReason
from schemas.vocabulary import EvidenceGrade
from services.model_calls.wording import Wordings
from services.policy_checks.coherence import check_coherence
from services.policy_checks.plan_levels import read_levels
from services.policy_checks.reasons import (
    describe_reasons,
    holds,
    rationale_of,
    reason_names,
    reasons_of_rules,
    truth_at_close,
    unknown_reasons,
    with_reasons,
)
from tests.services.policy_checks.plans import PLANS, changed, codes, right_request
from tests.services.policy_checks.right_plans import right_plans

REQUEST = right_request()
ARMED = {"low": 98.0, "trend_strength_20_50": 1.0}  # the setup of a long pullback is true
BACKGROUND = DecisionBackground(
    snapshot_hash=REQUEST.snapshot.content_hash,
    recent_bars=(
        RecentBar(
            bars_ago=1, close_return=-0.0123, close_return_rank=0.1, range_share=0.02, range_share_rank=0.5,
            volume=1e6, volume_rank=None,
        ),
    ),
    cases=(),
    last_plans=(),
    lessons=(LessonInForce(playbook_id="trend_pullback", version=3, since=0, expires_at=None, reason="x"),),
    findings=(
        FoundLesson(
            playbook_id="mean_reversion", regime="up/low", n=31, mean_r=-0.2, lower_r=None, upper_r=None,
            grade=EvidenceGrade.SUGGESTIVE, reason="x",
        ),
    ),
)  # fmt: skip


def reason(kind, name):
    return PlanReason(kind=kind, name=name)


def with_features(request=REQUEST, **features):
    return changed(request, {"snapshot.features": {**request.snapshot.features, **features}})


def found(because, **features):
    request = changed(with_features(**features), {"proposal.because": tuple(because)})
    return check_coherence(request, read_levels(request))


@pytest.mark.parametrize(
    ("text", "truth"),
    [
        ("close > ema_20", True),
        ("close < ema_20", False),
        ("close > prev(close, 1)", None),
        ("close < ema_20 and close > prev(close, 1)", False),
        ("crosses_above(close, ema_20)", None),
        ("close > sma_200", None),
        ("ema_20 + atr_14", None),
        ("leave when it stops working", None),
    ],
)
def test_truth_at_close_is_what_the_snapshot_shows_and_unknown_without_the_bars_before(text, truth):
    snapshot = changed(REQUEST.snapshot, {"features": {**REQUEST.snapshot.features, "sma_200": None}})
    assert truth_at_close(text, snapshot) is truth


@pytest.mark.parametrize(("playbook", "direction"), PLANS)
def test_reasons_of_rules_hold_and_pass_for_every_playbook(playbook, direction):
    request = right_request(playbook, direction)
    plan = with_reasons(request.proposal, request.snapshot)
    assert plan.because
    assert codes(check_coherence(changed(request, {"proposal": plan}), read_levels(request))) == []
    judged = [named for named in plan.because if named.kind in ("rule", "feature")]
    assert judged
    assert all(holds(named, plan, playbook, request.snapshot) for named in judged)


def test_reasons_of_rules_name_the_rules_that_are_true_at_this_close_and_no_other():
    for right in right_plans("tuned"):
        plan, snapshot = right.request.proposal, right.request.snapshot
        named = {known.name for known in reasons_of_rules(plan, snapshot) if known.kind == "rule"}
        texts = {role: getattr(plan, role) for role in ("setup", "activation")}
        assert named == {role for role, text in texts.items() if text and truth_at_close(text, snapshot)}


def test_rationale_is_written_from_the_snapshot():
    request = with_features(**ARMED)
    because = [reason("rule", "setup"), reason("feature", "atr_14"), reason("case_rate", "all")]
    because += [reason("case_rate", "trend_pullback"), reason("regime", "volatility")]
    text = rationale_of(because, request.proposal, request.snapshot)
    assert text == (
        f"Long by trend_pullback: its setup, {request.proposal.setup}, is true at this close; atr_14 is 2; "
        "of 1000 resolved trades 500 won and 450 lost; trend_pullback is expected to win 40% of its trades "
        "and to make +0.00R with each, by its design and 40 resolved trades; the volatility is low."
    )


def test_rationale_says_of_a_rule_what_it_is():
    snapshot = with_features(low=99.9, trend_strength_20_50=0.0).snapshot
    assert "is not true at this close" in rationale_of([reason("rule", "setup")], REQUEST.proposal, snapshot)


def test_rationale_of_bars_and_lessons_is_written_from_the_background():
    because = [
        reason("recent_bar", "1"),
        reason("lesson", "trend_pullback"),
        reason("lesson", "mean_reversion"),
    ]
    assert describe_reasons(because, REQUEST.snapshot, BACKGROUND) == [
        "1 bar ago there was a close -1.23% from the one before, above 10% of its last ones, a range of "
        "2.00% of the close, above 50% of its last ones",
        "version 3 of trend_pullback is in force by a lesson",
        "the last report finds mean_reversion suggestive in up/low over 31 trades, at -0.20R each",
    ]


def test_rationale_in_disguise_has_the_prices_of_the_question():
    snapshot = with_features(ema_20=99.0).snapshot.model_copy(update={"close": 50.0})
    wording = Wordings.of_run(("AAA",), anonymise=True).of(snapshot)
    (clause,) = describe_reasons([reason("feature", "ema_20")], snapshot, wording=wording)
    assert clause == "ema_20 is 198"


def test_reason_names_are_those_that_are_shown():
    names = reason_names(with_features(rsi_14=None).snapshot, BACKGROUND, REQUEST.proposal)
    assert "rsi_14" not in names["feature"]
    assert names["case_rate"] == ("all", "trend_pullback")
    assert (names["recent_bar"], names["lesson"]) == (("1",), ("trend_pullback", "mean_reversion"))
    assert names["rule"] == ("setup",)
    given = [reason("feature", "rsi_14"), reason("feature", "close"), reason("recent_bar", "0")]
    assert unknown_reasons(given, names) == [given[0], given[2]]


@pytest.mark.parametrize(
    ("because", "features", "code"),
    [
        ([("regime", "trend"), ("case_rate", "all")], ARMED, "rationale_misses_playbook"),
        ([("rule", "invalidation")], ARMED, "rationale_misses_playbook"),
        ([("rule", "setup")], {"trend_strength_20_50": 0.0}, "rationale_misses_playbook"),
        ([("feature", "volume")], {"volume": 1e6}, "rationale_misses_playbook"),
        ([("feature", "atr_14"), ("rule", "setup")], {"trend_strength_20_50": 0.0}, "reason_not_so"),
        ([("feature", "atr_14"), ("feature", "volume")], {"volume": 1e6}, "reason_not_so"),
        (
            [("feature", "atr_14"), ("feature", "trend_strength_20_50")],
            {"trend_strength_20_50": 0.0},
            "reason_not_so",
        ),
    ],
)
def test_reasons_that_miss_the_playbook_or_are_not_so_are_found(because, features, code):
    assert codes(found([reason(*named) for named in because], **features)) == [code]


@pytest.mark.parametrize(
    ("because", "features"),
    [
        ([], {}),
        ([("rule", "setup")], ARMED),
        ([("feature", "trend_strength_20_50")], ARMED),
        ([("feature", "trend_strength_20_50")], {"trend_strength_20_50": None, "low": 98.0}),
        ([("feature", "atr_14"), ("case_rate", "all"), ("lesson", "x"), ("recent_bar", "3")], {}),
    ],
)
def test_reasons_of_the_plans_rules_pass_and_nothing_else_is_judged(because, features):
    assert codes(found([reason(*named) for named in because], **features)) == []


def test_rationale_of_rules_holds_no_figure_that_its_snapshot_does_not():
    for right in right_plans("held_out"):
        plan, snapshot = right.request.proposal, right.request.snapshot
        shown = {f"{value:.6g}" for value in snapshot.features.values() if value is not None}
        rules = f"{plan.setup} {plan.activation}"
        text = plan.rationale.partition(": ")[2].replace(rules, "")
        for name, value in re.findall(r"(?:^|; )(\w+) is (-?[\d.]+(?:e[+-]?\d+)?)(?=;|\.$)", text):
            assert value in shown
            assert f"{snapshot.features[name]:.6g}" == value
