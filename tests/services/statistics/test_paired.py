"""Paired blocks: an answer other than unknown is as rare as stated where there is nothing to find."""

import numpy as np
import pytest

from services.statistics.paired import MINIMUM_DIFFERING, compare_pairs


def case(values):
    """The same differences for every unit."""
    return lambda unit: np.asarray(values, dtype=np.float64)


def one(values, *, others=0, seed=0):
    """The comparison of these differences, among others that show nothing."""
    cases = {"case": case(values)} | {f"other {k}": case(np.zeros(60)) for k in range(others)}
    return compare_pairs(cases, "month", seed)["case"]


def t3(seed, n, shift=0.0):
    return np.random.default_rng(seed).standard_t(3, n) / np.sqrt(3) + shift


def test_paired_clear_difference_is_told_with_its_direction():
    higher, lower = one(t3(1, 80, 0.8)), one(t3(1, 80, -0.8))
    assert (higher.answer, lower.answer) == ("higher", "lower")
    assert higher.lower > 0.0 > lower.upper
    assert higher.reason == lower.reason == ""


def test_paired_interval_holds_the_mean_and_is_narrower_with_more_blocks():
    few, many = one(t3(2, 40)), one(t3(2, 640))
    for found in (few, many):
        assert found.lower < found.mean < found.upper
    assert many.upper - many.lower < 0.5 * (few.upper - few.lower)


@pytest.mark.parametrize("skew", [False, True])
def test_paired_null_differences_are_unknown_at_the_stated_level(skew):
    wrong = 0
    for seed in range(150):
        values = t3(seed, 60)
        if skew:  # brackets: wins twice as large as losses, half as frequent; and blocks without a trade
            draws = np.random.default_rng(seed).random((2, 60))
            values = np.where(draws[0] < 1 / 3, 2.0, -1.0) * (draws[1] < 0.6)
        wrong += one(values, seed=seed).answer != "unknown"
    assert wrong <= 16  # 0.05 of 150 is 7.5; above 16 with probability 0.003


def test_paired_level_is_shared_by_all_comparisons_that_were_declared():
    values = t3(4, 60, 0.36)
    alone, among = one(values), one(values, others=9)
    assert alone.answer == "higher"
    assert among.answer == "unknown"
    assert among.level == pytest.approx(0.005)
    assert among.upper - among.lower > alone.upper - alone.lower


def test_paired_step_down_gives_the_second_comparison_what_the_first_leaves():
    strong, weak = t3(5, 80, 1.5), t3(6, 80, 0.45)
    found = compare_pairs({"strong": case(strong), "weak": case(weak)}, "month", 0)
    assert found["strong"].level == pytest.approx(0.025)
    assert found["weak"].level == pytest.approx(0.05)
    assert found["weak"].answer == "higher"


def test_paired_too_few_differing_blocks_are_unknown_whatever_they_show():
    values = np.zeros(200)
    values[: 10 * (MINIMUM_DIFFERING - 1) : 10] = 1.0
    found = one(values)
    assert found.answer == "unknown"
    assert found.reason.startswith(f"{MINIMUM_DIFFERING - 1} months differ")


def test_paired_equal_sides_never_differ():
    found = one(np.zeros(50))
    assert (found.answer, found.mean, found.lower, found.upper) == ("unknown", 0.0, 0.0, 0.0)
    assert found.reason == "the two never differ"


def test_paired_blocks_that_follow_each_other_are_widened():
    noise = np.random.default_rng(7).standard_normal(240)
    drift = np.convolve(noise, np.full(12, 1.0), mode="valid")

    def blocks(unit):
        size = {"week": 1, "month": 4, "quarter": 12}[unit]
        return np.array([part.sum() for part in np.array_split(drift, len(drift) // size)])

    found = compare_pairs({"case": blocks}, "week", 0)["case"]
    assert found.unit in ("month", "quarter")
    assert "weeks depend on each other" in found.reason


def test_paired_answer_depends_on_the_seed_alone():
    values = t3(8, 60, 0.2)
    assert one(values, seed=3) == one(values, seed=3)
    assert one(values, seed=3) != one(values, seed=4)


def test_paired_mean_and_edges_scale_with_the_differences():
    values = t3(9, 60, 0.3)
    small, large = one(values), one(1000.0 * values)
    for name in ("mean", "lower", "upper"):
        assert getattr(large, name) == pytest.approx(1000.0 * getattr(small, name))
    assert large.answer == small.answer


def test_paired_single_differing_block_bounds_nothing():
    values = np.zeros(40)
    values[7] = 1.0
    found = one(values)
    assert (found.answer, found.lower, found.upper) == ("unknown", -np.inf, np.inf)
