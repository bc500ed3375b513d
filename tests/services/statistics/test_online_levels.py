"""Levels of candidates that come one after the other: all together spend what one of them might."""

import numpy as np
import pytest

from schemas.errors import InvariantViolation
from services.statistics.blocks import GAINING
from services.statistics.claim_path import PLAIN
from services.statistics.multiplicity import online_level
from tests.services.statistics.laid_out import bracket, weekly_track


def test_online_levels_without_a_discovery_sum_to_alpha_at_most():
    levels = [online_level(0.05, number, 0) for number in range(1, 5_000)]
    assert levels == sorted(levels, reverse=True)
    assert levels[0] == pytest.approx(0.025)
    assert sum(levels) < 0.05
    assert sum(levels) == pytest.approx(0.05, rel=1e-3)


def test_online_level_grows_with_what_was_discovered_before():
    assert online_level(0.05, 4, 3) == pytest.approx(4 * online_level(0.05, 4, 0))
    assert max(online_level(0.05, k, k - 1) for k in range(1, 100)) == pytest.approx(0.025)


@pytest.mark.parametrize(("number", "discoveries"), [(0, 0), (3, 3), (2, -1)])
def test_online_level_of_an_impossible_history_is_refused(number, discoveries):
    with pytest.raises(InvariantViolation, match="cannot follow"):
        online_level(0.05, number, discoveries)


def test_online_levels_promote_a_worthless_candidate_in_few_runs_however_many_there_are():
    """A fixed level promotes one in more runs the more candidates there are; the online ones do not."""
    runs, candidates, weeks = 100, 30, 60
    rng = np.random.default_rng(5)
    levels = np.array([online_level(0.05, number, 0) for number in range(1, candidates + 1)])
    wrong = {"fixed": 0, "online": 0}
    for _ in range(runs):
        # Brackets of mean zero, five a week, watched after each week without restarts.
        r = bracket(rng, (candidates, weeks, 5), 2.0)
        highest = np.array([weekly_track(item)._walks[GAINING][PLAIN].max() for item in r])
        wrong["fixed"] += bool((highest >= 1.0 / 0.05).any())
        wrong["online"] += bool((highest >= 1.0 / levels).any())
    assert wrong["online"] <= 0.05 * runs
    assert wrong["fixed"] > 3 * max(wrong["online"], 1)
