"""Moves of decisions in pairs: counts, exact tests against scipy, Holm by hand."""

import pytest
from scipy.stats import binom, binomtest

from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import PlanKind
from tests.each_case import check_each
from tests.services.policy_checks.plans import right_request
from worker.studies.ask_again.asking import Answer
from worker.studies.ask_again.figures import compare, detectable_share, holm, moves, tally, usual
from worker.studies.ask_again.strategist import name_decision

PAIRS = (
    [("hold", "hold")] * 20
    + [("propose a long", "abstain")] * 9
    + [("abstain", "propose a long")]
    + [("propose a long", "propose b short")] * 3
)


def test_moves_are_counted_from_what_to_what_most_frequent_first():
    assert tally([before for before, _ in PAIRS]) == {"abstain": 1, "hold": 20, "propose a long": 12}
    assert moves(PAIRS) == [
        {"from": "propose a long", "to": "abstain", "count": 9},
        {"from": "propose a long", "to": "propose b short", "count": 3},
        {"from": "abstain", "to": "propose a long", "count": 1},
    ]


def compared(*others):
    """The comparisons of arms that were each asked once, the first arm being that of the first pairs."""
    tables = [[[Answer(before)] for before, _ in others[0]]]
    tables += [[[Answer(after)] for _, after in pairs] for pairs in others]
    return compare([[usual(row) for row in table] for table in tables], tables)


def test_compared_arms_are_tested_exactly_by_decision_and_adjusted_by_holm():
    (test,) = compared(PAIRS)
    found = {item["decision"]: item for item in test["by_decision"]}
    assert set(found) == {"propose a long", "abstain", "propose b short"}
    for name, (entered, left) in {
        "propose a long": (1, 12),
        "abstain": (9, 1),
        "propose b short": (3, 0),
    }.items():
        assert (found[name]["entered"], found[name]["left"]) == (entered, left)
        assert found[name]["p_value"] == pytest.approx(binomtest(entered, entered + left).pvalue)
    raw = {name: item["p_value"] for name, item in found.items()}
    assert found["propose a long"]["p_adjusted"] == pytest.approx(3 * raw["propose a long"])
    assert found["abstain"]["p_adjusted"] == pytest.approx(2 * raw["abstain"])
    assert found["propose b short"]["p_adjusted"] == pytest.approx(raw["propose b short"])
    assert test["p_value"] == found["propose a long"]["p_adjusted"]


def test_compared_arms_share_their_level_over_all_comparisons():
    moved = [("hold", "tighten")] * 6 + [("hold", "hold")] * 4
    (alone,) = compared(moved)
    assert alone["p_value"] == pytest.approx(2 * 0.5**6), "what one of two decisions loses the other wins"
    one, other = compared(moved, moved)
    assert one["p_value"] == other["p_value"] == pytest.approx(2 * alone["p_value"])
    assert one["detectable_share"] > alone["detectable_share"]


def test_compared_arms_that_do_not_differ_have_no_p_value():
    (test,) = compared([("hold", "hold")])
    assert (test["p_value"], test["by_decision"], test["detectable_share"]) == (None, [], None)


def test_usual_decision_is_the_most_frequent_of_the_replies_and_the_first_of_equals():
    failed = Answer("network", replied=False)
    assert usual([failed, failed, Answer("a"), Answer("b"), Answer("b")]) == "b"
    assert usual([Answer("b"), Answer("a")]) == "b"
    assert usual([failed]) is None


@pytest.mark.parametrize(("questions", "tests", "needed"), [(6, 1, 6), (20, 1, 6), (50, 3, 7), (200, 10, 9)])
def test_detectable_share_is_found_with_a_power_of_four_fifths(questions, tests, needed):
    share = detectable_share(questions, tests)
    assert share is not None
    assert 2 * 0.5**needed <= 0.05 / tests < 2 * 0.5 ** (needed - 1)
    assert binom.sf(needed - 1, questions, share) == pytest.approx(0.8)
    assert detectable_share(needed - 1, tests) is None


def test_holm_never_falls_below_a_smaller_p_value_nor_rises_above_one():
    assert holm({"a": 0.02, "b": 0.01, "c": 0.9}) == {"b": 0.03, "a": 0.04, "c": 0.9}
    assert holm({"a": 0.4, "b": 0.3}) == {"b": 0.6, "a": 0.6}
    assert holm({"a": 0.8, "b": 0.7}) == {"a": 1.0, "b": 1.0}


@check_each("kind", list(PlanKind))
@check_each("fallback", [None, "refusal", "timeout", "reply_malformed", "network", "budget"])
def test_decided_names_every_outcome_apart(kind, fallback):
    proposal = right_request().proposal if kind is PlanKind.PROPOSE else None
    reply = name_decision(StrategistAnswer(kind=kind, reason="r", proposal=proposal, fallback=fallback))
    if fallback is not None:
        assert (reply.decision, reply.plan) == (fallback, None), "the rules' answer is not the model's"
        assert reply.replied == (fallback not in ("network", "budget"))
    elif proposal is not None:
        assert (reply.decision, reply.plan) == ("propose trend_pullback long", proposal.content_hash)
    else:
        assert (reply.decision, reply.plan, reply.replied) == (str(kind), None, True)
