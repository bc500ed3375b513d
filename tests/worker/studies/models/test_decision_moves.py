"""Moves of decisions in pairs: counts, exact tests against scipy, Holm by hand."""

import pytest
from scipy.stats import binomtest

from schemas.strategist_answer import StrategistAnswer
from schemas.vocabulary import PlanKind
from tests.services.policy_checks.plans import right_request
from worker.studies.models.comparison import holm, moves, paired_test
from worker.studies.models.panel import tally
from worker.studies.models.strategist import name_decision

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


def test_paired_test_is_the_exact_one_of_each_decision_adjusted_by_holm():
    test = paired_test(PAIRS)
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


def test_paired_test_between_two_decisions_is_one_test():
    test = paired_test([("hold", "tighten")] * 6 + [("hold", "hold")] * 4)
    assert test["p_value"] == pytest.approx(2 * 0.5**6)
    assert [item["p_adjusted"] for item in test["by_decision"]] == [test["p_value"]] * 2


def test_paired_test_without_a_move_has_no_p_value():
    assert paired_test([("hold", "hold")])["p_value"] is None
    assert paired_test([])["by_decision"] == []


def test_holm_never_falls_below_a_smaller_p_value_nor_rises_above_one():
    assert holm({"a": 0.02, "b": 0.01, "c": 0.9}) == {"b": 0.03, "a": 0.04, "c": 0.9}
    assert holm({"a": 0.4, "b": 0.3}) == {"b": 0.6, "a": 0.6}
    assert holm({"a": 0.8, "b": 0.7}) == {"a": 1.0, "b": 1.0}


@pytest.mark.parametrize("kind", list(PlanKind))
@pytest.mark.parametrize("fallback", [None, "refusal", "timeout", "reply_malformed", "network", "budget"])
def test_decided_names_every_outcome_apart(kind, fallback):
    proposal = right_request().proposal if kind is PlanKind.PROPOSE else None
    said = name_decision(StrategistAnswer(kind=kind, reason="r", proposal=proposal, fallback=fallback))
    if fallback is not None:
        assert (said.decision, said.plan) == (fallback, None), "the rules' answer is not the model's"
        assert said.replied == (fallback not in ("network", "budget"))
    elif proposal is not None:
        assert (said.decision, said.plan) == ("propose trend_pullback long", proposal.content_hash)
    else:
        assert (said.decision, said.plan, said.replied) == (str(kind), None, True)
