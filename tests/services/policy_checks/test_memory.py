from typing import Any

import pytest
from scipy.stats import binom

from schemas.settings import ReflectionSettings
from schemas.vocabulary import Severity
from services.policy_checks.memory import (
    CHANCE,
    check_memory,
    is_beyond_chance,
    needs_for_the_slow_loop,
    neighbourhood,
)
from tests.services.memory.worlds import LATE, memory, query
from tests.services.playbooks.samples import DAY, loser
from tests.services.policy_checks.plans import NOW, PLAN_IDS, PLANS, changed, codes, right_request, summary

SETTINGS = ReflectionSettings()
LOST: dict[str, Any] = {"winners": (1.0, 1.0, 1.0), "losers": (-1.0, -1.0, -1.0), "losers_nearer": True}


def check(memory, request=None):
    return check_memory(request or right_request(), memory, SETTINGS)


def at_the_end():
    """A right request whose snapshot is as late as the memories made here."""
    moments = {"known_at": LATE, "ts_event": LATE, "bar_label": LATE - DAY}
    window = {"first_label": LATE - 2 * DAY, "last_label": LATE - DAY, "bars": 2}
    parts = moments | {f"data_window.{name}": value for name, value in window.items()}
    return changed(
        right_request(), {"memory": None} | {f"snapshot.{name}": value for name, value in parts.items()}
    )


@pytest.mark.parametrize(("playbook", "direction"), PLANS, ids=PLAN_IDS)
def test_memory_right_plan_finds_nothing(playbook, direction):
    request = right_request(playbook, direction)
    assert check(request.memory, request) == ()


def test_memory_nothing_retrieved_is_insufficient_and_passes():
    found = check(None)
    assert [(f.code, f.severity) for f in found] == [("memory_insufficient", Severity.INFO)]


def test_memory_too_few_resolved_cases_is_insufficient_even_if_all_lost():
    found = check(summary(losers=(-1.0, -1.0, -1.0), population=(0, 5)))
    assert codes(found) == ["memory_insufficient"]


@pytest.mark.parametrize(("playbook", "direction"), PLANS, ids=PLAN_IDS)
def test_memory_near_losers_in_a_losing_population_contradict(playbook, direction):
    found = check(summary(**LOST, population=(5, 45)), right_request(playbook, direction))
    assert [(f.code, f.severity) for f in found] == [("memory_contradicts", Severity.MAJOR)]
    assert found[0].evidence == ("l0", "l1", "l2")


def test_memory_near_losers_in_a_population_as_expected_do_not_contradict():
    # The playbook expects to lose six trades in ten; the population lost 30 of 50.
    assert check(summary(**LOST, population=(20, 30))) == ()


def test_memory_losing_population_with_winners_nearby_does_not_contradict():
    near_winners = summary(winners=(1.0, 1.0, 1.0), losers=(-1.0, -1.0, -1.0), population=(5, 45))
    assert check(near_winners) == ()


def test_memory_balanced_bundle_does_not_count_by_its_quota():
    # Five of eight retrieved cases lost, which is the quota and nothing else.
    balanced = summary(
        winners=(1.0, 1.0, 1.0),
        losers=(-1.0, -1.0, -1.0),
        population=(5, 45),
        modes=("chop", "late_entry"),
    )
    assert check(balanced) == ()


def test_memory_losers_that_cost_nothing_do_not_contradict():
    paid = summary(winners=(9.0, 1.0), losers=(-0.4,) * 6, losers_nearer=False, population=(2, 98))
    assert neighbourhood(paid).mean_r > 0
    assert check(paid) == ()


def test_memory_neighbourhood_ends_where_the_nearer_full_bucket_ends():
    near = neighbourhood(summary(**LOST, population=(20, 20)))
    assert [case.episode_id for case in near.cases] == ["l0", "l1", "l2"]
    assert near.loss_share == 1.0


def test_memory_neighbourhood_of_a_bucket_that_holds_everything_has_no_end():
    near = neighbourhood(summary(**LOST, population=(3, 3)))
    assert [case.episode_id for case in near.cases] == ["l0", "l1", "l2", "w0", "w1", "w2"]
    assert near.loss_share == 0.5


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


def test_memory_contradiction_asks_the_slow_loop_for_a_review_with_the_mode():
    request = right_request()
    found = check(summary(**LOST, population=(5, 45), modes=("chop", "chop")), request)
    assert codes(found) == ["memory_contradicts", "failure_pattern_recurs"]
    (need,) = needs_for_the_slow_loop(found, request)
    assert "trend_pullback long" in need
    assert "chop" in need
    assert request.snapshot.regime.labels.key in need


def test_memory_without_contradiction_asks_the_slow_loop_for_nothing():
    found = check(summary(winners=(1.0,), losers=(-1.0,), modes=("chop", "chop")))
    assert needs_for_the_slow_loop(found, right_request()) == ()


@pytest.mark.parametrize(("population", "found"), [((0, 5), ["memory_insufficient"]), ((0, 6), [])])
def test_memory_is_sufficient_from_the_minimum_of_resolved_cases(population, found):
    assert codes(check(summary(losers=(-1.0,) * 5, population=population))) == found


@pytest.mark.parametrize(("population", "count"), [((0, 9), 0), ((0, 10), 1)])
def test_memory_losers_that_chance_explains_do_not_silence_a_playbook(population, count):
    # Nine losers in a row have 0.6 ** 9 = 0.0101 when six in ten are expected.
    found = check(summary(losers=(-1.0,) * 5, population=population))
    assert codes(found).count("memory_contradicts") == count


@pytest.mark.parametrize("n", [6, 20, 100])
@pytest.mark.parametrize("expected", [0.3, 0.55, 0.67])
def test_memory_beyond_chance_never_claims_more_than_the_exact_binomial_tail(n, expected):
    for losers in range(n + 1):
        if is_beyond_chance(losers / n, n, expected):
            assert binom.sf(losers - 1, n, expected) <= CHANCE


@pytest.mark.parametrize("expected", [0.0, 1.0])
def test_memory_beyond_chance_against_a_certain_expectation_is_never_claimed(expected):
    assert not is_beyond_chance(1.0, 50, expected)


def test_memory_case_of_another_setting_is_no_neighbour():
    alike = summary(losers=(-1.0,) * 4, population=(0, 4))
    far = alike.losers[0].model_copy(update={"distance": 0.51})
    near = neighbourhood(changed(alike, {"losers": (*alike.losers[1:], far)}))
    assert [case.episode_id for case in near.cases] == ["l1", "l2", "l3"]


@pytest.mark.parametrize(("winners", "count"), [((1.0,), 1), ((1.0, 1.0), 0)])
def test_memory_three_losers_in_four_near_cases_are_the_share_that_counts(winners, count):
    # All winners there are lie within the radius of the three losers; the playbook expects to lose 0.6.
    near = summary(winners=winners, losers=(-1.0,) * 3, population=(len(winners), 20))
    assert len(neighbourhood(near).cases) == 3 + len(winners)
    assert codes(check(near)).count("memory_contradicts") == count


@pytest.mark.parametrize(("population", "count"), [((300, 700), 1), ((310, 690), 0)])
def test_memory_base_rate_a_tenth_above_the_expected_losses_is_adverse(population, count):
    assert codes(check(summary(**LOST, population=population))).count("memory_contradicts") == count


def test_memory_case_known_at_the_snapshot_itself_is_not_late():
    assert "memory_from_the_future" not in codes(check(summary(winners=(1.0,), known_at=NOW)))


def test_memory_near_cases_that_break_even_do_not_contradict():
    even = summary(winners=(3.0,), losers=(-1.0,) * 3, population=(1, 20))
    assert neighbourhood(even).mean_r == 0.0
    assert check(even) == ()


def test_memory_contradiction_message_gives_shares_and_mean():
    (found,) = check(summary(winners=(1.0,), losers=(-1.0,) * 3, population=(1, 19)))
    assert found.message == (
        "0.75 of the 4 nearest cases lost (-0.50R on average) and 0.95 of all 20; the playbook expects 0.60"
    )


def test_memory_case_kept_out_for_its_day_ends_the_neighbourhood_before_it():
    # Losers at 0.10, 0.11 and 0.12; from `passed_over_at` on, others are missing.
    lost = summary(**LOST, population=(5, 45))
    assert codes(check(changed(lost, {"passed_over_at": 0.121}))) == ["memory_contradicts"]
    for missing_from in (0.12, 0.115, 0.0):
        found = changed(lost, {"passed_over_at": missing_from})
        assert [case.episode_id for case in neighbourhood(found).cases] == [
            case.episode_id for case in lost.losers if case.distance < missing_from
        ]
        assert check(found) == ()


def test_memory_one_day_of_losers_alone_does_not_contradict():
    day = [
        loser(k, fingerprint=(0.5, 0.5, 0.5, 0.5, 0.5 + k / 100), entry_label=entered * DAY)
        for k, entered in enumerate([7] * 6 + list(range(8, 40)))
    ]
    spread = [episode.model_copy(update={"entry_label": k * DAY}) for k, episode in enumerate(day)]
    found = {}
    for name, history in (("day", day), ("spread", spread)):
        found[name] = memory(*history).reader().retrieve(query(), LATE)
    assert codes(check(found["spread"], at_the_end())) == ["memory_contradicts"]
    assert check(found["day"], at_the_end()) == ()


def test_memory_that_gave_up_is_a_finding_of_its_own_and_passes():
    gave_up = changed(summary(population=(0, 40)), {"degraded": "over_budget"})
    found = check(gave_up)
    assert [(f.code, f.severity) for f in found] == [("memory_degraded", Severity.INFO)]
    assert found[0].message == "over_budget: none of 42 known cases was compared"
    assert codes(check(changed(gave_up, {"known_at": NOW + 1}))) == ["memory_from_the_future"]
