"""Each example of the prompt makes the calls that it should, of tools that there are; rules make the same."""

import asyncio

import pytest

from agents.planning.call_check import checked_plan
from agents.planning.plan_reply import without_reasoning
from agents.planning.rule_planner import RulePlanner
from services.evidence.tools import TOOLS
from services.ports import EvidenceQuestion
from tests.agents.planning.planned import SHOWN, planned
from tests.agents.planning.prompt_examples import prompt_examples

WANTED = {
    "a snapshot": [("market", {"symbol": "AAPL"})],
    "a search among episodes": [
        ("trades", {"playbook_id": "trend_pullback", "regime": "up/high", "outcome": "lost"})
    ],
    "the symbol from before": [("market", {"symbol": "IBM"}), ("trades", {"symbol": "IBM"})],
    "several tools": [
        ("trades", {"playbook_id": "squeeze_breakout", "outcome": "lost"}),
        ("gate", {"playbook_id": "squeeze_breakout"}),
        ("playbooks", {"playbook_id": "squeeze_breakout"}),
    ],
    "nothing clear is asked": [],
    "one fill by its id": [("why", {"fill_id": "7c1f09aa"})],
    "the definition of a playbook": [("playbooks", {"playbook_id": "squeeze_breakout"})],
}
EXAMPLES = {example.title: example for example in prompt_examples()}


def test_prompt_has_seven_examples_of_the_seven_intents():
    assert list(EXAMPLES) == list(WANTED)


@pytest.mark.parametrize("title", WANTED)
def test_example_makes_the_calls_that_it_should_of_tools_that_there_are(title):
    example = EXAMPLES[title]
    plan = planned(example.reply, example.question, example.context)
    assert [(call.method, dict(call.params)) for call in plan.tools] == WANTED[title]
    assert {call.client for call in plan.tools} <= {"thinktwice"}
    assert checked_plan(plan, SHOWN, ()).tools == plan.tools, "the tools take the arguments"
    assert checked_plan(plan, SHOWN, ()).dropped == ()
    assert (plan.failure, plan.dropped) == (None, ())
    assert 10 <= len(plan.reasoning.split()) <= 150
    if WANTED[title]:
        assert plan.confidence >= 0.7
        assert plan.clarification is None
    else:
        assert plan.confidence < 0.7
        assert plan.clarification is not None
        assert plan.clarification.endswith("?")


@pytest.mark.parametrize("title", WANTED)
def test_rules_plan_the_question_of_an_example_as_the_prompt_does(title):
    example = EXAMPLES[title]
    question = EvidenceQuestion(example.question, example.context)
    plan = asyncio.run(RulePlanner().plan(question, SHOWN))
    assert [(call.method, dict(call.params)) for call in plan.tools] == WANTED[title]


def test_examples_name_only_what_their_context_or_question_has():
    for example in EXAMPLES.values():
        plan = planned(example.reply, example.question, example.context)
        for call in plan.tools:
            assert call.method in TOOLS
            for name, value in call.params.items():
                assert name == "outcome" or str(value) in f"{example.question} {example.context}"


def test_reasoning_of_an_example_stands_before_its_json():
    for example in EXAMPLES.values():
        reasoning, rest = without_reasoning(example.reply)
        assert reasoning
        assert rest is not None
        assert rest.startswith('{"confidence"')
