"""Brier score, its parts, the calibration error and its chance level, against formulas written again."""

from math import inf, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataError
from services.statistics.calibration import (
    BEYOND_CHANCE,
    BINS,
    MINIMUM_FOR_ECE,
    Calibration,
    CalibrationError,
    calibrate,
)

PROBABILITIES = st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 0.25, 0.5, 1.0]))
LABELS = st.lists(st.tuples(PROBABILITIES, st.booleans()), min_size=1, max_size=60)


def calibrated(n, seed=1, low=0.1, high=0.9):
    """Labels of a forecaster without fault."""
    random = np.random.default_rng(seed)
    stated = random.uniform(low, high, n)
    return stated, random.random(n) < stated


def measured(stated, came) -> Calibration:
    found = calibrate([float(item) for item in stated], [bool(item) for item in came])
    assert found is not None
    return found


def found_of(labels) -> Calibration:
    return measured([label[0] for label in labels], [label[1] for label in labels])


def error_of(found: Calibration) -> CalibrationError:
    assert found.error is not None
    return found.error


def members(found, labels):
    """The labels of each bin, told by its edges alone."""
    return [[label for label in labels if cell.lower <= label[0] <= cell.upper] for cell in found.bins]


@given(LABELS)
def test_parts_add_up_to_the_brier_score(labels):
    found = found_of(labels)
    parts = found.reliability - found.resolution + found.uncertainty + found.within_bin
    assert parts == pytest.approx(found.brier, abs=1e-12)


@given(LABELS)
def test_parts_are_what_their_formulas_say(labels):
    found, n = found_of(labels), len(labels)
    rate = sum(came for _, came in labels) / n
    reliability = resolution = within = 0.0
    for inside in members(found, labels):
        size = len(inside)
        mean, share = sum(stated for stated, _ in inside) / size, sum(came for _, came in inside) / size
        reliability += size * (mean - share) ** 2 / n
        resolution += size * (share - rate) ** 2 / n
        variance = sum((stated - mean) ** 2 for stated, _ in inside) / n
        covariance = sum((stated - mean) * (came - share) for stated, came in inside) / n
        within += variance - 2 * covariance
    assert found.brier == pytest.approx(sum((stated - came) ** 2 for stated, came in labels) / n, abs=1e-12)
    assert found.uncertainty == pytest.approx(rate * (1 - rate), abs=1e-12)
    assert found.reliability == pytest.approx(reliability, abs=1e-12)
    assert found.resolution == pytest.approx(resolution, abs=1e-12)
    assert found.within_bin == pytest.approx(within, abs=1e-12)


@given(LABELS)
def test_bins_hold_every_label_once_in_order_and_part_no_equal_forecasts(labels):
    found = found_of(labels)
    assert 1 <= len(found.bins) <= BINS
    assert [bucket.n for bucket in found.bins] == [len(inside) for inside in members(found, labels)]
    assert sum(bucket.n for bucket in found.bins) == found.n == len(labels)
    edges = [edge for bucket in found.bins for edge in (bucket.lower, bucket.upper)]
    assert edges == sorted(edges)
    assert all(left.upper < right.lower for left, right in zip(found.bins, found.bins[1:], strict=False))


@given(LABELS, st.randoms(use_true_random=False))
def test_order_of_labels_changes_nothing(labels, random):
    mixed = list(labels)
    random.shuffle(mixed)
    assert found_of(mixed) == found_of(labels)


def test_order_of_many_labels_changes_no_chance_level():
    stated, came = calibrated(MINIMUM_FOR_ECE)
    order = np.random.default_rng(2).permutation(len(stated))
    assert measured(stated[order], came[order]) == measured(stated, came)


@pytest.mark.parametrize("n", [10, 200, 207, 1_000])
def test_bins_of_different_forecasts_are_ten_of_equal_mass(n):
    found = measured(np.linspace(0.0, 1.0, n), np.arange(n) % 2 == 0)
    sizes = [bucket.n for bucket in found.bins]
    assert len(sizes) == BINS
    assert max(sizes) - min(sizes) <= 1


def test_figures_of_four_labels_by_hand():
    # Two pairs of ties: 0.2 came true once in two, 0.8 twice in two. o = 3/4.
    found = found_of([(0.2, True), (0.2, False), (0.8, True), (0.8, True)])
    assert [(bucket.lower, bucket.upper, bucket.n, bucket.base_rate) for bucket in found.bins] == [
        (0.2, 0.2, 2, 0.5),
        (0.8, 0.8, 2, 1.0),
    ]
    assert found.brier == pytest.approx((0.64 + 0.04 + 0.04 + 0.04) / 4)
    assert found.uncertainty == pytest.approx(0.1875)
    assert found.reliability == pytest.approx((0.3**2 + 0.2**2) / 2)
    assert found.resolution == pytest.approx(0.25**2)
    assert found.within_bin == 0.0
    assert found.excess == pytest.approx((2.0 - 3.0 + 0.5) / sqrt(4 * 0.16))
    assert found.association == pytest.approx(sqrt(1 / 3) * sqrt(3))


@pytest.mark.parametrize("shares", [(0.25, 0.75), (0.0, 0.5, 1.0), (0.125, 0.25, 0.5, 0.625)])
def test_forecaster_who_says_the_share_of_each_group_has_no_fault(shares):
    labels = [(share, k < share * 80) for share in shares for k in range(80)]
    found = found_of(labels)
    assert found.reliability == pytest.approx(0.0, abs=1e-12)
    assert found.brier == pytest.approx(found.uncertainty - found.resolution, abs=1e-12)
    assert found.excess == pytest.approx(0.0, abs=1e-9)


def test_many_labels_of_a_calibrated_forecaster_have_an_error_within_chance():
    beyond = 0
    for seed in range(40):
        found = measured(*calibrated(400, seed))
        assert found.reliability < 0.02
        beyond += error_of(found).ece > error_of(found).by_chance_p95
    assert beyond <= 6  # 2 expected; more than 6 of 40 come about in one of 200 such tests


@pytest.mark.parametrize(("n", "level"), [(200, 0.076), (1_000, 0.034)])
def test_chance_level_is_that_of_the_simulation_written_a_second_time(n, level):
    stated, came = calibrated(n, low=0.0, high=1.0)
    found = measured(stated, came)
    random, inside = np.random.default_rng(99), np.array_split(np.sort(stated), BINS)
    drawn = [
        sum(abs(len(part) * (part.mean() - (random.random(len(part)) < part).mean())) for part in inside) / n
        for _ in range(2_000)
    ]
    assert error_of(found).by_chance == pytest.approx(np.mean(drawn), rel=0.03)
    assert error_of(found).by_chance_p95 == pytest.approx(np.quantile(drawn, 0.95), rel=0.05)
    assert error_of(found).by_chance == pytest.approx(level, rel=0.25)


def test_error_is_the_weighted_distance_of_the_bins():
    stated, came = calibrated(333)
    found = measured(stated, came)
    distances = [bucket.n * abs(bucket.mean_forecast - bucket.base_rate) for bucket in found.bins]
    assert error_of(found).ece == pytest.approx(sum(distances) / 333)


def test_calibration_error_needs_two_hundred_labels():
    assert measured(*calibrated(MINIMUM_FOR_ECE - 1)).error is None
    assert measured(*calibrated(MINIMUM_FOR_ECE)).error is not None
    assert MINIMUM_FOR_ECE == 200


def test_no_label_has_no_figures():
    assert calibrate([], []) is None


@given(PROBABILITIES, st.booleans())
def test_one_label_is_all_reliability(stated, came):
    found = found_of([(stated, came)])
    assert (found.n, found.uncertainty, found.resolution, found.within_bin) == (1, 0.0, 0.0, 0.0)
    assert found.reliability == found.brier == (stated - came) ** 2
    assert found.association == 0.0
    assert found.bins[0].lower == found.bins[0].upper == stated


@given(PROBABILITIES, st.lists(st.booleans(), min_size=1, max_size=300))
@settings(max_examples=40)
def test_constant_forecast_is_one_bin_without_resolution(stated, outcomes):
    found = found_of([(stated, came) for came in outcomes])
    assert len(found.bins) == 1
    assert found.resolution == pytest.approx(0.0, abs=1e-15)
    assert found.within_bin == pytest.approx(0.0, abs=1e-12)
    assert found.reliability == pytest.approx((stated - sum(outcomes) / len(outcomes)) ** 2, abs=1e-12)


def test_certain_forecasts_that_come_true_are_perfect_and_such_that_do_not_are_the_worst():
    right = found_of([(1.0, True), (0.0, False)] * 100)
    assert (right.brier, right.reliability, right.excess) == (0.0, 0.0, 0.0)
    assert (error_of(right).ece, error_of(right).by_chance) == (0.0, 0.0)
    wrong = found_of([(1.0, False)] * 200)
    assert (wrong.brier, error_of(wrong).ece, wrong.excess) == (1.0, 1.0, inf)
    assert found_of([(0.0, True)]).excess == -inf


@pytest.mark.parametrize(("stated", "beyond"), [(0.01, True), (0.1, False), (0.4, False)])
def test_one_label_is_beyond_chance_only_where_it_was_nearly_ruled_out(stated, beyond):
    assert (found_of([(stated, True)]).excess < -BEYOND_CHANCE) == beyond
    assert (found_of([(1.0 - stated, False)]).excess > BEYOND_CHANCE) == beyond


def test_calibrated_forecaster_is_beyond_chance_in_one_of_twenty():
    beyond = sum(abs(measured(*calibrated(60, seed)).excess) > BEYOND_CHANCE for seed in range(400))
    assert 5 <= beyond <= 30


def test_outcomes_without_a_link_to_the_forecasts_are_associated_in_one_of_twenty():
    random = np.random.default_rng(4)
    many = [measured(random.random(60), random.random(60) < 0.4).association for _ in range(400)]
    assert 8 <= sum(abs(value) > BEYOND_CHANCE for value in many) <= 32


def test_forecasts_that_promise_too_much_have_a_positive_excess_and_sorted_ones_an_association():
    stated, came = calibrated(400)
    assert abs(measured(stated, came).excess) < 3
    assert measured(np.minimum(stated + 0.2, 1.0), came).excess > 3
    assert measured(np.maximum(stated - 0.2, 0.0), came).excess < -3
    assert measured(stated, came).association > 5
    assert measured(1.0 - stated, came).association < -5


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan"), inf])
def test_forecast_that_is_no_probability_is_refused(value):
    with pytest.raises(DataError, match="forecast 1 is .* a probability lies in"):
        calibrate([0.5, value], [True, False])


def test_forecasts_without_their_outcomes_are_refused():
    with pytest.raises(DataError, match="2 forecasts have 1 outcomes"):
        calibrate([0.5, 0.5], [True])
