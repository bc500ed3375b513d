"""How a model's plan is read: its reasoning apart, its confidence bounded, what cannot be read a failure."""

import json
import time

import pytest

from agents.planning.plan_reply import (
    FORM,
    LONGEST_REASONING,
    UNCLOSED,
    read_arguments,
    read_plan,
    without_reasoning,
)
from schemas.evidence_plan import EvidenceCall
from schemas.tool import ToolReply
from services.model_calls.reply_text import MalformedReply
from tests.agents.planning.planned import planned
from tests.each_case import check_each

CALL = {"client": "thinktwice", "method": "trades", "params": {"playbook_id": "squeeze_breakout"}}
PLAN = json.dumps({"confidence": 0.9, "clarification": None, "tools": [CALL]})
EARLIER = (
    EvidenceCall(
        id="c1", client="thinktwice", method="trades", params={}, iteration=1, reply=ToolReply(text="{}")
    ),
)


@pytest.mark.parametrize(
    ("text", "reasoning"),
    [
        (f"<reasoning>Why.</reasoning>{PLAN}", "Why."),
        (f"<REASONING>\nWhy,\nthen what.\n</Reasoning>\n\n{PLAN}", "Why,\nthen what."),
        (f"<reasoning >Why.</reasoning\t>```json\n{PLAN}\n```", "Why."),
        (f"```\n<reasoning>Why.</reasoning>\n{PLAN}\n```", "Why."),
        (f"<reasoning>One.</reasoning> <reasoning>Two.</reasoning> {PLAN}", "One.\nTwo."),
        (f"{PLAN}<reasoning>Afterwards.</reasoning>", "Afterwards."),
        (f"<reasoning>a <reasoning>b</reasoning> c</reasoning>{PLAN}", "a <reasoning>b</reasoning> c"),
        (
            f'<reasoning>{{"confidence": 0.1, "tools": []}}</reasoning>{PLAN}',
            '{"confidence": 0.1, "tools": []}',
        ),
        (f"<reasoning></reasoning>{PLAN}", ""),
        (PLAN, ""),
        (f"```json\n{PLAN}\n```", ""),
    ],
)
def test_reasoning_is_taken_out_and_the_plan_behind_it_read(text, reasoning):
    plan = planned(text)
    assert plan.failure is None
    assert plan.reasoning == reasoning
    assert [call.method for call in plan.tools] == ["trades"]
    assert plan.confidence == 0.9


def test_reasoning_in_the_first_field_of_a_form_is_the_reasoning():
    fields = list(FORM.schema["properties"])
    assert fields == ["reasoning", "confidence", "clarification", "tools"]
    call = FORM.schema["$defs"]["NamedCall"]["properties"]
    assert call["params"]["type"] == "string", "a closed form has no open object: the arguments are JSON text"
    held = {"reasoning": "Why.", "confidence": 1, "clarification": None}
    plan = planned(json.dumps(held | {"tools": [CALL | {"params": json.dumps(CALL["params"])}]}))
    assert (plan.reasoning, plan.confidence) == ("Why.", 1.0)
    assert dict(plan.tools[0].params) == CALL["params"]
    assert FORM.reads(json.dumps(held | {"tools": []}))
    assert not FORM.reads("no plan")


def test_tags_inside_a_text_of_the_json_are_left_in_it():
    question = "What is <reasoning> for?"
    plan = planned(json.dumps({"confidence": 0.1, "clarification": question, "tools": []}))
    assert (plan.failure, plan.clarification, plan.reasoning) == (None, question, "")


@pytest.mark.parametrize(
    "text",
    [
        f"<reasoning>Why. {PLAN}",
        f"<reasoning>a <reasoning>b</reasoning>{PLAN}",
        "<reasoning>",
        f"<reasoning>One.</reasoning>{PLAN}<reasoning>Two.",
    ],
)
def test_block_that_is_never_closed_is_a_failure_with_its_reasoning(text):
    plan = planned(text)
    assert (plan.confidence, plan.tools) == (0.0, ())
    assert plan.failure is not None
    assert UNCLOSED in plan.failure
    assert plan.reasoning == without_reasoning(text)[0]
    assert plan.clarification is None


def test_giant_block_is_cut_and_the_plan_behind_it_read():
    plan = planned(f"<reasoning>{'word ' * 100_000}</reasoning>{PLAN}")
    assert len(plan.reasoning) <= LONGEST_REASONING
    assert len(plan.tools) == 1


@pytest.mark.parametrize(
    "bit", ["<reasoning>", "</reasoning>", "<reasoning" + " " * 20, "<reasoning></reasoning>"]
)
def test_many_tags_are_read_in_one_pass(bit):
    start = time.perf_counter()
    without_reasoning(bit * (1_000_000 // len(bit)))
    assert time.perf_counter() - start < 5


@check_each(
    "text",
    [
        "",
        "I would look at the episodes.",
        f"Here you are: {PLAN}",
        f"{PLAN}\n{PLAN}",
        PLAN[:-1],
        "[]",
        "null",
        '"tools"',
        '{"tools": {}}',
        '{"tools": ["trades"]}',
        '{"tools": null, "answer": 1}',
        '{"confidence": 0.9, "confidence": 0.1, "tools": []}',
        "</reasoning>" + PLAN,
        "[" * 50_000,
        '{"confidence": ' + "9" * 5_000 + "}",
        f'{{"clarification": "{"x" * 501}"}}',
        '{"tools": [' + ",".join([json.dumps(CALL)] * 2_000) + "]}",
    ],
)
def test_reply_that_is_no_plan_is_a_failure_without_a_call(text):
    plan = planned(f"<reasoning>Thought.</reasoning>{text}")
    assert (plan.confidence, plan.tools, plan.reasoning) == (0.0, (), "Thought.")
    assert plan.failure is not None
    assert plan.failure.startswith("the model's reply cannot be used: ")
    assert plan.clarification is None
    assert plan.prompt_hash is not None
    assert plan.model == "said"


@pytest.mark.parametrize(
    "confidence", ["1.01", "-0.1", "NaN", "Infinity", "-Infinity", '"0.9"', "true", "[]", "1e999"]
)
def test_confidence_that_is_none_is_refused(confidence):
    plan = planned(f'{{"confidence": {confidence}, "clarification": null, "tools": []}}')
    assert plan.confidence == 0.0
    assert plan.failure is not None
    assert "confidence" in plan.failure


@pytest.mark.parametrize(
    ("shown", "wanted"), [("", 1.0), ('"confidence": null, ', 1.0), ('"confidence": 0, ', 0.0)]
)
def test_confidence_that_is_left_out_is_one(shown, wanted):
    assert planned(f'{{{shown}"tools": []}}').confidence == wanted


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ({"client": "dexter", "method": "quote"}, "no server 'dexter': there are thinktwice."),
        ({"client": "thinktwise", "method": "trades"}, "Did you mean 'thinktwice'?"),
        ({"method": "trades"}, "it names no server: there are thinktwice"),
        ({"client": 7, "method": "trades"}, "it names no server"),
        ({"client": "thinktwice"}, "it names no tool of thinktwice"),
        ({"client": "thinktwice", "method": ""}, "it names no tool of thinktwice"),
        ({"client": "thinktwice", "method": ["trades"]}, "it names no tool of thinktwice"),
        ({"client": "thinktwice", "method": "trades", "params": [1]}, "write them as one JSON object"),
        ({"client": "thinktwice", "method": "trades", "params": "symbol=AAPL"}, "one JSON object"),
        ({"client": "thinktwice", "method": "trades", "params": '{"a": "\\ud800"}'}, "one JSON object"),
        ({"client": "evil\u202e\n" * 50, "method": "trades"}, "no server"),
    ],
)
def test_call_of_no_server_or_no_tool_is_dropped_with_the_reason_and_the_others_stay(call, reason):
    plan = planned(json.dumps({"tools": [call, CALL]}))
    assert [call.method for call in plan.tools] == ["trades"]
    assert plan.failure is None
    (dropped,) = plan.dropped
    assert reason in dropped.reason
    for shown in (dropped.client, dropped.method, dropped.reason):
        assert shown.isprintable()
        assert len(shown) < 300


def test_number_that_is_none_in_the_params_drops_the_call():
    (dropped,) = planned(
        '{"tools": [{"client": "thinktwice", "method": "trades", "params": {"limit": NaN}}]}'
    ).dropped
    assert "one JSON object" in dropped.reason


def test_argument_that_is_null_is_left_out():
    (call,) = planned(json.dumps({"tools": [CALL | {"params": {"symbol": "IBM", "at": None}}]})).tools
    assert dict(call.params) == {"symbol": "IBM"}
    assert read_arguments(None) == read_arguments("") == {}


def test_question_back_is_one_line_or_none():
    own = planned('{"confidence": 0.3, "clarification": "Which\\nplaybook\u202e?", "tools": []}')
    assert own.clarification == "Which playbook\\u202e?"
    assert planned('{"confidence": 0.3, "clarification": " ", "tools": []}').clarification is None
    assert planned('{"confidence": 0.3, "tools": []}').clarification is None


def test_refinement_may_name_no_call_and_its_confidence_says_nothing():
    done = planned('{"confidence": 0.1, "clarification": "What?", "tools": []}', earlier=EARLIER)
    assert (done.confidence, done.clarification, done.tools, done.failure) == (1.0, None, (), None)
    more = planned(f"<reasoning>The gate is missing.</reasoning>{PLAN}", earlier=EARLIER)
    assert (more.confidence, more.reasoning) == (1.0, "The gate is missing.")
    assert len(more.tools) == 1


def test_refinement_that_cannot_be_read_names_no_call_and_keeps_its_reasoning():
    plan = planned("<reasoning>Hm.</reasoning>maybe", earlier=EARLIER)
    assert (plan.tools, plan.confidence, plan.reasoning, plan.clarification) == ((), 0.0, "Hm.", None)
    assert plan.failure is not None


def test_reading_a_plan_says_what_is_wrong_in_words_of_ours():
    with pytest.raises(MalformedReply, match="confidence: less than equal"):
        read_plan('{"confidence": 7}')
