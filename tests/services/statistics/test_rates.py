"""False and true discoveries of the blocked bets over a year of weekly looks, in worlds with known truth."""

import numpy as np
import pytest

from services.statistics.eprocess import log_e_path
from services.statistics.expectancy import DAY_NS, Trades, observe
from services.statistics.multiplicity import e_bh_rows, register_family

CELLS, WEEKS, PER_WEEK = 24, 52, 5
HOUR_NS = DAY_NS // 24


def week_outcomes(world, draw, shape):
    if world == "t3":
        return draw.standard_t(3, shape) / np.sqrt(3)
    if world == "bracket":
        return np.where(draw.random(shape) < 1 / 3, 2.0, -1.0)
    shock = draw.standard_normal((shape[0], shape[1], 1))  # one shock a week, shared by its five trades
    return np.sqrt(0.3) * shock + np.sqrt(0.7) * draw.standard_t(3, shape) / np.sqrt(3)


def flagged(r, q=0.1):
    family = register_family([f"cell{index}" for index in range(len(r))], q)
    starts = (np.arange(WEEKS * PER_WEEK) // PER_WEEK * 7 + 4) * DAY_NS
    exits = starts + np.arange(WEEKS * PER_WEEK) % PER_WEEK * 20 * HOUR_NS
    paths = []
    for cell in r:
        rows = [
            (int(end), int(end) - HOUR_NS, float(value))
            for end, value in zip(exits, cell.ravel(), strict=True)
        ]
        seen = observe(Trades.of(rows), "week", -3.0, 4.0)
        paths.append(log_e_path(seen.values, seen.low, seen.high, 0.0))
    return e_bh_rows(np.array(paths).T + np.log(family.charged), q).any(axis=0)


@pytest.mark.parametrize("world", ["t3", "bracket", "weekly_shock"])
def test_null_world_over_a_year_of_weekly_looks_is_hardly_ever_flagged(world):
    draw = np.random.default_rng(1)
    runs = [flagged(week_outcomes(world, draw, (CELLS, WEEKS, PER_WEEK))).any() for _ in range(60)]
    assert np.mean(runs) <= 0.05


def test_planted_loss_of_two_fifths_r_is_found_within_a_year():
    draw = np.random.default_rng(4)
    found, false = [], []
    for _ in range(30):
        r = week_outcomes("t3", draw, (CELLS, WEEKS, PER_WEEK))
        r[0] -= 0.4
        flags = flagged(r)
        found.append(flags[0])
        false.append(flags[1:].any())
    assert np.mean(found) >= 0.95
    assert np.mean(false) <= 0.05
