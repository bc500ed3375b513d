"""Stretches to choose on and to look at: no trade is on both sides or reaches from one into the other."""

import numpy as np
import pytest

from schemas.errors import ConfigError
from services.statistics.folds import Log, bets_of, choose_and_look, scores, splits_of


def random_log(seed, sets=30, rows=1_000, each=80, shift=None):
    draw = np.random.default_rng(seed)
    member = np.repeat(np.arange(sets), each)
    entered = draw.integers(0, rows - 40, member.size)
    r = draw.normal(0.0, 1.0, member.size) + (0.0 if shift is None else np.asarray(shift)[member])
    return Log(sets, member, entered, entered + draw.integers(0, 40, member.size), r)


@pytest.mark.parametrize("scheme", ["anchored", "rolling"])
def test_folds_walk_forward_looks_at_the_second_half_once(scheme):
    splits = splits_of(1_000, 5, scheme)
    assert [split.looked_at[0] for split in splits] == [(500 + 100 * k, 600 + 100 * k) for k in range(5)]
    assert all(split.chosen_on[0][1] == split.looked_at[0][0] for split in splits)
    starts = [split.chosen_on[0][0] for split in splits]
    assert starts == ([0] * 5 if scheme == "anchored" else [0, 100, 200, 300, 400])


def test_folds_combinatorial_looks_at_every_pair_of_groups_once():
    splits = splits_of(600, 6, "combinatorial")
    assert len({split.looked_at for split in splits}) == 15
    assert all(len({*split.chosen_on, *split.looked_at}) == 6 for split in splits)


@pytest.mark.parametrize("scheme", ["anchored", "rolling", "combinatorial"])
@pytest.mark.parametrize("embargo", [0, 25])
def test_folds_purge_what_reaches_into_what_is_looked_at(scheme, embargo):
    log, splits = random_log(1), splits_of(1_000, 5, scheme)
    for split, fold in zip(splits, choose_and_look(log, splits, embargo), strict=True):
        inside = outside = 0
        for k in np.flatnonzero(log.member == fold.chosen):
            first, last = log.entered[k], log.left[k]
            outside += any(start <= first < stop for start, stop in split.looked_at)
            within = any(start <= first and last < stop for start, stop in split.chosen_on)
            far = all(last < start - embargo or first >= stop + embargo for start, stop in split.looked_at)
            inside += within and far
        assert (fold.trades_inside, fold.trades_outside) == (inside, outside)


def test_folds_choice_follows_what_lies_before_alone():
    log, splits = random_log(2), splits_of(1_000, 1, "anchored")
    turned = Log(log.sets, log.member, log.entered, log.left, np.where(log.entered >= 500, -log.r, log.r))
    (one,), (other,) = (choose_and_look(found, splits, 0) for found in (log, turned))
    assert (one.chosen, one.inside) == (other.chosen, other.inside)
    assert one.outside is not None
    assert other.outside == pytest.approx(-one.outside)


def test_folds_find_a_set_that_earns_and_nothing_where_none_does():
    shift = np.zeros(30)
    shift[17] = 0.8
    planted = choose_and_look(random_log(3, shift=shift), splits_of(1_000, 5, "anchored"), 10)
    assert {fold.chosen for fold in planted} == {17}
    whole = splits_of(1_000, 1, "anchored")
    found = [choose_and_look(random_log(seed), whole, 10)[0] for seed in range(40)]
    inside, outside = (np.array([getattr(fold, side) for fold in found]) for side in ("inside", "outside"))
    assert np.mean(inside) > 0.2  # the best of thirty
    assert abs(np.mean(outside)) < 4.0 * np.std(outside) / np.sqrt(len(outside))


def test_folds_score_of_a_lucky_trade_stays_small():
    log = Log(
        3, np.array([0, *[1] * 50]), np.zeros(51, int), np.ones(51, int), np.array([9.0, *[0.2, 0.4] * 25])
    )
    assert scores(log, np.ones(51, bool)).tolist() == pytest.approx([1.0, 15 / np.sqrt(5.0), -np.inf])


def test_folds_without_a_trade_choose_nothing():
    empty = np.empty(0, dtype=np.int64)
    (fold,) = choose_and_look(Log(2, empty, empty, empty, np.empty(0)), splits_of(100, 1, "anchored"), 0)
    assert (fold.chosen, fold.outside, fold.trades_outside) == (None, None, 0)


@pytest.mark.parametrize(("folds", "scheme"), [(0, "anchored"), (21, "rolling"), (3, "combinatorial")])
def test_folds_of_a_number_that_cannot_be_are_refused(folds, scheme):
    with pytest.raises(ConfigError, match=f"folds {folds} of 1,000 bars: give"):
        splits_of(1_000, folds, scheme)


def test_folds_trades_that_are_open_together_are_one_bet():
    entered, left = np.array([50, 52, 52, 55, 60, 60, 61, 90]), np.array([55, 54, 70, 58, 60, 60, 62, 95])
    log = Log(1, np.zeros(8, int), entered, left, np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]))
    folds = choose_and_look(log, splits_of(100, 1, "anchored"), 0)
    assert folds[0].chosen is None
    log = Log(1, np.zeros(9, int), np.append(entered, 3), np.append(left, 9), np.append(log.r, 0.5))
    folds = choose_and_look(log, splits_of(100, 1, "anchored"), 0)
    assert bets_of(log, folds).tolist() == [7.0, 8.0, 48.0, 64.0, 128.0]


def test_folds_count_a_trade_once_that_several_splits_look_at():
    log = random_log(5, sets=1)
    folds = choose_and_look(log, splits_of(1_000, 5, "combinatorial"), 0)
    assert sum(fold.trades_outside for fold in folds) == 4 * len(log.r)
    assert bets_of(log, folds).sum() == pytest.approx(log.r.sum())
