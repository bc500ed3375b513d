"""Levels begin where the configurations before this run have left them."""

import pytest

from schemas.settings import JudgeSettings
from schemas.trials import TrialLedger
from services.slow_loop.promotion_levels import PromotionLevels
from services.statistics.multiplicity import online_level

ALPHA = JudgeSettings().promotion_alpha
BEFORE = TrialLedger(configurations=4, hypotheses=40, candidates=6, promotions=2)


def level_of(levels: PromotionLevels, name: str, since: int) -> float | None:
    levels.begin((name, None), since)
    return levels.of((name, None))


def test_levels_go_on_behind_the_candidates_and_promotions_of_earlier_configurations():
    levels = PromotionLevels(JudgeSettings(), BEFORE)
    assert level_of(levels, "a", 10) == pytest.approx(online_level(ALPHA, 7, 2))
    levels.note_promotion(20)
    assert level_of(levels, "b", 30) == pytest.approx(online_level(ALPHA, 8, 3))
    assert levels.counts == (2, 1)


def test_levels_of_twenty_configurations_spend_one_budget():
    """Three candidates in each: together they spend what sixty candidates of one run do, never more."""
    spent, before = 0.0, TrialLedger()
    for number in range(1, 21):
        levels = PromotionLevels(JudgeSettings(), before)
        spent += sum(level_of(levels, name, 10) or 0.0 for name in "abc")
        before = TrialLedger(configurations=number, candidates=3 * number)
    one_run = PromotionLevels(JudgeSettings())
    assert spent == pytest.approx(sum(level_of(one_run, str(k), 10) or 0.0 for k in range(60)))
    assert spent < ALPHA


def test_levels_of_a_fresh_ledger_are_those_of_an_empty_store():
    fresh = PromotionLevels(JudgeSettings(), BEFORE.model_copy(update={"fresh": True}))
    assert level_of(fresh, "a", 10) == online_level(ALPHA, 1, 0)


def test_promotions_counted_are_at_most_those_that_began():
    """A ban that is lifted twice began once."""
    levels = PromotionLevels(JudgeSettings())
    levels.begin(("a", "up/low"), 10)
    for at in (20, 30):
        levels.note_promotion(at)
    assert levels.counts == (1, 1)


def test_what_a_promotion_used_up_begins_again_with_the_next_level():
    levels = PromotionLevels(JudgeSettings())
    assert level_of(levels, "a", 10) == online_level(ALPHA, 1, 0)
    levels.note_promotion(20)
    levels.spend(("a", None))
    assert levels.of(("a", None)) is None
    assert level_of(levels, "a", 30) == pytest.approx(online_level(ALPHA, 2, 1))
    assert levels.counts == (2, 1)
