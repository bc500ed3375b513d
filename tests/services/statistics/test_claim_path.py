"""The walk over the blocks of a claim, against plain Python written from its formulas."""

from itertools import product
from math import fsum, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.statistics.claim_path import (
    ADVERSE,
    DETECTOR,
    PLAIN,
    ROWS,
    SPREAD,
    START_BLOCKS,
    WITH_RESTARTS,
    ClaimBlocks,
    Terms,
    walk,
)

FRACTIONS = (0.05, 0.1, 0.2, 0.4, 0.8)
# Sixteenths and eighths are exact in binary: where all rows equal the reference the spread is nothing at all.
OUTCOMES = st.integers(-80, 80).map(lambda k: k / 16)
REFERENCES = st.integers(-8, 8).map(lambda k: k / 8)
WEEKS = st.lists(st.lists(OUTCOMES, min_size=1, max_size=6), min_size=1, max_size=25)


def walked(weeks, side=1.0, reference=0.0, largest_row=3.0, most_trades=0, strict=False):
    """Rows (5, b) of the compiled walk."""
    blocks = ClaimBlocks(
        np.array([float(len(week)) for week in weeks]),
        np.array([fsum(week) for week in weeks]),
        np.array([fsum(r * r for r in week) for week in weeks]),
        np.full(len(weeks), largest_row),
    )
    out = np.empty((ROWS, len(weeks)))
    walk(blocks, Terms(side, float(most_trades), strict, 4.0), reference, out)
    return out


def stake_terms(past, row, most_trades, strict):
    """Spread and largest adverse sum of the next block, from past outcomes in the claim's favour."""
    if not past:
        return 0.0, 1.0
    rows = [y for week in past for y in week]
    mean, square = fsum(rows) / len(rows), fsum(y * y for y in rows) / len(rows)
    ss_row = fsum((y - mean) ** 2 for y in rows)
    ss_block = fsum(fsum(y - mean for y in week) ** 2 for week in past)
    pairs = sum(len(week) * (len(week) - 1) for week in past)
    icc = 1.0
    if pairs and not strict:
        prior = 4.0 * square * pairs / len(past)
        total = prior + pairs * ss_row / len(rows)
        if total > 0.0:
            icc = min(max((prior + ss_block - ss_row) / total, 0.0), 1.0)
    size = len(rows) / len(past)
    spread = sqrt((size * (1.0 + (size - 1.0) * icc) * square + ss_block) / (len(past) + 1.0))
    most = max(most_trades, *map(len, past))
    adverse = max(row * (1.0 + (most - 1.0) * icc), *(-fsum(week) for week in past))
    return spread, adverse


def by_hand(weeks, side, reference, largest_row, most_trades, strict):
    """The five rows of the walk, every start block multiplied out by itself."""
    own = [[side * (r - reference) for r in week] for week in weeks]
    row = max(largest_row + side * reference, 0.05)
    terms = [stake_terms(own[:t], row, most_trades, strict) for t in range(len(own))]
    factors = [
        [
            1.0
            if spread <= 0.0
            else max(0.0, 1.0 + min(f / spread, 1.0 / adverse) * min(fsum(week), 3.0 * spread))
            for f in FRACTIONS
        ]
        for week, (spread, adverse) in zip(own, terms, strict=True)
    ]
    found = []
    for t in range(len(own)):
        grown = [
            np.prod(np.array(factors[start : t + 1]), axis=0).mean() for start in range(t + 1)
        ]  # of one unit from each start block
        started = grown[:156]
        cash = 1.0 - len(started) / 156
        restarted = fsum(started) / 156 + cash
        e_value = grown[0] / 3.0 + 2.0 / 3.0 * restarted
        found.append((e_value, grown[0], fsum(grown), *terms[t]))
    return np.array(found).T


@settings(max_examples=150)
@given(
    WEEKS,
    st.sampled_from([1.0, -1.0]),
    REFERENCES,
    st.sampled_from([0.25, 2.0, 4.0, 10.0]),
    st.sampled_from([0, 3, 30]),
    st.booleans(),
)
def test_walk_is_what_its_formulas_say(weeks, side, reference, largest_row, most_trades, strict):
    terms = (side, reference, largest_row, most_trades, strict)
    np.testing.assert_allclose(walked(weeks, *terms), by_hand(weeks, *terms), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weeks", [START_BLOCKS - 1, START_BLOCKS, START_BLOCKS + 1, START_BLOCKS + 40])
def test_capital_starts_anew_at_each_of_the_first_blocks_and_never_after_them(weeks):
    draw = np.random.default_rng(weeks)
    outcomes = [(draw.integers(-40, 44, 1 + t % 3) / 16).tolist() for t in range(weeks)]
    terms = (1.0, 0.0, 3.0, 0, False)
    np.testing.assert_allclose(walked(outcomes, *terms), by_hand(outcomes, *terms), rtol=1e-9, atol=1e-12)


def test_first_block_is_no_bet_and_all_capital_is_there():
    path = walked([[-1.0, 2.0, 2.0]])
    assert path[[WITH_RESTARTS, PLAIN, DETECTOR], 0].tolist() == pytest.approx([1.0, 1.0, 1.0], abs=1e-12)
    assert path[SPREAD, 0] == 0.0


def test_formula_by_hand_for_two_blocks_of_one_row():
    path = walked([[1.0], [-0.5], [2.0]], largest_row=3.0)
    # After one block: V = 1, n = 1, mu = 1: s^2 = 1 / 2; the cap of 1/3 binds beyond a fraction of .23.
    stakes = [min(f / sqrt(0.5), 1.0 / 3.0) for f in FRACTIONS]
    assert path[PLAIN, 1] == pytest.approx(np.mean([1.0 - 0.5 * stake for stake in stakes]))
    # After two: V = 1.25 / 2, mu = .25, sum (y - mu)^2 = 1.125: s^2 = (.625 + 1.125) / 3.
    assert path[SPREAD, 2] == pytest.approx(sqrt(1.75 / 3))
    assert path[ADVERSE, 2] == 3.0


def test_gain_is_cut_at_three_spreads_and_a_loss_never():
    calm = [[0.25], [-0.25]] * 10
    high, higher = (walked([*calm, [gain]])[PLAIN, -1] for gain in (2.0, 8.0))
    assert high == higher
    loss, larger = (walked([*calm, [-drop]])[PLAIN, -1] for drop in (2.0, 3.0))
    assert larger < loss < high


def test_largest_adverse_sum_so_far_bounds_the_stake():
    path = walked([[0.5], [-7.0], [0.5]], largest_row=3.0)
    assert path[ADVERSE].tolist() == [1.0, 3.0, 7.0]


def test_declared_limit_of_trades_bounds_the_stake_from_the_second_block_on():
    free = walked([[1.0, 0.5]] * 3, largest_row=2.0, strict=True)
    declared = walked([[1.0, 0.5]] * 3, largest_row=2.0, most_trades=30, strict=True)
    assert free[ADVERSE, 1:].tolist() == [4.0, 4.0]
    assert declared[ADVERSE, 1:].tolist() == [60.0, 60.0]


@given(WEEKS, REFERENCES)
def test_strict_stakes_are_never_larger(weeks, reference):
    free, strict = (walked(weeks, reference=reference, strict=value) for value in (False, True))
    assert np.all(strict[SPREAD] >= free[SPREAD] * (1.0 - 1e-12))
    assert np.all(strict[ADVERSE] >= free[ADVERSE] * (1.0 - 1e-12))


@given(WEEKS, st.sampled_from([2, 4, 8]))
def test_copies_of_every_row_change_no_strict_evidence(weeks, copies):
    """A bet counts once, however many rows tell of it, where rows of a block count as one bet."""
    copied = [[r for r in week for _ in range(copies)] for week in weeks]
    once, often = (walked(found, strict=True)[[WITH_RESTARTS, PLAIN, DETECTOR]] for found in (weeks, copied))
    np.testing.assert_allclose(often, once, rtol=1e-9)


@given(WEEKS, st.sampled_from([1.0, -1.0]), st.randoms(use_true_random=False))
def test_mirrored_outcomes_swap_the_sides(weeks, side, random):
    mirrored = [[-r for r in week] for week in weeks]
    np.testing.assert_array_equal(walked(weeks, side), walked(mirrored, -side))


@given(WEEKS, st.data())
def test_stakes_use_nothing_of_the_block_they_are_placed_on_or_of_later_ones(weeks, data):
    t = data.draw(st.integers(0, len(weeks) - 1))
    other = data.draw(st.lists(OUTCOMES, min_size=1, max_size=6))
    before, after = walked(weeks), walked([*weeks[:t], other, *weeks[t + 1 :]])
    assert before[:, :t].tobytes() == after[:, :t].tobytes()
    assert before[[SPREAD, ADVERSE], t].tobytes() == after[[SPREAD, ADVERSE], t].tobytes()


@pytest.mark.parametrize(("rows", "win"), [(1, 2.0), (2, 2.0), (3, 4.0), (1, 0.25)])
def test_mean_of_strict_evidence_over_every_null_world_is_at_most_one(rows, win):
    """All weeks of `rows` copies of one bracket, weighted by their probability, on declared terms."""
    chance = 1.0 / (1.0 + win)
    means = {WITH_RESTARTS: 0.0, PLAIN: 0.0, DETECTOR: 0.0}
    weeks = 9
    for world in product((0, 1), repeat=weeks):
        weight = np.prod([chance if won else 1.0 - chance for won in world])
        path = walked(
            [[win if won else -1.0] * rows for won in world],
            largest_row=1.0,
            most_trades=rows,
            strict=True,
        )
        for name in means:
            means[name] += weight * path[name, -1]
    assert means[PLAIN] <= 1.0 + 1e-9
    assert means[WITH_RESTARTS] <= 1.0 + 1e-9
    assert means[DETECTOR] <= weeks + 1e-9
    assert means[PLAIN] > 0.5  # it is a bet: what favours the claim is cut, and that is all that is lost


@pytest.mark.parametrize("win", [2.0, 4.0])
def test_mean_of_strict_evidence_for_a_loss_is_at_most_one_when_the_target_is_declared(win):
    chance, mean = 1.0 / (1.0 + win), 0.0
    for world in product((0, 1), repeat=9):
        weight = np.prod([chance if won else 1.0 - chance for won in world])
        weeks = [[win if won else -1.0] for won in world]
        mean += weight * walked(weeks, -1.0, largest_row=win, most_trades=1, strict=True)[PLAIN, -1]
    assert 0.5 < mean <= 1.0 + 1e-9


def test_evidence_of_a_century_of_gains_is_a_finite_number():
    path = walked([[2.0]] * 5_000)
    assert np.all(np.isfinite(path))
