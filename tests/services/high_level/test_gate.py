import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.settings import GateSettings
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from services.high_level.gate import STRENGTH, Evidence, decide, grade_of

A, G = RecommendedAction, EvidenceGrade
ALPHA = 0.1 / 24


def evidence(**changes):
    return Evidence(**({"n": 20, "e_value": 1.0, "alpha": ALPHA, "minimum": 20} | changes))


EVIDENCE = st.builds(
    Evidence,
    n=st.integers(0, 100),
    e_value=st.floats(0, 1e6),
    alpha=st.none() | st.floats(1e-4, 0.1),
    minimum=st.integers(20, 40),
    regime_cell=st.booleans(),
)


@pytest.mark.parametrize(
    ("changes", "grade"),
    [
        ({"n": 19}, G.INSUFFICIENT_SAMPLE),
        ({"n": 19, "e_value": 100.0}, G.INSUFFICIENT_SAMPLE),
        ({"n": 12, "e_value": 240.0}, G.SIGNIFICANT),
        ({"n": 20}, G.COUNT_ONLY),
        ({"e_value": 9.99}, G.COUNT_ONLY),
        ({"e_value": 10.0}, G.SUGGESTIVE),
        ({"e_value": 239.9}, G.SUGGESTIVE),
        ({"e_value": 240.0}, G.SIGNIFICANT),
        ({"e_value": 1e9, "alpha": None}, G.COUNT_ONLY),
        ({"n": 29, "minimum": 30}, G.INSUFFICIENT_SAMPLE),
    ],
)
def test_grade_at_its_limits(changes, grade):
    assert grade_of(evidence(**changes)) is grade


@pytest.mark.parametrize(
    ("mode", "actions"),
    [
        ("graded", (A.HOLD, A.RESEARCH_EXPERIMENT, A.RESEARCH_EXPERIMENT, A.REPLAN)),
        ("runbook_or", (A.HOLD, A.POLICY_ADJUST, A.POLICY_ADJUST, A.REPLAN)),
        ("significance_only", (A.HOLD, A.HOLD, A.HOLD, A.REPLAN)),
    ],
)
def test_strongest_action_by_mode_and_grade(mode, actions):
    cases = [evidence(n=5), evidence(), evidence(e_value=50.0), evidence(e_value=500.0)]
    assert tuple(decide(case, GateSettings(mode=mode)).strongest_action for case in cases) == actions


@pytest.mark.parametrize("mode", ["graded", "runbook_or", "significance_only"])
def test_regime_cell_below_the_regime_minimum_is_never_adjusted(mode):
    settings = GateSettings(mode=mode, regime_minimum=40)
    decision = decide(evidence(n=39, e_value=1e6, regime_cell=True), settings)
    assert decision.strongest_action is A.RESEARCH_EXPERIMENT
    assert decision.reason == "regime_below_minimum: 39 of 40 trades that a change of eligibility needs"
    assert decide(evidence(n=40, e_value=1e6, regime_cell=True), settings).strongest_action is A.POLICY_ADJUST


@given(EVIDENCE, st.sampled_from(["graded", "runbook_or", "significance_only"]))
def test_structural_action_needs_the_runbooks_outer_gate(case, mode):
    decision = decide(case, GateSettings(mode=mode))
    if STRENGTH[decision.strongest_action] >= STRENGTH[A.POLICY_ADJUST]:
        assert case.n >= 20 or decision.grade is G.SIGNIFICANT


@given(EVIDENCE, st.sampled_from(["graded", "significance_only"]))
def test_structural_action_needs_significance_unless_the_runbook_mode_is_chosen(case, mode):
    decision = decide(case, GateSettings(mode=mode))
    if STRENGTH[decision.strongest_action] >= STRENGTH[A.POLICY_ADJUST]:
        assert decision.grade is G.SIGNIFICANT


@given(EVIDENCE, st.floats(1, 100))
def test_more_evidence_never_weakens_the_action(case, factor):
    more = Evidence(case.n, case.e_value * factor, case.alpha, case.minimum, case.regime_cell)
    first, second = (decide(entry, GateSettings()).strongest_action for entry in (case, more))
    assert STRENGTH[second] >= STRENGTH[first]
