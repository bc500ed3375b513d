from dataclasses import replace

import pytest

from schemas.playbook import DirectionRules, Expectation
from schemas.settings import ReflectionSettings
from schemas.vocabulary import Severity
from services.policy_checks.expectation import check_expectation, expectation_of
from services.policy_checks.plan_levels import read_levels
from tests.each_case import check_each
from tests.services.policy_checks.plans import (
    PLAN_IDS,
    PLANS,
    acting,
    changed,
    codes,
    expected,
    right_request,
)

EVERY_PLAN = check_each(("playbook", "direction"), PLANS, ids=PLAN_IDS)
SETTINGS = ReflectionSettings()


def check(request):
    return check_expectation(request, read_levels(request), SETTINGS)


def measured(request, **values):
    return changed(request, {"snapshot.expectations": (expected(request.playbook, **values),)})


def only(request, code):
    (found,) = check(request)
    assert (found.code, found.severity) == (code, Severity.MAJOR)
    return found.remedy


@EVERY_PLAN
def test_expectation_right_plan_finds_nothing(playbook, direction):
    assert check(right_request(playbook, direction)) == ()


def test_expectation_hit_rate_measured_lower_lowers_the_conviction_allowed():
    request = changed(right_request(), {"proposal.conviction": 0.5})
    assert check(request) == ()
    assert only(measured(request, hit_rate=0.2, n=60), "over_confident").value == pytest.approx(0.45)


def test_expectation_excursion_measured_smaller_brings_the_target_out_of_reach():
    assert only(measured(acting(right_request()), mfe_p50_r=0.3, n=80), "target_beyond_mfe").op == "at_most"


def test_expectation_unknown_levels_find_nothing_about_stop_and_target():
    request = changed(right_request(), {"proposal.stop": "sma_200", "proposal.target": "sma_200"})
    assert codes(check(request)) == []


def test_expectation_of_the_exact_version_comes_from_the_snapshot():
    request = measured(right_request(), hit_rate=0.61, n=70)
    assert expectation_of(request).hit_rate == 0.61


def test_expectation_of_another_version_falls_back_to_the_design():
    request = changed(measured(right_request(), hit_rate=0.61, n=70), {"playbook.version": 2})
    fallback = expectation_of(request)
    assert (fallback.n, fallback.hit_rate) == (0, request.playbook.expectation.hit_rate)
    assert fallback.playbook_version == 2


@pytest.mark.parametrize(("stop", "found"), [("96", False), ("97", True), ("97.5", True)])
def test_expectation_stop_at_the_excursion_of_winners_is_still_inside(stop, found):
    # The playbook's own stop is 4 away; three quarters of it is 3.
    request = measured(changed(right_request(), {"proposal.stop": stop}), winner_mae_p80_r=-0.75)
    assert read_levels(request).playbook_risk == 4.0
    assert ("stop_inside_winner_mae" in codes(check(request))) is found


@pytest.mark.parametrize(("target", "found"), [("112", False), ("112.5", True)])
def test_expectation_target_at_three_median_excursions_is_within_reach(target, found):
    request = changed(right_request(), {"proposal.target": target})
    assert ("target_beyond_mfe" in codes(check(request))) is found


SHORT = {"proposal.horizon_bars": 1}


def test_expectation_finding_that_rests_on_a_prior_alone_is_a_note():
    request = changed(right_request(), SHORT)
    assert [found.severity for found in check(measured(request, n=0))] == [Severity.MINOR]
    assert [found.severity for found in check(measured(request, n=1))] == [Severity.MAJOR]
    sure = measured(changed(right_request(), {"proposal.conviction": 0.95}), n=0)
    assert [found.severity for found in check(sure)] == [Severity.MAJOR], "its author claims it"
    untold = changed(request, {"snapshot.expectations": ()})
    assert [found.severity for found in check(untold)] == [Severity.MAJOR], (
        "nobody says that none is measured"
    )


def test_expectation_that_nobody_wrote_needs_as_many_trades_as_it_weighs():
    book = right_request().playbook
    unwritten = changed(book, {"expectation": Expectation.by_default(book.horizon_bars)})
    severities = []
    for n in (0, 19, 20):
        known = {"playbook": unwritten, "snapshot.expectations": (expected(unwritten, n=n),)}
        severities += [found.severity for found in check(changed(right_request(), SHORT | known))]
    assert severities == [Severity.MINOR, Severity.MINOR, Severity.MAJOR]


@pytest.mark.parametrize("has_target", [True, False])
def test_expectation_of_a_playbook_without_a_target_says_nothing_of_reach(has_target):
    book = right_request().playbook
    kept = {
        role: text for role, text in book.rules["long"].payload().items() if has_target or role != "target"
    }
    known = {"playbook": changed(book, {"rules": dict(book.rules) | {"long": DirectionRules(**kept)}})}
    request = changed(right_request(), known | {"proposal.target": "close + 30 * atr_14"})
    levels = replace(read_levels(request), waits=False)
    assert ("target_beyond_mfe" in codes(check_expectation(request, levels, SETTINGS))) == has_target


@pytest.mark.parametrize(
    ("values", "code", "change"),
    [
        ({"winner_mae_p80_r": -1.5}, "stop_inside_winner_mae", {"proposal.stop": "close - 0.9 * atr_14"}),
        ({"mfe_p50_r": 0.2}, "target_beyond_mfe", {"proposal.target": "close + 9 * atr_14"}),
        ({"hold_p50_bars": 1.0, "hold_p90_bars": 2.0}, "horizon_too_long", {"proposal.horizon_bars": 19}),
    ],
)
def test_expectation_that_nobody_wrote_holds_what_a_strategist_changed_and_not_the_base_itself(
    values, code, change
):
    """A base that is measured by trades of its own rules would end for good once it trades no more."""
    written = measured(acting(right_request()), **values)
    assert [found.severity for found in check(written) if found.code == code] == [Severity.MAJOR]
    book = changed(written.playbook, {"expectation": Expectation.by_default(written.playbook.horizon_bars)})
    unwritten = measured(changed(written, {"playbook": book, "snapshot.expectations": ()}), **values)
    assert [found.severity for found in check(unwritten) if found.code == code] == [Severity.MINOR]
    moved = changed(unwritten, change)
    assert [found.severity for found in check(moved) if found.code == code] == [Severity.MAJOR]
