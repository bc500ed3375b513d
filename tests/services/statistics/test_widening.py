"""How many blocks make one bet: rule R, what it reads, and that it never makes evidence."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.statistics.blocks import GAINING, LOSING, Trades, blocks_of
from services.statistics.calendar_units import DAY_NS
from services.statistics.group_length import LENGTHS, MEMORY, Judge, agreeing, groups_over, is_quiet, likeness
from services.statistics.track import Track
from tests.services.statistics.laid_out import (
    BOUNDS,
    MONDAY,
    WEEK_NS,
    account_of,
    t3,
    uneven,
    uneven_track,
    weekly_track,
)

NEVER_NS = 40_000 * 86_400 * 10**9
WEEKS = st.lists(
    st.lists(st.integers(-48, 64).map(lambda k: k / 16), min_size=0, max_size=4), min_size=1, max_size=60
).filter(any)


def shocks(seed, weeks, size, lasting=4, share=0.5):
    """Outcomes of mean zero that share a shock for several weeks."""
    draw = np.random.default_rng(seed)
    common = np.repeat(draw.standard_normal(-(-weeks // lasting)), lasting)[:weeks, None]
    return np.sqrt(share) * common + np.sqrt(1.0 - share) * t3(draw, (weeks, size))


def plain_likeness(sizes, totals, *, split):
    """r of `likeness` in plain numpy, for the last group alone."""
    values = totals - sizes * totals.sum() / sizes.sum()
    b = len(values)
    parts = [values]
    if split and b >= 12:
        gained = {}
        for place in range(b // 10 + 1, b - b // 10):
            apart = values[:place].mean() - values[place:].mean()
            gained[place] = apart**2 * place * (b - place)
        best = max(gained, key=lambda place: (gained[place], -place))
        parts = [values[:best], values[best:]]
    centred = np.concatenate([part - part.mean() for part in parts]) if len(parts) > 1 else values
    return (centred[1:] * centred[:-1]).sum() / (centred**2).sum()


@given(st.integers(0, 10_000), st.integers(4, 40), st.booleans())
def test_likeness_is_the_first_autocorrelation_with_the_best_split_taken_out(seed, groups, split):
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 6, groups).astype(np.float64)
    totals = shocks(seed, groups, 1)[:, 0] * sizes
    found = likeness(sizes, totals)[int(split)]
    assert np.isnan(found[:3]).all()
    wanted = [plain_likeness(sizes[:k], totals[:k], split=split) for k in range(4, groups + 1)]
    assert found[3:] == pytest.approx(wanted, abs=1e-9)


def test_likeness_of_groups_that_are_alike_is_none():
    assert likeness(np.ones(20), np.full(20, -0.7))[1, 3:].tolist() == [0.0] * 17


def test_quiet_is_assumed_of_single_blocks_and_has_to_be_seen_of_longer_groups():
    groups = np.array([100])
    assert is_quiet(1, np.array([0.19]), groups).all()
    assert not is_quiet(1, np.array([0.21]), groups).any()
    assert not is_quiet(2, np.array([-0.04]), groups).any()
    assert is_quiet(8, np.array([-0.06]), groups).all()
    assert not is_quiet(1, np.array([np.nan]), groups).any()
    assert not is_quiet(1, np.array([0.0]), np.array([4])).any()


def judge_of(totals, size=5):
    numbers = np.arange(len(totals))
    return Judge(numbers, numbers + 1, np.full(len(totals), float(size)), np.asarray(totals, dtype=float))


def none_late(judge):
    return [np.zeros(len(judge.numbers), dtype=np.int64)] * len(LENGTHS)


def test_any_judge_makes_groups_longer_and_a_pause_of_twelve_blocks_does_not_end_it():
    draw = np.random.default_rng(5)
    quiet = judge_of(np.tile([1.0, -1.0], 60) + 0.1 * draw.standard_normal(120))
    loud = judge_of(np.repeat(draw.standard_normal(20), 6))
    assert agreeing(quiet, None, quiet, none_late(quiet)).max() == 1
    assert agreeing(quiet, loud, quiet, none_late(quiet))[-1] > 1
    assert agreeing(quiet, None, loud, none_late(quiet))[-1] > 1
    assert agreeing(loud, None, quiet, none_late(quiet))[-1] > 1
    # Loud until block 60, then as quiet as can be: it stays longer for the memory after the last loud block.
    ended = judge_of(np.concatenate((np.repeat([1.0, -1.0], 6), np.tile([40.0, -40.0], 40))))
    found = agreeing(ended, None, quiet, none_late(ended))
    r = likeness(ended.sizes, ended.totals)[1]
    last = int(np.flatnonzero(~is_quiet(1, r, np.arange(1, 93)) & ~np.isnan(r)).max())
    assert (found[last : last + MEMORY + 1] > 1).all()
    assert (found[last + MEMORY + 1 :] == 1).all()


def test_groups_are_as_long_as_half_of_the_trades_need_to_end_in_theirs():
    def held(days):
        entry = MONDAY + np.arange(60) * WEEK_NS + DAY_NS
        outcomes = np.tile([1.0, -1.0], 30)
        return Track(Trades(entry, entry + days * DAY_NS, outcomes), "week", 0.0, BOUNDS)

    assert [held(days).at(NEVER_NS).together for days in (3, 9, 20, 27)] == [1, 2, 4, 8]


def test_mean_that_moved_once_is_a_finding_where_the_rest_of_the_account_did_not_move():
    """From +.5 to -.7R; alone it may as well be a long shock, and longer groups have to agree."""
    moved = np.where(np.arange(80) < 40, 0.5, -0.7)[:, None]
    alone, with_others, all_moved = [], [], []
    for seed in range(30):
        draw = np.random.default_rng(seed)
        own, other = t3(draw, (80, 5)) + moved, t3(draw, (80, 15))
        alone.append(weekly_track(own).at(NEVER_NS).together)
        with_others.append(account_of(own, other)[0].at(NEVER_NS).together)
        all_moved.append(account_of(own, other + moved)[0].at(NEVER_NS).together)
    assert np.mean(np.array(with_others) == 1) >= 0.7
    assert np.mean(np.array(alone) == 1) <= 0.1
    assert np.mean(np.array(all_moved) == 1) <= 0.1


def test_shocks_that_last_are_held_together_and_only_what_the_groups_show_counts():
    flagged = smaller = 0
    for seed in range(20):
        one = weekly_track(shocks(seed, 104, 5))
        seen = one.at(NEVER_NS)
        flagged += seen.together > 1
        alone = tuple(float(one._walks[claim][0, -1]) for claim in (LOSING, GAINING))
        assert all(shown <= own * (1.0 + 1e-8) for shown, own in zip(seen.e_values, alone, strict=True))
        smaller += seen.e_values != tuple(float(f"{own:.9g}") for own in alone)
        if seen.together > 1:
            assert f"what up to {seen.together} of them show together counts where it is less" in seen.note
    assert flagged >= 18
    assert smaller >= 10


def test_independent_weeks_are_rarely_held_together():
    together = [
        weekly_track(t3(np.random.default_rng(seed), (80, 5))).at(NEVER_NS).together for seed in range(60)
    ]
    assert np.mean(np.array(together) > 1) <= 0.16 + 2.0 * np.sqrt(0.16 * 0.84 / 60)
    assert weekly_track(t3(np.random.default_rng(together.index(1)), (80, 5))).at(NEVER_NS).note == ""


@settings(max_examples=60)
@given(WEEKS)
def test_evidence_is_the_least_of_single_weeks_and_of_the_groups_that_have_to_agree(weeks):
    one = uneven_track(weeks)
    paths, agree = one._paths, one._looks.agree
    for place in range(int(agree.max())):
        length = LENGTHS[place]
        groups = blocks_of(uneven(weeks), "week", BOUNDS.low, BOUNDS.high, together=length)
        over = groups_over(one.blocks.numbers, length)
        assert over.tolist() == one._looks.over[place].tolist()
        for t, number in enumerate(one.blocks.numbers):
            ended = [group for group in groups.numbers if group * length + length - 1 <= number]
            assert over[t] == len(ended)
    for t in range(len(one.blocks)):
        for which in (0, 1):
            for claim in (LOSING, GAINING):
                shown = [one._path(claim, which, place)[t] for place in range(agree[t])]
                assert paths[which][claim, t] == min(shown)


def test_groups_bring_false_alarms_of_lasting_shocks_down():
    """Mean zero, shocks over six weeks: against single weeks twenty is reached too often."""
    plain, grouped = [], []
    for seed in range(200):
        one = weekly_track(shocks(seed, 104, 5, lasting=6))
        for claim in (LOSING, GAINING):
            plain.append(one._walks[claim][0].max() >= 20.0)
            grouped.append(one._paths[0][claim].max() >= 20.0)
    assert np.mean(plain) > 0.08
    assert np.mean(grouped) <= 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / 400)


def test_longer_groups_are_read_only_where_shorter_ones_are_not_calm():
    draw = np.random.default_rng(5)
    quiet = judge_of(np.tile([1.0, -1.0], 60) + 0.1 * draw.standard_normal(120))
    loud = judge_of(np.repeat(draw.standard_normal(20), 6))
    assert (agreeing(quiet, None, None, none_late(quiet)).max(), set(quiet._found)) == (1, {1})
    assert agreeing(loud, None, None, none_late(loud)).max() > 1
    assert set(loud._found) == set(LENGTHS[:-1])
