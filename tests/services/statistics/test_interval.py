"""The interval of the trade-weighted mean: what the evidence does not refute, and how often it covers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from services.statistics import track
from services.statistics.blocks import GAINING, LOSING, Trades
from services.statistics.claim_path import edge
from services.statistics.group_length import LENGTHS
from services.statistics.track import GRAIN, Interval, Track
from tests.services.statistics.laid_out import (
    BOUNDS,
    MONDAY,
    WEEK_NS,
    alike_brackets,
    among_others,
    bracket,
    t3,
    uneven_track,
    weekly,
    weekly_track,
)

LIMIT = 2.0 / 0.05
WEEKS = st.lists(
    st.lists(st.integers(-48, 64).map(lambda k: k / 16), min_size=1, max_size=5), min_size=2, max_size=40
)


def edges(shown: Interval) -> tuple[float, float]:
    """Both edges of an interval that is open on neither side."""
    assert shown.lower is not None
    assert shown.upper is not None
    return shown.lower, shown.upper


def refuted(trades, mean, blocks) -> tuple[bool, bool]:
    """Whether the claims "below `mean`" and "above `mean`" reach 40 at some look."""
    one = Track(trades, "week", float(mean), BOUNDS)
    plain = one._paths[1]
    return bool((plain[LOSING, :blocks] >= LIMIT).any()), bool((plain[GAINING, :blocks] >= LIMIT).any())


def sampled(seed, weeks, size, mean):
    return t3(np.random.default_rng(seed), (weeks, size)) + mean


@pytest.mark.parametrize(
    ("seed", "weeks", "size", "mean"), [(1, 60, 5, 0.0), (2, 40, 15, 0.4), (3, 90, 2, -0.3)]
)
def test_no_mean_outside_the_interval_is_kept_and_none_inside_is_refuted(seed, weeks, size, mean):
    trades = weekly(sampled(seed, weeks, size, mean))
    shown = Track(trades, "week", 0.0, BOUNDS).interval(weeks)
    assert shown.lower is not None
    assert shown.upper is not None
    for m in np.arange(-2.99, 3.99, 0.01):
        below, above = refuted(trades, m, weeks)
        assert (below or above) == (m < shown.lower or m > shown.upper), m
    for step in (1e-4, 1e-3):
        assert refuted(trades, shown.lower - step, weeks)[1]
        assert refuted(trades, shown.upper + step, weeks)[0]
    for step in (2e-6, 1e-4):  # outward to the grain, not beyond it
        assert refuted(trades, shown.lower + GRAIN + step, weeks) == (False, False)
        assert refuted(trades, shown.upper - GRAIN - step, weeks) == (False, False)


@settings(max_examples=40)
@given(WEEKS)
def test_every_mean_that_is_not_refuted_lies_inside(weeks):
    one = uneven_track(weeks)
    blocks = len(one.blocks)
    shown = one.interval(blocks)
    lower = -np.inf if shown.lower is None else shown.lower
    upper = np.inf if shown.upper is None else shown.upper
    for m in np.arange(-2.95, 4.0, 0.1):
        if shown.kind != "moved" and refuted(one._trades, m, blocks) == (False, False):
            assert lower <= m <= upper


@settings(max_examples=60)
@given(WEEKS)
def test_interval_never_widens_as_blocks_come(weeks):
    one = uneven_track(weeks)
    before = -np.inf, np.inf
    for blocks in range(1, len(one.blocks) + 1):
        shown = one.interval(blocks)
        if shown.kind == "moved":
            return
        lower = -np.inf if shown.lower is None else shown.lower
        upper = np.inf if shown.upper is None else shown.upper
        assert lower >= before[0] - GRAIN
        assert upper <= before[1] + GRAIN
        before = lower, upper


@settings(max_examples=60)
@given(WEEKS)
def test_open_side_is_none_and_the_kind_says_which(weeks):
    one = uneven_track(weeks)
    shown = one.interval(len(one.blocks))
    kinds = {(True, True): "open", (True, False): "open below", (False, True): "open above"}
    if shown.kind != "moved":
        assert shown.kind == kinds.get((shown.lower is None, shown.upper is None), "anytime")


def test_interval_without_a_block_is_open():
    shown = weekly_track([[1.0]]).interval(0)
    assert (shown.lower, shown.upper, shown.kind) == (None, None, "open")


def test_interval_of_few_blocks_is_open_whatever_they_showed():
    shown = weekly_track(np.full((3, 5), -1.0)).interval(3)
    assert (shown.lower, shown.upper, shown.kind) == (None, None, "open")


def test_interval_at_a_smaller_alpha_is_wider():
    one = weekly_track(sampled(4, 80, 5, 0.2))
    wide, narrow = edges(one.interval(80, 0.01)), edges(one.interval(80, 0.1))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def turned(seed, weeks, by, scale=1.0):
    """Weeks of five trades whose mean is `by`, and from the middle on the contrary."""
    means = np.where(np.arange(weeks) < weeks // 2, by, -by)[:, None]
    return sampled(seed, weeks, 5, 0.0) * scale + means


@settings(max_examples=60)
@given(WEEKS)
def test_interval_that_is_shown_holds_the_mean_that_it_names(weeks):
    one = uneven_track(weeks)
    for blocks in range(1, len(one.blocks) + 1):
        shown = one.interval(blocks)
        mean = one._means[0, blocks - 1]
        assert shown.lower is None or shown.lower <= mean
        assert shown.upper is None or mean <= shown.upper


def test_interval_that_earlier_looks_alone_would_narrow_beyond_the_mean_is_moved():
    """All looks together leave [.07, .15], and the mean has come down to nothing."""
    one = among_others(turned(5, 120, 0.3))
    assert one._edges(120, LIMIT, 0) == pytest.approx((0.0723, 0.1529), abs=1e-4)
    mean, shown = one._means[0, -1], one.interval(120)
    assert shown.kind == "moved"
    assert mean < 0.0
    assert edges(shown)[0] < mean < edges(shown)[1]


def test_interval_of_which_even_the_last_look_excludes_the_mean_shows_no_edge():
    one = among_others(turned(5, 120, 0.8, scale=0.5))
    assert one.interval(120) == Interval(None, None, "none")


def test_interval_of_a_mean_that_moved_is_that_of_the_last_look_and_says_so():
    outcomes = turned(6, 120, 0.6)
    one = among_others(outcomes)
    shown = one.interval(120)
    assert shown.kind == "moved"
    for m in np.arange(-1.0, 1.0, 0.02):  # what the last look alone refutes
        paths = among_others(outcomes, float(m))._paths[1]
        out = bool((paths[:, -1] >= LIMIT).any())
        assert out == (m < edges(shown)[0] or m > edges(shown)[1]), m
    assert one.interval(60).kind == "anytime"
    assert edges(one.interval(60))[0] > 0.38


def test_interval_has_about_the_width_that_was_simulated():
    """Half a width of .16 R over 52 weeks of five trades with t3 outcomes; Student's t has .11."""
    draw = np.random.default_rng(11)
    halves, fixed = [], []
    for _ in range(40):
        one = weekly_track(t3(draw, (52, 5)))
        shown, at_once = one.interval(52), one.fixed_time(52)
        if shown.kind == "anytime":
            lower, upper = edges(shown)
            halves.append((upper - lower) / 2)
            assert at_once is not None
            fixed.append((at_once[1] - at_once[0]) / 2)
    assert len(halves) >= 38
    assert 0.14 < np.median(halves) < 0.22
    assert 0.09 < np.median(fixed) < 0.13


@pytest.mark.parametrize("world", ["t3", "bracket", "alike"])
def test_interval_covers_the_mean_at_every_look_as_often_as_it_says(world):
    """Nominal 95 %, measured at all looks of a year; the bound is that less two standard errors."""
    runs, weeks = 150, 52
    draw = np.random.default_rng(21)
    truth = {"t3": 0.3, "bracket": 0.35, "alike": 0.0}[world]
    if world == "t3":
        r = t3(draw, (runs, weeks, 15)) + truth
        # what is covered is the mean of winsorised R
        truth = float(np.clip(t3(draw, 2_000_000) + truth, BOUNDS.low, BOUNDS.high).mean())
    elif world == "bracket":
        r = bracket(draw, (runs, weeks, 5), 2.0, truth)
    else:
        r = alike_brackets(draw, runs, weeks, 8, 0.9, 3.0)
    covered = 0
    for item in r:
        shown = weekly_track(item).interval(weeks)
        lower = -np.inf if shown.lower is None else shown.lower
        upper = np.inf if shown.upper is None else shown.upper
        covered += shown.kind != "moved" and lower <= truth <= upper
    assert covered / runs >= 0.95 - 2.0 * np.sqrt(0.95 * 0.05 / runs)


@settings(max_examples=60)
@given(st.lists(st.lists(st.floats(-5, 6), min_size=1, max_size=4), min_size=10, max_size=30))
def test_fixed_time_interval_is_students_t_of_a_mean_of_clusters(weeks):
    """The ratio estimator: residual sums of clusters about the mean, over all rows, with b - 1 degrees."""
    cut = [np.clip(week, BOUNDS.low, BOUNDS.high) for week in weeks]
    rows = sum(len(week) for week in cut)
    mean = sum(week.sum() for week in cut) / rows
    meat = sum((week - mean).sum() ** 2 for week in cut)
    b = len(cut)
    reach = student.ppf(0.975, b - 1) * np.sqrt(b / (b - 1) * meat) / rows
    found = uneven_track(weeks).fixed_time(b)
    assert found is not None
    np.testing.assert_allclose(found, (mean - reach, mean + reach), atol=1e-8)


def test_fixed_time_interval_of_one_trade_a_block_is_the_textbooks():
    values = np.random.default_rng(6).normal(0.1, 0.8, 40)
    reach = student.ppf(0.975, 39) * values.std(ddof=1) / np.sqrt(40)
    found = weekly_track(values[:, None]).fixed_time(40)
    assert found is not None
    np.testing.assert_allclose(found, (values.mean() - reach, values.mean() + reach), atol=1e-8)


def test_fixed_time_interval_needs_ten_blocks():
    one = weekly_track(sampled(7, 12, 3, 0.0))
    assert one.fixed_time(9) is None
    assert one.fixed_time(10) is not None


def test_interval_asks_the_compiler_for_one_form_whatever_lengths_have_to_agree(monkeypatch):
    given: list[tuple[int, int]] = []

    def looked(groups, looks, *rest):
        given.append((len(groups), len(looks.over)))
        return edge(groups, looks, *rest)

    monkeypatch.setattr(track, "edge", looked)
    weeks = MONDAY + np.arange(60, dtype=np.int64) * WEEK_NS
    for r in (np.tile([1.0, -0.9], 30), np.repeat(sampled(2, 10, 1, 0.0)[:, 0], 6)):
        Track(Trades(weeks, weeks, r), "week", 0.0, BOUNDS).interval(59)
    assert {groups for groups, _ in given} == {len(LENGTHS)}
    assert {lengths for _, lengths in given} > {1}
