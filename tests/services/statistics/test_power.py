from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest

from services.statistics.blocks import LOSING
from services.statistics.power import blocks_to_prove, smallest_detectable_effect
from services.statistics.track import Bounds
from tests.services.statistics.laid_out import BOUNDS, bracket, t3, weekly_track

POWER = 0.8
DRAWS = {"t3": t3, "bracket": lambda draw, shape: bracket(draw, shape, 2.0)}
TERMS = {"t3": BOUNDS, "bracket": Bounds(-3.0, 4.0, target=2.0)}


def effect_of(outcomes, alpha, bounds=BOUNDS) -> float:
    """Infinite where nothing inside the bounds could have been shown: groups are held together by chance."""
    effect = smallest_detectable_effect(weekly_track(outcomes, bounds=bounds), len(outcomes), alpha)
    return inf if effect is None else effect


@pytest.mark.parametrize(
    ("world", "weeks", "size", "alpha"),
    [("t3", 52, 5, 0.05), ("t3", 52, 15, 1 / 720), ("bracket", 104, 5, 0.05), ("bracket", 52, 5, 1 / 720)],
)
def test_smallest_detectable_effect_is_that_of_the_simulated_power_within_a_quarter(
    world, weeks, size, alpha
):
    """A loss of three quarters of it is found less often than promised, one of five quarters more often."""
    draw, runs = np.random.default_rng(weeks + size), 200
    shown = [effect_of(DRAWS[world](draw, (weeks, size)), alpha, TERMS[world]) for _ in range(30)]

    def found(effect):
        paths = [
            weekly_track(DRAWS[world](draw, (weeks, size)) - effect, bounds=TERMS[world])._paths[0]
            for _ in range(runs)
        ]
        return np.mean([path[LOSING, -1] >= 1.0 / alpha for path in paths])

    error = 2.0 * sqrt(POWER * (1.0 - POWER) / runs)
    assert found(0.75 * np.median(shown)) <= POWER + error
    assert found(1.25 * np.median(shown)) >= POWER - error


def test_smallest_detectable_effect_shrinks_with_blocks_and_grows_with_the_family():
    outcomes = t3(np.random.default_rng(5), (200, 5))
    effects = [effect_of(outcomes[:n], 0.05) for n in (40, 80, 200)]
    assert effects == sorted(effects, reverse=True)
    assert effect_of(outcomes, 0.05 / 24) > effects[-1]


def test_smallest_detectable_effect_grows_where_the_rows_of_a_block_are_one_bet():
    own = t3(np.random.default_rng(6), (80, 8))
    alike = np.repeat(t3(np.random.default_rng(6), (80, 1)), 8, axis=1)
    assert effect_of(alike, 0.05) > 1.5 * effect_of(own, 0.05)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_hardly_any_blocks_can_show_nothing(n):
    one = weekly_track(np.full((4, 5), -0.5))
    assert smallest_detectable_effect(one, n, 0.004) is None


@pytest.mark.parametrize("seed", range(40))
def test_blocks_to_prove_fall_with_what_is_reached_and_with_a_declared_target(seed):
    draw = np.random.default_rng(seed)
    spread, mean = draw.uniform(0.3, 2.0), -draw.uniform(0.02, 0.6)
    track = weekly_track(t3(draw, (60, 1 + seed % 4)) * spread + mean)
    seen = track.at(int(track.blocks.complete_at[-1]))
    assert seen.blocks == 60
    samples = [replace(seen, e_values=(e_value, e_value)) for e_value in (0.0, 1.0, 30.0, 39.0)]
    reached = [blocks_to_prove(track, sample, 1.0 / 39.0) for sample in samples]
    declared = blocks_to_prove(track, samples[1], 1.0 / 39.0, target=2.0)
    if reached[1] is None:
        assert reached == [None] * 4
        return
    never, one, thirty, most = (inf if blocks is None else blocks for blocks in reached)
    assert never >= one >= thirty >= most == 1
    assert never > thirty
    assert declared is not None
    assert declared <= reached[1]
