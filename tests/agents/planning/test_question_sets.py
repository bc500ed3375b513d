"""What the sets of unseen questions come to after they were read once and what they showed was mended."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from agents.planning.gathering import gather
from agents.planning.rule_planner import RulePlanner
from schemas.settings import Settings
from schemas.settings.planner import OWN, PlannerSettings
from services.evidence.tools import TOOLS
from services.ports import EvidenceQuestion
from tests.agents.planning.fakes import ScriptedHost
from tests.agents.planning.question_sets import (
    CONTEXT,
    FIRST_READINGS,
    PARTLY_MENDED,
    SETS,
    SetQuestion,
    question_set,
)
from worker.cli.ask_changes import asks_for_change

RECORD: Any = SimpleNamespace(mode="backtest", status="finished", data={"symbols": CONTEXT["symbols"]})
OFFERED = [tool.definition for name, tool in TOOLS.items() if name != "backtest_rule"]  # as `ask` has them
FOUND = {
    "episodes": {"episodes": [{"fill_id": "0abcdef0123"}]},
    "reports": {"reports": [{"report_id": "0fedcba0123"}]},
}


def found(name: str, arguments: Mapping[str, Any]) -> Any:
    return FOUND.get(name, {})


@dataclass(frozen=True)
class SetAnswer:
    """A question of a set, whether it became a change plan, and the calls that were made for it."""

    question: SetQuestion
    is_plan: bool
    calls: tuple[tuple[str, Mapping[str, Any]], ...]


async def answer_of(question: SetQuestion) -> SetAnswer:
    if asks_for_change(question.text, RECORD, Settings())[1] is not None:
        return SetAnswer(question, True, ())
    hosts = {OWN: ScriptedHost(found, OFFERED)}
    asked = EvidenceQuestion(question.text, CONTEXT)
    gathered = await gather(asked, RulePlanner(), hosts, PlannerSettings(), attended=True)
    return SetAnswer(question, False, tuple((call.method, dict(call.params)) for call in gathered.calls))


@pytest.fixture(scope="module")
def answers() -> list[SetAnswer]:
    return asyncio.run(answers_of(*SETS))


async def answers_of(*numbers: int) -> list[SetAnswer]:
    return [await answer_of(question) for number in numbers for question in question_set(number)]


def test_sets_have_sixty_or_seventy_questions_and_their_first_readings_are_of_their_calls():
    for number in FIRST_READINGS:
        assert len(list(question_set(number))) == (60 if number < PARTLY_MENDED else 70)
        kept = sum(len(question.calls) for question in question_set(number))
        assert kept == FIRST_READINGS[number].calls - FIRST_READINGS[number].rules


def test_expected_calls_are_made_with_what_the_question_determines_and_no_other_tool(answers):
    expected = sum(len(answer.question.calls) for answer in answers)
    made = sum(answer.question.made_of(answer.calls) for answer in answers)
    assert made >= 0.95 * expected
    wrong = [(answer.question.text, answer.question.wrong_of(answer.calls)) for answer in answers]
    assert not [pair for pair in wrong if pair[1]]


def test_clear_questions_are_hardly_ever_asked_back_and_unclear_ones_always(answers):
    clear = [answer for answer in answers if answer.question.status == "answered"]
    back = [asked.question.text for asked in clear if not asked.calls]
    assert len(back) <= 0.05 * len(clear), back
    for answer in answers:
        if answer.question.status == "clarify":
            assert not answer.calls, answer.question.text


def test_change_that_is_asked_for_becomes_a_plan_and_nothing_else_does(answers):
    for answer in answers:
        assert answer.is_plan == (answer.question.status == "plan"), answer.question.text


def test_set_that_is_mended_in_part_comes_to_no_less_than_it_did():
    answers = asyncio.run(answers_of(PARTLY_MENDED))
    assert sum(answer.question.made_of(answer.calls) for answer in answers) >= 53
    assert sum(bool(answer.question.wrong_of(answer.calls)) for answer in answers) <= 3
    assert sum(answer.question.status == "answered" and not answer.calls for answer in answers) <= 10
    assert not any(answer.is_plan for answer in answers)
