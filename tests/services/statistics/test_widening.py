"""Blocks that resemble their neighbours: four periods have to agree, and that never makes evidence."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from services.statistics.blocks import GAINING, LOSING, blocks_of
from services.statistics.claim_path import (
    UNKNOWN,
    YES,
    ClaimBlocks,
    Widening,
    all_resembling,
    resembling,
)
from services.statistics.track import TOGETHER
from tests.services.statistics.laid_out import BOUNDS, t3, uneven, uneven_track, weekly_track

NEVER_NS = 40_000 * 86_400 * 10**9
WEEKS = st.lists(
    st.lists(st.integers(-48, 64).map(lambda k: k / 16), min_size=0, max_size=4), min_size=1, max_size=60
).filter(any)


def shocks(seed, weeks, size, lasting=4, share=0.5):
    """Outcomes of mean zero that share a shock for several weeks."""
    draw = np.random.default_rng(seed)
    common = np.repeat(draw.standard_normal(-(-weeks // lasting)), lasting)[:weeks, None]
    return np.sqrt(share) * common + np.sqrt(1.0 - share) * t3(draw, (weeks, size))


def resembles(sizes, totals):
    """The rule of `resembling` in numpy, for the last block alone."""
    values = totals - sizes * totals.sum() / sizes.sum()
    b = len(values)
    parts = [values]
    if b >= 12:
        gained = {}
        for split in range(b // 10 + 1, b - b // 10):
            apart = values[:split].mean() - values[split:].mean()
            gained[split] = apart**2 * split * (b - split)
        best = max(gained, key=lambda split: (gained[split], -split))
        parts = [values[:best], values[best:]]
    centred = np.concatenate([part - part.mean() for part in parts])
    around = (centred**2).sum()
    return around > 0.0 and (centred[1:] * centred[:-1]).sum() / around * np.sqrt(b) > 1.0


@given(st.integers(0, 10_000), st.integers(1, 50), st.floats(0.0, 0.9))
def test_blocks_are_flagged_where_their_first_autocorrelation_says_so(seed, blocks, share):
    draw = np.random.default_rng(seed)
    sizes = draw.integers(1, 6, blocks).astype(np.float64)
    totals = shocks(seed, blocks, 1, share=share)[:, 0] * sizes
    seen = ClaimBlocks(sizes, totals, totals**2, np.full(blocks, 4.0))
    known = Widening(np.full(blocks, UNKNOWN, dtype=np.int8), np.zeros(blocks, dtype=np.int64))
    request = int(draw.integers(0, blocks))
    resembling(seen, seen, known, request)
    assert [place for place in range(blocks) if known.flagged[place] != UNKNOWN] == [request]
    all_resembling(seen, seen, known)
    wanted = [bool(resembles(sizes[:k], totals[:k])) for k in range(1, blocks + 1)]
    assert (known.flagged == YES).tolist() == wanted
    never = ClaimBlocks(sizes, np.zeros(blocks), np.zeros(blocks), seen.row)  # either claim's blocks count
    either = Widening(np.full(blocks, UNKNOWN, dtype=np.int8), known.groups)
    all_resembling(never, seen, either)
    assert either.flagged.tolist() == known.flagged.tolist()


def test_shocks_that_last_four_weeks_are_flagged_and_only_what_four_weeks_show_counts():
    flagged = smaller = 0
    for seed in range(20):
        one = weekly_track(shocks(seed, 104, 5))
        seen = one.at(NEVER_NS)
        flagged += seen.widened
        alone = tuple(float(one._walks[claim][0, -1]) for claim in (LOSING, GAINING))
        assert all(shown <= own * (1.0 + 1e-8) for shown, own in zip(seen.e_values, alone, strict=True))
        smaller += seen.widened and seen.e_values != tuple(float(f"{own:.9g}") for own in alone)
        if seen.widened:
            assert seen.note == (
                "weeks resemble each other: what four of them show together counts where it is less"
            )
    assert flagged >= 18
    assert smaller >= 10


def test_independent_weeks_are_rarely_held_together():
    """r_1 sqrt(b) > 1 has a chance of about one sixth under independence."""
    widened = [
        weekly_track(t3(np.random.default_rng(seed), (80, 5))).at(NEVER_NS).widened for seed in range(100)
    ]
    assert np.mean(widened) <= 0.16 + 2.0 * np.sqrt(0.16 * 0.84 / 100)
    quiet = weekly_track(t3(np.random.default_rng(widened.index(False)), (80, 5))).at(NEVER_NS)
    assert quiet.note == ""


def test_mean_that_moved_once_is_a_finding_and_no_dependence():
    """From +.5 to -.7R: without the split every block would resemble the one before."""
    widened = []
    for seed in range(40):
        moved = np.where(np.arange(80) < 40, 0.5, -0.7)[:, None]
        one = weekly_track(t3(np.random.default_rng(seed), (80, 5)) + moved)
        widened.append(one.at(NEVER_NS).widened)
        values = one.blocks.raw - one.blocks.raw.mean()
        assert (values[1:] * values[:-1]).sum() / (values**2).sum() * np.sqrt(80) > 1.0
    assert np.mean(widened) <= 0.16 + 2.0 * np.sqrt(0.16 * 0.84 / 40)


@settings(max_examples=80)
@given(WEEKS)
def test_widened_evidence_is_the_smaller_of_one_week_and_of_the_four_weeks_that_are_over(weeks):
    one = uneven_track(weeks)
    groups = blocks_of(uneven(weeks), "week", BOUNDS.low, BOUNDS.high, together=TOGETHER)
    paths = one._paths
    flags, over = one._widening.flagged == YES, one._widening.groups
    for t, number in enumerate(one.blocks.numbers):
        ended = [group for group in groups.numbers if group * TOGETHER + TOGETHER - 1 <= number]
        assert over[t] == len(ended)
        for which in (0, 1):
            for claim in (LOSING, GAINING):
                own = one._walks[claim][which, t]
                together = one._walk(one._grouped[claim], claim)[which, over[t] - 1] if over[t] else 1.0
                assert paths[which][claim, t] == (min(own, together) if flags[t] else own)


def test_widening_brings_false_alarms_of_lasting_shocks_down():
    """Mean zero, shocks over four weeks: against single weeks twenty is reached too often."""
    plain, widened = [], []
    for seed in range(200):
        one = weekly_track(shocks(seed, 104, 5))
        for claim in (LOSING, GAINING):
            plain.append(one._walks[claim][0].max() >= 20.0)
            widened.append(one._paths[0][claim].max() >= 20.0)
    assert np.mean(plain) > 0.08
    assert np.mean(widened) <= 0.05 + 2.0 * np.sqrt(0.05 * 0.95 / 400)
