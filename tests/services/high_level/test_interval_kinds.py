"""An interval that is open says on which side and after how many blocks; a mean that moved is told too."""

import numpy as np
import pytest

from schemas.settings import GateSettings
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from services.high_level.clusters import Cluster, Measure
from services.high_level.gate import GateDecision
from services.high_level.grading import Verdict, full_reason, range_of
from services.high_level.report_lines import interval_text
from services.statistics.blocks import GAINING, Trades, blocks_of
from services.statistics.calendar_units import DAY_NS
from services.statistics.track import Bounds, Company, Track

GATE = GateSettings()
WEEK_NS, MONDAY = 7 * DAY_NS, 4 * DAY_NS
BOUNDS = Bounds(GATE.winsor_low, GATE.winsor_high)
AFTER = 400 * WEEK_NS


def read_shown(weeks, grade=EvidenceGrade.COUNT_ONLY, at=AFTER):
    """Sample, range and reason of the outcomes of weeks (w, k)."""
    rows = [
        (MONDAY + w * WEEK_NS + k, MONDAY + w * WEEK_NS + k, float(r))
        for w, week in enumerate(weeks)
        for k, r in enumerate(week)
    ]
    others = [(at, at, (-1.0) ** w) for w, (at, *_) in enumerate(dict.fromkeys(rows))]
    account = blocks_of(Trades.of(rows + others), "week", BOUNDS.low, BOUNDS.high)
    track = Track(Trades.of(rows), "week", 0.0, BOUNDS, company=Company(account))
    seen = track.at(at)
    decision = GateDecision(grade, RecommendedAction.HOLD, "reference_not_excluded: 1 of 2")
    whole = Measure(Cluster("a", None, None, "a", np.arange(len(rows)), track), seen)
    shown = range_of(whole, Verdict(decision, 0.05, None), GATE)
    return seen, shown.interval, full_reason(decision, seen, shown)


def around(means, seed=1):
    """Five trades a week around these means."""
    return np.random.default_rng(seed).normal(np.reshape(means, (-1, 1)), 0.2, (len(means), 5))


@pytest.mark.parametrize(
    ("outcomes", "side"), [((-1, -1, -1, 2, -1, -1, -1), "below"), ((-1, -1, -1, 2, -1, -1, 2), "above")]
)
def test_interval_of_seven_trades_may_be_open_on_one_side_and_says_on_which(outcomes, side):
    _, shown, reason = read_shown([[r] for r in outcomes])
    assert shown.kind == f"open {side}"
    assert (shown.lower is None, shown.upper is None) == (side == "below", side == "above")
    assert f"; open {side}: 7 complete blocks so far" in reason


def test_interval_of_three_weeks_is_open_on_both_sides():
    _, shown, reason = read_shown(around([0.3] * 3))
    assert (shown.lower, shown.upper, shown.kind) == (None, None, "open")
    assert reason.endswith("; open on both sides: 3 complete blocks so far")


def test_interval_that_is_closed_on_both_sides_says_nothing_more():
    _, shown, reason = read_shown(around([-0.3] * 60))
    assert shown.kind == "anytime"
    assert shown.lower < -0.3 < shown.upper < 0.0
    assert reason.startswith("reference_not_excluded: 1 of 2; the interval excludes the reference: ")


def test_interval_of_an_insufficient_sample_needs_no_further_reason():
    _, shown, reason = read_shown(around([-0.9] * 3), EvidenceGrade.INSUFFICIENT_SAMPLE)
    assert shown.kind == "open"
    assert "open" not in reason


def test_mean_that_moved_is_told_with_the_interval_of_the_last_look():
    _, shown, reason = read_shown(around([0.2] * 60 + [-0.2] * 60))
    assert shown.kind == "moved"
    assert "no constant mean fits all blocks: the interval is that of the last look" in reason
    assert interval_text(shown.lower, shown.upper, shown.kind).endswith("] (last look)")


@pytest.mark.parametrize("grade", [EvidenceGrade.COUNT_ONLY, EvidenceGrade.SIGNIFICANT])
def test_mean_that_even_the_last_look_excludes_is_told_as_no_interval_and_not_as_one_that_holds_it(grade):
    """1R a day for 72 weeks, then minus 1R: E without restarts for the gain is far above 40."""
    noise = np.random.default_rng(1).standard_t(3, (143, 7)) / np.sqrt(3.0)
    seen, shown, reason = read_shown(np.repeat([[1.0], [-1.0]], (72, 71), axis=0) + noise, grade)
    assert seen.plain[GAINING] > 40.0
    assert shown.kind == "none"
    assert "no constant mean fits all blocks: there is no interval, the last look alone excludes" in reason
    assert "the interval holds the reference" not in reason
    assert "the interval is that of the last look" not in reason


@pytest.mark.parametrize(
    ("grade", "mean", "quoted"),
    [
        (EvidenceGrade.SIGNIFICANT, 0.0, "holds the reference: E without restarts is below 40"),
        (EvidenceGrade.COUNT_ONLY, -0.3, "excludes the reference: E without restarts was at least 40 at"),
        (EvidenceGrade.SIGNIFICANT, -0.3, None),
        (EvidenceGrade.COUNT_ONLY, 0.0, None),
    ],
)
def test_interval_that_does_not_agree_with_the_grade_says_why(grade, mean, quoted):
    _, shown, reason = read_shown(around([mean] * 60), grade)
    assert shown.kind == "anytime"
    assert ("the interval" in reason) == (quoted is not None)
    assert quoted is None or quoted in reason


def test_trades_of_a_week_that_is_not_over_are_told_as_waiting():
    seen, _, reason = read_shown(around([-0.3] * 20), at=MONDAY + 19 * WEEK_NS + DAY_NS)
    assert (seen.n, seen.counted, seen.blocks) == (100, 95, 19)
    assert "5 of 100 trades in a week that is not complete" in reason


@pytest.mark.parametrize(
    ("edges", "text"),
    [
        ((-0.2, 0.381), "[-0.20, +0.38]"),
        ((-0.2, None), "[-0.20, open]"),
        ((None, 0.381), "[open, +0.38]"),
        ((None, None), "open"),
        ((None, None, "none"), "none"),
        ((None, None, "open"), "open"),
        ((-0.2, 0.381, "moved"), "[-0.20, +0.38] (last look)"),
        ((-0.2, 0.381, "anytime"), "[-0.20, +0.38]"),
    ],
)
def test_interval_in_words_names_what_is_open(edges, text):
    assert interval_text(*edges) == text
