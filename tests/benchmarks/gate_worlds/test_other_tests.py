"""Other tests of the same draws: each is what its name says, and the one in use is the product's own."""

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.gate_worlds import other_tests
from benchmarks.gate_worlds.other_tests import TESTS, main
from benchmarks.gate_worlds.second_opinions import CASES, claims_of
from services.statistics.second_opinion import skew_corrected_t


def one_sided(name, looks, look, level):
    return TESTS[name]["_bound"](1_000_000, (looks, look), level)[0]


def test_fixed_test_spends_all_at_the_last_look():
    assert one_sided("fixed", 5, 5, 0.005) == 0.005
    assert TESTS["fixed"]["_bound"](40, (5, 4), 0.005)[1] == np.inf


@pytest.mark.parametrize("name", ["curtailed", "Pocock"])
def test_bounds_are_crossed_by_a_walk_no_more_often_than_their_level(name):
    walks = np.random.default_rng(7).standard_normal((200_000, 5)).cumsum(axis=1) / np.sqrt(np.arange(1, 6))
    bounds = [norm.isf(one_sided(name, 5, look, 0.01)) for look in range(1, 6)]
    assert np.mean((walks >= bounds).any(axis=1)) <= 0.01 + 3.0 * np.sqrt(0.01 / 200_000)


@pytest.mark.parametrize("name", ["t", "Hall", "Johnson", "likelihood", "bootstrap"])
def test_statistics_agree_with_t_on_many_symmetric_blocks(name):
    sums, sizes = np.random.default_rng(3).standard_normal(400) + 0.12, np.ones(400)
    plain = sums.mean() / sums.std(ddof=1) * 20.0
    assert TESTS[name]["skew_corrected_t"](sums, sizes) == pytest.approx(plain, rel=0.06)


def test_table_has_the_test_in_use_and_a_line_a_world(capsys, monkeypatch):
    name = "-.6R, 12 a year, t"
    monkeypatch.setattr(other_tests, "CASES", {name: CASES[name]})
    assert TESTS["in use"]["skew_corrected_t"] is skew_corrected_t
    assert main(["--runs", "6", "--seed", "4"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert all(test in head for test in TESTS)
    assert float(line.split()[6]) == pytest.approx(claims_of(CASES[name], 6, 4)[0], abs=0.05)
