import numpy as np
import pytest
from scipy.stats import norm

from services.statistics.blocks import Trades, resemblance
from services.statistics.calendar_units import DAY_NS, unit_starts
from services.statistics.second_opinion import (
    final_bound,
    months_to_claim,
    second_opinion,
    side_level,
    skew_corrected_t,
)
from services.statistics.track import Bounds, Track

BOUNDS = Bounds(-3.0, 4.0)
FIRST = 40 * 12  # January 2010, a month's number


def monthly(outcomes, *, otherwise=None, unit="month", open_since=None, bounds=BOUNDS):
    """A track of one trade a month, on its third day."""
    entry = unit_starts(FIRST + np.arange(len(outcomes)), "month") + 2 * DAY_NS
    trades = Trades(entry, entry + DAY_NS, np.asarray(outcomes, dtype=np.float64))
    return Track(trades, unit, 0.0, bounds, open_since, otherwise=otherwise)


def after(months):
    return int(unit_starts(FIRST + months, "month"))


def losing(months, seed=0, mean=-0.6):
    return np.random.default_rng(seed).standard_normal(months) * 0.9 + mean


@pytest.mark.parametrize(
    ("looks", "level", "published"), [(2, 0.025, 1.977), (5, 0.025, 2.040), (5, 0.005, 2.621)]
)
def test_final_bound_is_that_of_the_published_tables(looks, level, published):
    """Jennison and Turnbull, "Group sequential methods" (2000), table 2.3."""
    assert final_bound(looks, level) == pytest.approx(published, abs=2e-3)


def test_one_look_has_the_normal_quantile():
    assert final_bound(1, 0.01) == pytest.approx(norm.isf(0.01), abs=1e-6)


def test_a_walk_crosses_the_bounds_at_their_level():
    walks = np.random.default_rng(1).standard_normal((40_000, 5)).cumsum(axis=1)
    line = final_bound(5, 0.02) * np.sqrt(5.0)
    assert np.mean((walks >= line).any(axis=1)) == pytest.approx(0.02, abs=0.003)


def test_a_clear_loss_is_claimed_and_a_fair_playbook_is_not():
    opinion = second_opinion(monthly(losing(60)), after(61), 5, 5)
    assert opinion is not None
    assert (opinion.claim, opinion.looks) == ("losing", 5)
    assert opinion.t <= -opinion.bound < 0.0
    assert second_opinion(monthly(losing(60, mean=0.0)), after(61), 5, 5) is None


def test_a_gain_is_claimed_with_a_t_above_its_bound():
    opinion = second_opinion(monthly(-losing(60)), after(61), 5, 5)
    assert opinion is not None
    assert opinion.claim == "gaining"
    assert opinion.t >= opinion.bound


def test_nothing_after_the_time_of_the_look_reaches_the_opinion():
    outcomes = losing(120)
    for months in (13, 30, 61, 100):
        whole = second_opinion(monthly(outcomes), after(months), 5, 5)
        assert whole == second_opinion(monthly(outcomes[:months]), after(months), 5, 5)


def test_looks_are_yearly_so_that_a_month_more_changes_nothing():
    track = monthly(losing(60))
    opinions = [second_opinion(track, after(months), 5, 5) for months in range(61)]
    changes = [m for m in range(1, 61) if opinions[m] != opinions[m - 1]]
    assert changes
    assert all(month % 12 == 0 for month in changes)


def test_a_look_waits_for_five_blocks():
    """Two trades a year: the first look is in the third year, not in the first."""
    entry = unit_starts(FIRST + 6 * np.arange(40), "month")
    trades = Trades(entry, entry + DAY_NS, losing(40, mean=-2.0))
    track = Track(trades, "month", 0.0, BOUNDS)
    found = [second_opinion(track, after(12 * year), 5, 1) for year in range(1, 21)]
    claimed = [(year, claim.look) for year, claim in enumerate(found, start=1) if claim is not None]
    assert all(year >= 3 * look for year, look in claimed if year < 12)


def test_a_claim_stands_until_a_series_on_new_trades_ends_without_it():
    outcomes = np.concatenate((losing(36, mean=-2.0), losing(120, seed=3, mean=0.3)))
    track = monthly(outcomes)
    early, late = (second_opinion(track, after(months), 5, 5) for months in (49, 156))
    assert early is not None
    assert early.claim == "losing"
    assert late is None or late.claim == "gaining"


def test_each_change_of_the_rules_halves_the_level():
    assert side_level(5, 1) == side_level(5) / 2.0
    assert final_bound(5, side_level(5, 1)) > final_bound(5, side_level(5))
    weak = [
        abs(getattr(second_opinion(monthly(losing(60)), after(61), 5, 5, n), "bound", 99.0)) for n in (0, 3)
    ]
    assert weak[0] < weak[1]


def test_no_looks_form_no_opinion():
    assert second_opinion(monthly(losing(60)), after(61), 0, 5) is None


def test_losers_that_are_all_alike_need_enough_months_to_have_shown_a_winner():
    """At +4R one trade in five wins where the mean is 0: a dozen losers in a row prove little."""
    few, many = (second_opinion(monthly([-1.0] * n), after(n + 1), 5, 5) for n in (13, 48))
    assert few is None
    assert many is not None
    assert many.claim == "losing"


def test_both_readings_have_to_claim_it():
    other = monthly(losing(60, mean=0.0))
    assert second_opinion(monthly(losing(60), otherwise=other), after(61), 5, 5) is None
    assert second_opinion(monthly(losing(60), otherwise=monthly(losing(60))), after(61), 5, 5) is not None


def test_months_behind_an_open_position_wait():
    open_since = int(unit_starts(FIRST, "month"))
    assert second_opinion(monthly(losing(60), open_since=open_since), after(61), 5, 5) is None
    assert second_opinion(monthly(losing(60), unit="day", open_since=open_since), after(61), 5, 5) is None


def test_months_that_resemble_each_other_count_less():
    alike = np.repeat(np.random.default_rng(2).standard_normal(12), 4)
    assert resemblance(alike) > 1.5
    assert resemblance(np.random.default_rng(2).permutation(alike)) < 1.5
    assert resemblance(alike[:8]) == 1.0


def test_skew_correction_takes_back_what_rare_winners_hide():
    """Losers of -1R with rare winners of +4R: plain t overstates the loss."""
    sums, sizes = -np.array([-1.0] * 27 + [4.0] * 3), np.ones(30)
    plain = sums.mean() / (sums.std(ddof=1) / np.sqrt(30))
    assert 0.0 < skew_corrected_t(sums, sizes) < plain


def test_two_winners_beyond_the_usual_make_more_of_them_believable():
    """A trend follower's winners: the years without the next one look like a loss."""
    losers = losing(60, seed=4, mean=-0.8)
    once, twice = np.array(losers), np.array(losers)
    once[[10]], twice[[10, 30]] = 4.5, 4.5
    wide = Bounds(-3.0, 4.0, target=5.0)
    claims = [second_opinion(monthly(found), after(61), 5, 5) for found in (losers, once, twice)]
    assert [opinion is not None and opinion.claim for opinion in claims] == ["losing", "losing", False]
    assert second_opinion(monthly(twice, bounds=wide), after(61), 5, 5) is not None


@pytest.mark.parametrize("pattern", [[-1.2, 0.6], [-1.0], [-0.5], [-2.0, -2.0, 1.0], [-1.5, 0.9, -0.9, 0.5]])
@pytest.mark.parametrize("playbooks", [1, 5, 60])
def test_months_to_claim_leads_to_the_look_that_claims_it(pattern, playbooks):
    """Months that repeat go on as they were, so the forecast has to come true: no year before, none after."""
    track = monthly(np.resize(pattern, 480))
    months = months_to_claim(track, after(24), 5, playbooks)
    claims = {year: second_opinion(track, after(12 * year), 5, playbooks) for year in range(41)}
    first = next((12 * year - 24 for year, opinion in claims.items() if opinion), None)
    assert months == (None if first is None else max(first, 0))


def test_months_to_claim_counts_changes_of_the_rules_and_no_looks():
    track = monthly(np.resize([-1.4, 0.4], 480))
    first, fourth = (months_to_claim(track, after(24), 5, 5, epoch) for epoch in (0, 3))
    assert first is not None
    assert fourth is not None
    assert 0 < first < fourth
    assert months_to_claim(track, after(24), 0, 5) is None
    assert months_to_claim(track, after(4), 5, 5) is None


def test_claim_stands_while_later_trades_lie_on_its_side_and_no_longer():
    """The next series has the half of the level: that it proves less is no reason to take the claim back."""
    loses = losing(36)
    for later, stands in ((-0.1, True), (0.1, False)):
        track = monthly([*loses, *np.tile([later - 1.0, later + 1.0], 31)])
        early, late = (second_opinion(track, after(months), 5, 5) for months in (37, 97))
        assert early is not None
        assert (late is not None) == stands


def test_losers_that_are_all_alike_are_counted_through_all_series():
    """Five years of them are too few at half of an R, ten are not: a second series begins with the first."""
    track = monthly([-0.5] * 156, bounds=Bounds(-3.0, 8.0))
    assert [second_opinion(track, after(12 * years + 1), 5, 5) is None for years in (5, 13)] == [True, False]
    won = monthly([*[-0.5] * 110, 6.0, *[-0.5] * 45], bounds=Bounds(-3.0, 8.0))
    assert second_opinion(won, after(109), 5, 5) is None
