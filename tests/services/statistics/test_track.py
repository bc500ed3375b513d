"""What a cluster has shown at a look: two claims, each on its own side, from nothing but what was known."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.errors import DataError
from schemas.settings import GateSettings
from schemas.vocabulary import EvidenceGrade
from services.high_level.clusters import Cluster, Measure
from services.high_level.grading import decide_measures
from services.statistics.blocks import GAINING, LOSING, Trades
from services.statistics.calendar_units import DAY_NS, unit_numbers
from services.statistics.claim_path import ADVERSE, SPREAD
from services.statistics.multiplicity import register_family
from services.statistics.sample import CLAIMS, PROVEN_E
from services.statistics.track import Bounds, Company, Track
from tests.services.statistics.laid_out import (
    BOUNDS,
    MONDAY,
    WEEK_NS,
    among_others,
    bracket,
    t3,
    uneven,
    uneven_track,
    weekly,
    weekly_track,
)

GATE = GateSettings()
NEVER_NS = 40_000 * DAY_NS
ROWS = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 40), st.integers(-130, 200).map(lambda k: k / 16)),
    min_size=1,
    max_size=60,
)
TEACHING = st.lists(  # few weeks, long holds and large rows that come again
    st.tuples(st.integers(4, 40), st.integers(0, 40), st.sampled_from([-7.0, -1.0, 2.0, 8.0])),
    min_size=4,
    max_size=60,
)
OUTCOMES = st.lists(
    st.lists(st.integers(-200, 200).map(lambda k: k / 16), min_size=1, max_size=5), min_size=1, max_size=40
)


def decided(seen, family):
    """The gate's verdict on a playbook of which this was seen."""
    no_track: Any = None  # which nothing asks
    whole = Cluster("a", None, None, "a", np.arange(0), no_track)
    (verdict,) = decide_measures([Measure(whole, seen)], family, GATE, {})
    return verdict


def trades(rows):
    """Trades of rows (day of entry, days held, R)."""
    return Trades.of([((start + hold) * DAY_NS + 1, start * DAY_NS, r) for start, hold, r in rows])


def track(rows, **more) -> Track:
    return Track(trades(rows), "week", 0.0, BOUNDS, **more)


def stakes(one: Track):
    """Spreads and largest adverse sums of both claims, (2, 2, b)."""
    found = [
        [one.stakes(claim, block + 1) for block in range(len(one.blocks))] for claim in (LOSING, GAINING)
    ]
    return np.array(found).transpose(0, 2, 1)


def everything(one: Track):
    """All that is told of a track at each of its blocks."""
    looks = [int(at) for at in one.blocks.complete_at]
    return [(one.at(at), one.interval(one.complete(at)), one.fixed_time(one.complete(at))) for at in looks]


@settings(max_examples=60)
@given(ROWS, st.randoms(use_true_random=False))
def test_order_of_rows_reaches_no_bit_of_the_evidence(rows, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert everything(track(rows)) == everything(track(shuffled))


@settings(max_examples=100)
@given(ROWS, st.integers(0, 250))
def test_look_at_a_time_tells_what_the_trades_known_by_then_tell(rows, day):
    at = day * DAY_NS + 2
    whole = trades(rows)
    known, entered = whole.exit_ns <= at, whole.entry_ns <= at
    waiting = whole.entry_ns[entered & ~known]
    seen = Track(
        Trades(whole.entry_ns[known], whole.exit_ns[known], whole.r[known]),
        "week",
        0.0,
        BOUNDS,
        open_since=int(waiting.min()) if len(waiting) else None,
    )
    later = Track(whole, "week", 0.0, BOUNDS)
    assert later.at(at) == seen.at(at)
    assert later.interval(later.complete(at)) == seen.interval(seen.complete(at))


@settings(max_examples=100)
@given(TEACHING, st.data())
def test_stakes_use_nothing_of_the_block_they_are_placed_on_or_of_later_ones(rows, data):
    before = track(rows)
    t = data.draw(st.integers(0, len(before.blocks) - 1))
    week = before.blocks.numbers[t]
    other = data.draw(st.sampled_from([-7.0, 8.0]))
    after = track(
        [
            (start, hold, other if unit_numbers(start * DAY_NS, "week") >= week else r)
            for start, hold, r in rows
        ]
    )
    assert stakes(before)[:, :, : t + 1].tobytes() == stakes(after)[:, :, : t + 1].tobytes()
    if t:
        earlier = np.array([before.blocks.complete_at[t - 1]])
        if before.blocks.complete_at[t] > earlier:
            assert before.log_e_at(earlier).tobytes() == after.log_e_at(earlier).tobytes()


@settings(max_examples=100)
@given(TEACHING, st.lists(st.booleans(), min_size=60, max_size=60), st.data())
def test_stakes_of_a_cell_use_nothing_later_of_the_playbook_that_teaches_them(rows, in_cell, data):
    cell = [row for row, own in zip(rows, in_cell, strict=False) if own] or rows[:1]

    def taught(found, own):
        return track(own, company=Company(playbook=track(found)))

    before = taught(rows, cell)
    t = data.draw(st.integers(0, len(before.blocks) - 1))
    week, other = before.blocks.numbers[t], data.draw(st.sampled_from([-7.0, 8.0]))

    def changed(found):
        return [(s, h, other if unit_numbers(s * DAY_NS, "week") >= week else r) for s, h, r in found]

    after = taught(changed(rows), changed(cell))
    assert stakes(before)[:, :, : t + 1].tobytes() == stakes(after)[:, :, : t + 1].tobytes()


@settings(max_examples=100)
@given(OUTCOMES, st.sampled_from([-0.5, 0.0, 0.25]))
def test_claim_never_stands_against_the_side_of_either_mean(weeks, reference):
    seen = uneven_track(weeks, reference).at(NEVER_NS)
    family = register_family(["a"], 0.49)
    verdict = decided(seen, family)
    r = np.concatenate([np.array(week) for week in weeks])
    raw, cut = r.mean() - reference, np.clip(r, BOUNDS.low, BOUNDS.high).mean() - reference
    if verdict.claim is not None:
        sign = 1.0 if verdict.claim == "gaining" else -1.0
        assert sign * raw > 0.0
        assert sign * cut > 0.0
        assert seen.e_value >= 1.0 / family.alpha("a") * (1.0 - 1e-9)
    if raw * cut <= 0.0 and abs(raw) > 1e-9 and abs(cut) > 1e-9:
        assert seen.leaning is None


@settings(max_examples=100)
@given(OUTCOMES)
def test_evidence_of_a_claim_on_its_wrong_side_is_none(weeks):
    one = uneven_track(weeks)
    seen = one.at(NEVER_NS)
    logs = one.log_e_at(np.array([NEVER_NS]))[0]
    for position, claim in enumerate(CLAIMS):
        if seen.leaning != claim:
            assert seen.proof_of(claim) == 1.0
            assert logs[position] == -np.inf
        else:
            assert seen.proof_of(claim) == seen.plain[position]
            assert np.exp(logs[position]) == pytest.approx(seen.e_values[position], rel=1e-8)
            assert seen.e_value == seen.e_values[position]
    if seen.leaning is None:
        assert seen.e_value == 1.0


@settings(max_examples=100)
@given(OUTCOMES, st.data())
def test_track_of_two_readings_has_the_smaller_evidence_of_them_at_every_look(weeks, data):
    held = [data.draw(st.lists(st.sampled_from(week), min_size=1)) if week else [] for week in weeks]
    one, other = uneven_track(weeks), uneven_track(held)
    both = Track(uneven(weeks), "week", 0.0, BOUNDS, otherwise=other)
    looks = one.blocks.complete_at
    logs = both.log_e_at(looks)
    assert logs.tolist() == np.minimum(one.log_e_at(looks), other.log_e_at(looks)).tolist()
    assert both.decay.tolist() == np.minimum(one.decay, other.decay).tolist()
    for at, log in zip(looks.tolist(), logs, strict=True):
        seen, alone = both.at(at), (one.at(at), other.at(at))
        agreed = alone[0].leaning if alone[0].leaning == alone[1].leaning else None
        assert seen.leaning == agreed
        assert seen.e_value == (min(reading.e_value for reading in alone) if agreed else 1.0)
        for position, claim in enumerate(CLAIMS):
            assert seen.proof_of(claim) == min(reading.proof_of(claim) for reading in alone) or not agreed
            assert np.exp(log[position]) == pytest.approx(seen.e_value if claim == agreed else 0.0, rel=1e-8)


def test_looks_before_the_first_block_show_nothing_on_either_side():
    one = weekly_track([[1.0, -1.0]] * 3)
    assert one.log_e_at(np.array([MONDAY])).tolist() == [[0.0, 0.0]]
    nothing = Track(Trades.of([]), "week", 0.0, BOUNDS)
    assert nothing.log_e_at(np.array([MONDAY, NEVER_NS])).tolist() == [[0.0, 0.0]] * 2
    seen = nothing.at(NEVER_NS)
    assert (seen.n, seen.blocks, seen.mean_r, seen.leaning, seen.e_value) == (0, 0, None, None, 1.0)


@pytest.mark.parametrize("q", [0.05, 0.1, 0.3])
def test_both_claims_together_have_the_weight_of_their_hypothesis(q):
    family = register_family(["a", "a|up/mid", "b"], q)
    for name, weight in zip(family.members, family.weights, strict=True):
        # Half of q belongs to the first epoch, and half of that to each claim.
        assert len(CLAIMS) * family.alpha(name) == pytest.approx(q * weight / 2)
    assert 2 * sum(family.charged) == pytest.approx(0.5)


def test_claim_that_is_told_is_the_one_that_was_selected():
    family = register_family(["a"], GATE.q)
    for mean, claim in ((-0.6, "losing"), (0.6, "gaining")):
        outcomes = t3(np.random.default_rng(1), (80, 5)) + mean
        seen = weekly_track(outcomes).at(NEVER_NS)
        verdict = decided(seen, family)
        assert verdict.decision.grade is EvidenceGrade.SIGNIFICANT
        assert verdict.claim == claim


def test_gain_is_cut_for_the_claim_of_gaining_alone():
    """One trade of 12R counts in full against a loss, and as 4R for a gain; a loss the other way round."""
    base = bracket(np.random.default_rng(2), (40, 5), 2.0)
    for claim, cut, seen_in_full, r in ((GAINING, 4.0, LOSING, 12.0), (LOSING, -3.0, GAINING, -12.0)):
        small, large = base.copy(), base.copy()
        small[20, 0], large[20, 0] = cut, r
        one, other = weekly_track(small), weekly_track(large)
        assert one.at(NEVER_NS).e_values[claim] == other.at(NEVER_NS).e_values[claim]
        assert one.at(NEVER_NS).e_values[seen_in_full] > other.at(NEVER_NS).e_values[seen_in_full]


def test_rare_large_winner_is_no_loss_because_it_is_cut():
    """A trend follower: the winsorised mean is below zero, the raw mean above, and no claim stands."""
    weeks = [[-0.2] * 5] * 39 + [[60.0, -0.2, -0.2, -0.2, -0.2]]
    seen = weekly_track(weeks).at(NEVER_NS)
    assert seen.mean_r is not None
    assert seen.mean_raw is not None
    assert seen.mean_r < 0.0 < seen.mean_raw
    assert (seen.leaning, seen.e_value) == (None, 1.0)


def turned(first, before, after):
    """Seven noisy trades a week around a mean that changes its sign."""
    outcomes = np.repeat([[1.0], [-1.0]], (before, after), axis=0) + t3(
        np.random.default_rng(1), (before + after, 7)
    )
    return first * outcomes


@pytest.mark.parametrize(("first", "side"), [(1.0, "gaining"), (-1.0, "losing")])
def test_no_claim_stands_while_a_stretch_of_blocks_proves_the_other(first, side):
    """72 weeks on one side, then 70 on the other: the means of all trades are those of the first."""
    one = among_others(turned(first, 72, 70))
    seen = one.at(NEVER_NS)
    own, other = CLAIMS.index(side), 1 - CLAIMS.index(side)
    assert seen.side == side
    assert min(seen.e_values) >= PROVEN_E
    assert seen.e_values[other] > seen.e_values[own]
    assert (seen.contested, seen.leaning, seen.e_value) == (True, None, 1.0)
    assert [seen.proof_of(claim) for claim in CLAIMS] == [1.0, 1.0]
    assert one.log_e_at(np.array([NEVER_NS])).tolist() == [[-np.inf, -np.inf]]
    assert seen.note.startswith(
        f"the means of all trades lie on the {side} side, but a stretch of blocks proves {CLAIMS[other]} (E "
    )
    family = register_family(["a"], GATE.q)
    verdict = decided(seen, family)
    assert seen.e_values[own] >= 1.0 / family.alpha("a")  # selected, if the other one were not proven
    assert (verdict.claim, verdict.decision.grade) == (None, EvidenceGrade.COUNT_ONLY)


def test_claim_stands_again_when_the_stretch_that_spoke_against_it_is_forgotten():
    """40 weeks gain, 80 lose: nothing proves the gain any more, and the loss is claimed."""
    seen = among_others(turned(1.0, 40, 80)).at(NEVER_NS)
    assert (seen.contested, seen.leaning) == (False, "losing")
    assert seen.e_value > PROVEN_E


@pytest.mark.parametrize(("weeks", "claim"), [(2, "gaining"), (4, None), (12, None)])
def test_claim_outlives_its_mean_by_the_weeks_that_limits_tells_of(weeks, claim):
    """180 weeks around 1R, then around -2.5R: blocks that resemble each other so end the claim, no proof."""
    noise = t3(np.random.default_rng(11), (180 + weeks, 5))
    seen = among_others(np.repeat([[1.0], [-2.5]], (180, weeks), axis=0) + noise).at(NEVER_NS)
    family = register_family(["a"], GATE.q)
    verdict = decided(seen, family)
    assert (seen.contested, verdict.claim) == (False, claim)


@pytest.mark.parametrize("reference", [-3.0, 4.0, 5.0])
def test_reference_outside_the_winsor_bounds_is_refused(reference):
    with pytest.raises(DataError, match="strictly between"):
        weekly_track([[0.0]], reference)


def test_target_of_the_playbook_is_what_one_row_may_bring_against_a_loss():
    weeks = bracket(np.random.default_rng(3), (20, 1), 2.0)
    usual = weekly_track(weeks)
    declared = weekly_track(weeks, bounds=Bounds(-3.0, 4.0, target=2.0))
    assert usual.stakes(LOSING, 2)[1] == 4.0
    assert declared.stakes(LOSING, 2)[1] == 2.0
    assert usual.stakes(GAINING, 2)[1] == declared.stakes(GAINING, 2)[1] == 3.0


def test_row_that_came_twice_is_believed_from_then_on_and_at_most_ten_r():
    weeks = [[-1.0]] * 3 + [[7.0], [-1.0], [7.0], [-1.0], [18.0], [-1.0], [18.0], [-1.0]]
    adverse = [weekly_track(weeks)._rows(weekly_track(weeks).blocks, LOSING)[t] for t in range(len(weeks))]
    assert adverse == [4.0] * 6 + [7.0] * 4 + [10.0]


def test_rows_of_a_block_that_was_complete_with_the_one_before_are_no_news_to_its_own_stake():
    """One trade of the first week is held until the second is over: both weeks count from one moment on."""
    rows = [(4, 30, -1.0), *[(11, 0, 8.0)] * 3, (18, 0, 1.0), (25, 0, 1.0), (39, 0, 1.0)]
    one = track(rows)
    assert len(set(one.blocks.complete_at[:4].tolist())) == 1
    assert one._rows(one.blocks, LOSING).tolist() == [4.0, 4.0, 8.0, 8.0, 8.0]


def test_playbook_teaches_its_cells_how_large_a_row_may_be():
    cell = [[-1.0, 2.0]] * 12
    whole = weekly_track([[-1.0, 2.0, 7.0]] * 12)
    taught = Track(weekly(cell), "week", 0.0, BOUNDS, company=Company(playbook=whole))
    alone = weekly_track(cell)
    assert taught.stakes(LOSING, 12)[1] > alone.stakes(LOSING, 12)[1]


def test_open_position_holds_its_week_back():
    outcomes = t3(np.random.default_rng(4), (20, 5)) - 0.4
    free = weekly_track(outcomes)
    held = Track(weekly(outcomes), "week", 0.0, BOUNDS, open_since=MONDAY + 9 * WEEK_NS)
    seen = held.at(NEVER_NS)
    assert (seen.n, seen.counted, seen.blocks) == (100, 45, 9)
    assert seen.e_values == free.at(int(free.blocks.complete_at[8])).e_values


def test_stakes_of_a_track_are_those_of_its_walk():
    one = weekly_track(t3(np.random.default_rng(5), (12, 3)))
    path = one._walks[LOSING]
    assert [one.stakes(LOSING, k + 1) for k in range(12)] == list(
        zip(path[SPREAD].tolist(), path[ADVERSE].tolist(), strict=True)
    )
