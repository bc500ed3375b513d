"""False and true discoveries over a year of weekly looks, in worlds with known truth.

Small versions of the tables in `docs/reference/benchmarks.md`: a rate holds when it is at most its target
plus two standard errors, or at least its target less two.
"""

from math import sqrt

import numpy as np
import pytest

from services.statistics.blocks import GAINING, LOSING
from services.statistics.multiplicity import e_bh_rows, register_family
from services.statistics.sample import CLAIMS
from tests.services.statistics.laid_out import alike_brackets, among_others, bracket, t3, weekly_track

WEEKS = 52
YEAR = (WEEKS, 5)


def error(rate, runs):
    """Two standard errors of a rate."""
    return 2.0 * sqrt(rate * (1.0 - rate) / runs)


def outcomes(world, draw, runs):
    """Outcomes (runs, weeks, trades) of mean zero."""
    if world == "t3":
        return t3(draw, (runs, *YEAR))
    if world == "+2/-1":
        return bracket(draw, (runs, *YEAR), 2.0)
    if world == "8 rows +3/-1":
        return np.repeat(bracket(draw, (runs, WEEKS, 1), 3.0), 8, axis=2)
    symbols, win = {"8 symbols +3/-1": (8, 3.0), "20 symbols +4/-1": (20, 4.0)}[world]
    return alike_brackets(draw, runs, WEEKS, symbols, 0.9, win)


@pytest.mark.parametrize("world", ["t3", "+2/-1", "8 symbols +3/-1", "20 symbols +4/-1", "8 rows +3/-1"])
@pytest.mark.parametrize("claim", [LOSING, GAINING])
def test_claim_that_is_false_reaches_twenty_in_a_year_in_one_of_twenty_clusters_at_most(world, claim):
    runs = 300
    r = outcomes(world, np.random.default_rng(31), runs)
    highest = np.array([weekly_track(item)._paths[0][claim].max() for item in r])
    assert (highest >= 20.0).mean() <= 0.05 + error(0.05, runs)


def test_loss_of_two_fifths_r_is_found_within_a_year_at_the_level_of_one_cell_of_fifteen():
    runs = 200
    r = outcomes("t3", np.random.default_rng(32), runs) - 0.4
    highest = np.array([weekly_track(item)._paths[0][LOSING].max() for item in r])
    assert (highest >= 720.0).mean() >= 0.75 - error(0.75, runs)


def test_edge_that_turned_into_a_loss_is_found_within_a_year():
    """From +.2 to -.3R at week 52: capital that starts anew at each block finds it, a single start hardly.

    The rest of the account shows no change; alone, it may as well be a long shock.
    """
    runs, turned = 200, np.where(np.arange(2 * WEEKS) < WEEKS, 0.2, -0.3)[:, None]
    draw = np.random.default_rng(33)
    paths = [among_others(t3(draw, (2 * WEEKS, 5)) + turned)._paths for _ in range(runs)]
    restarted, plain = (np.mean([path[which][LOSING].max() >= 20.0 for path in paths]) for which in (0, 1))
    assert restarted >= 0.65 - error(0.65, runs)
    assert plain < 0.2


@pytest.mark.parametrize("world", ["t3", "+2/-1", "8 symbols +3/-1"])
def test_family_of_a_null_world_is_flagged_in_one_of_twenty_years_at_most(world):
    runs, cells = 60, 15
    family = register_family([f"cell{index:02d}" for index in range(cells)], 0.1)
    draw = np.random.default_rng(34)
    flagged = []
    for _ in range(runs):
        tracks = [weekly_track(outcome) for outcome in outcomes(world, draw, cells)]
        looks = tracks[0].blocks.complete_at
        logs = np.stack([track.log_e_at(looks) for track in tracks])  # (cells, looks, claims)
        assert logs.shape == (cells, WEEKS, len(CLAIMS))
        scaled = logs.max(axis=2).T + np.log(family.charged)
        flagged.append(e_bh_rows(scaled, family.q).any())
    assert np.mean(flagged) <= 0.05 + error(0.05, runs)


def test_correlated_winner_is_not_called_losing():
    """Eight symbols that share most of a bet and earn a tenth of R a trade."""
    runs = 150
    r = outcomes("8 symbols +3/-1", np.random.default_rng(35), runs) + 0.1
    highest = np.array([weekly_track(item)._paths[0][LOSING].max() for item in r])
    assert (highest >= 720.0).mean() <= 0.03 + error(0.03, runs)
