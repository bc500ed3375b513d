"""The strategist of rules ranks by expectancy, then fewest episodes, then id; a position it only manages."""

import asyncio

import pytest

from agents.strategies.rule_strategist import RuleStrategist
from schemas.vocabulary import PlanKind
from services.playbooks.registry import PlaybookRegistry
from tests.services.policy_checks.amendments import policy_of, position_of
from tests.services.policy_checks.plans import PLAYBOOKS, changed, expected, right_request
from trading_core.tick_guard import TickGuard

SNAPSHOT = right_request().snapshot
READER = PlaybookRegistry(PLAYBOOKS, TickGuard(), SNAPSHOT.known_at).reader()
STRATEGIST = RuleStrategist(READER)
ELIGIBLE = sorted({book.id for book, _ in READER.eligible(SNAPSHOT.regime.labels, SNAPSHOT.timeframe)})


def seen(**measured):
    """A snapshot in which every playbook is as good as any other, but for what is `measured` of some."""
    level = {"expectancy_r": 0.1, "n": 10}
    known = tuple(expected(book, **(level | measured.get(book.id, {}))) for book in PLAYBOOKS)
    return SNAPSHOT.model_copy(update={"expectations": known})


def proposed(snapshot):
    proposal = asyncio.run(STRATEGIST.answer(snapshot, None)).proposal
    assert proposal is not None
    return proposal.playbook_id


def test_rule_strategist_has_a_choice_in_this_regime():
    assert len(ELIGIBLE) > 1


@pytest.mark.parametrize("best", ELIGIBLE)
def test_rule_strategist_proposes_the_playbook_with_the_best_expectancy(best):
    assert proposed(seen(**{best: {"expectancy_r": 0.2, "n": 500}})) == best


@pytest.mark.parametrize("youngest", ELIGIBLE)
def test_rule_strategist_proposes_the_least_tried_of_equals(youngest):
    assert proposed(seen(**{youngest: {"n": 9}})) == youngest


def test_rule_strategist_proposes_by_id_when_nothing_else_differs():
    assert proposed(seen()) == ELIGIBLE[0]


def test_rule_strategist_in_a_position_tightens_on_one_r_and_on_a_shock_and_else_holds():
    policy = policy_of()
    position = position_of(policy)
    ahead = SNAPSHOT.model_copy(update={"position": position})
    behind = SNAPSHOT.model_copy(update={"position": changed(position, {"r_now": 0.9})})
    shocked = behind.model_copy(update={"events": ("volatility_shock",)})
    answers = [asyncio.run(STRATEGIST.answer(item, None)) for item in (ahead, behind, shocked)]
    assert [(answer.kind, answer.tighter_stop) for answer in answers] == [
        (PlanKind.TIGHTEN, position.entry_price),
        (PlanKind.HOLD, None),
        (PlanKind.TIGHTEN, 97.5),
    ]
