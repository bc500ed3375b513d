"""What memory says of a plan: nothing to say, a note, a request to revise, and a look into the future."""

import pytest

from schemas.vocabulary import Severity
from services.policy_checks.memory import check_memory, needs_for_the_slow_loop
from tests.services.policy_checks.plans import (
    NOW,
    PLAN_IDS,
    PLANS,
    changed,
    codes,
    estimate,
    right_request,
    summary,
)

POOLED = estimate(basis="pooled", n=600, mean_r=0.1, lower_r=-0.1, upper_r=0.3, departs=0.1, below_zero=0.2)


def check(memory, request=None):
    return check_memory(request or right_request(), memory)


@pytest.mark.parametrize(("playbook", "direction"), PLANS, ids=PLAN_IDS)
def test_memory_right_plan_finds_nothing(playbook, direction):
    request = right_request(playbook, direction)
    assert check(request.memory, request) == ()


@pytest.mark.parametrize("found", [None, summary(estimates=(estimate(n=0, departs=0.25, below_zero=0.5),))])
def test_memory_nothing_known_is_insufficient_and_passes(found):
    assert [(f.code, f.severity) for f in check(found)] == [("memory_insufficient", Severity.INFO)]


@pytest.mark.parametrize("estimates", [(estimate(), POOLED), (POOLED, estimate(basis="pooled"))])
@pytest.mark.parametrize(("playbook", "direction"), PLANS, ids=PLAN_IDS)
def test_memory_where_it_is_different_and_below_zero_asks_for_a_revision(playbook, direction, estimates):
    request = right_request(playbook, direction)
    (found,) = check(summary(losers=(-1.0,), of=playbook.id, estimates=estimates), request)
    assert (found.code, found.severity) == ("memory_contradicts", Severity.MAJOR)
    assert found.evidence == ("l0",)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, "memory_contradicts"),
        ({"departs": 0.4}, "memory_estimate"),
        ({"departs": 0.41}, "memory_contradicts"),
        ({"below_zero": 0.5}, "memory_estimate"),
        ({"below_zero": 0.51}, "memory_contradicts"),
    ],
)
def test_memory_speaks_only_where_both_questions_are_answered_with_yes(changes, code):
    assert codes(check(summary(estimates=(estimate(**changes),)))) == [code]


def test_memory_two_estimates_that_say_yes_to_one_question_each_do_not_contradict():
    halves = (estimate(departs=0.3), estimate(basis="pooled", below_zero=0.4))
    assert codes(check(summary(estimates=halves))) == ["memory_estimate"]


def test_memory_contradiction_ends_with_a_conviction_of_half_the_hit_rate():
    request, against = right_request(), summary(estimates=(estimate(),))
    most = 0.5 * request.snapshot.expectations[0].hit_rate
    for conviction, code in ((most + 1e-9, "memory_contradicts"), (most, "memory_estimate")):
        assert codes(check(against, changed(request, {"proposal.conviction": conviction}))) == [code]


def test_memory_note_shows_mean_band_cases_both_probabilities_and_what_is_unseen():
    (found,) = check(summary(estimates=(estimate(departs=0.25), POOLED)))
    assert found.message == (
        "-0.40R here (-0.70 to -0.10) by 150 own cases, less than elsewhere 0.25, below zero 0.97, unseen "
        "below 0.64R; +0.10R here (-0.10 to +0.30) by 600 cases of all rules, as residuals, less than "
        "elsewhere 0.10, below zero 0.20, unseen below 0.64R"
    )


def test_memory_failure_mode_seen_twice_is_a_minor_finding():
    found = check(summary(winners=(1.0,), losers=(-1.0,), modes=("chop", "chop", "late_entry")))
    assert [(f.code, f.severity, f.evidence) for f in found] == [
        ("failure_pattern_recurs", Severity.MINOR, ("f0", "f1"))
    ]


def test_memory_known_after_the_snapshot_blocks():
    found = check(summary(losers=(-1.0,), known_at=NOW + 1))
    assert [(f.code, f.severity, f.evidence) for f in found] == [
        ("memory_from_the_future", Severity.BLOCKER, ("l0",))
    ]


def test_memory_case_known_at_the_snapshot_itself_is_not_late():
    assert "memory_from_the_future" not in codes(check(summary(winners=(1.0,), known_at=NOW)))


def test_memory_contradiction_asks_the_slow_loop_for_a_review_with_the_mode():
    request = right_request()
    found = check(summary(modes=("chop", "chop"), estimates=(estimate(),)), request)
    assert codes(found) == ["memory_contradicts", "failure_pattern_recurs"]
    (need,) = needs_for_the_slow_loop(found, request)
    assert "trend_pullback long" in need
    assert "chop" in need
    assert request.snapshot.regime.labels.key in need


def test_memory_without_contradiction_asks_the_slow_loop_for_nothing():
    found = check(summary(winners=(1.0,), losers=(-1.0,), modes=("chop", "chop")))
    assert needs_for_the_slow_loop(found, right_request()) == ()


def test_memory_that_gave_up_is_a_finding_of_its_own_and_passes():
    gave_up = changed(summary(population=(0, 40)), {"degraded": "over_budget"})
    found = check(gave_up)
    assert [(f.code, f.severity) for f in found] == [("memory_degraded", Severity.INFO)]
    assert found[0].message == "over_budget: none of 42 known cases was compared"
    assert codes(check(changed(gave_up, {"known_at": NOW + 1}))) == ["memory_from_the_future"]
