"""An interval that ends at a winsor bound says why: how many blocks there are, and where they are clipped."""

import numpy as np

from schemas.config import GateSettings
from schemas.vocabulary import EvidenceGrade, RecommendedAction
from services.high_level.gate import GateDecision
from services.high_level.grading import full_reason, ranges
from services.statistics.expectancy import DAY_NS, Trades
from services.statistics.sample import sample

GATE = GateSettings()
WEEK_NS = 7 * DAY_NS


def told(blocks, size, mean, grade=EvidenceGrade.COUNT_ONLY, spread=0.2):
    """Range and reason of `blocks` weeks of `size` trades each."""
    r = np.random.default_rng(3).normal(mean, spread, (blocks, size))
    rows = [(w * WEEK_NS + k, w * WEEK_NS + k, float(r[w, k])) for w in range(blocks) for k in range(size)]
    seen = sample(Trades.of(rows), "week", GATE.winsor_low, GATE.winsor_high, 0.0)
    (shown,) = ranges([seen], [0.05])
    decision = GateDecision(grade, RecommendedAction.HOLD, "reference_not_excluded: 1 of 2")
    return seen, shown, full_reason(decision, seen, shown)


def test_interval_is_open_below_where_blocks_of_many_trades_are_clipped_at_their_mean():
    seen, shown, reason = told(20, 9, -0.9)
    assert seen.observations.low.max() == -0.75
    assert shown.lower == GATE.winsor_low
    assert shown.upper < 0.0
    assert reason.endswith("open below: 20 blocks, means clipped at -0.75 R, exclude no lower mean")


def test_interval_is_open_above_by_the_same_rule():
    _, shown, reason = told(20, 9, 0.9)
    assert shown.upper == GATE.winsor_high
    assert reason.endswith("open above: 20 blocks, means clipped at +0.75 R, exclude no higher mean")


def test_interval_that_is_closed_on_both_sides_says_nothing_more():
    _, shown, reason = told(60, 4, -0.3)
    assert GATE.winsor_low < shown.lower < shown.upper < GATE.winsor_high
    assert "open" not in reason


def test_interval_of_an_insufficient_sample_needs_no_further_reason():
    _, shown, reason = told(20, 9, -0.9, EvidenceGrade.INSUFFICIENT_SAMPLE)
    assert shown.lower == GATE.winsor_low
    assert "open" not in reason
