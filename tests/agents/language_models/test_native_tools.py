"""A model calls tools by its provider's own means: sent strict, read back, recorded, charged and played."""

import asyncio
import json
from typing import Any

import pytest

from agents.evidence_planner import ModelPlanner
from agents.language_models.accounted import AccountedModel, LiveSource, RecordedSource
from agents.language_models.cassette import CassetteWriter, read_cassette
from agents.language_models.retrying import RetryingModel
from agents.language_models.tool_forms import MOST_LEFT_OUT, is_closed, tool_forms
from agents.planning.plan_reply import FORM
from agents.planning.tool_listing import tools_to_call
from agents.reply_forms import FORMS_ON_DEMAND
from schemas.errors import CassetteMiss, ModelError
from schemas.settings.llm import LlmSettings, ModelPrice
from schemas.settings.planner import PlannerSettings
from schemas.tool import ToolDefinition
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.model_calls.budget import estimate
from services.model_calls.record import Caller, Question, question_key
from services.ports import EvidenceQuestion
from tests.agents.language_models.wire_formats import FORMATS, completion, saying
from tests.agents.language_models.wire_server import READ, answer, message, serve, stream
from tests.agents.planning.planned import SHOWN
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

EVERY = pytest.mark.parametrize("provider", sorted(FORMATS))
SENT = [sent for _, _, sent in tools_to_call(SHOWN).values()]
QUOTED = '<reasoning>Episodes, then the gate.</reasoning>{"confidence": 0.8}'
PRICE = ModelPrice(model="claude-test", input_usd=1.0, output_usd=5.0)
QUESTION = EvidenceQuestion("Why did squeeze_breakout lose?", {"playbooks": ["squeeze_breakout"]})
CALLS = [
    ("thinktwice__trades", {"playbook_id": "squeeze_breakout", "outcome": "lost"}),
    ("thinktwice__gate", {"playbook_id": "squeeze_breakout"}),
]


def claude_calling(calls=CALLS, text=QUOTED, stop="tool_use"):
    blocks = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": given}
        for n, (name, given) in enumerate(calls)
    ]
    return answer(message(content=[{"type": "text", "text": text}, *blocks], stop_reason=stop))


def gpt_calling(calls=CALLS, text: str | None = QUOTED, stop="tool_calls"):
    used = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
        for n, (name, given) in enumerate(calls)
    ]
    payload = {"role": "assistant", "content": text, "tool_calls": used}
    return answer(completion(choices=[{"index": 0, "message": payload, "finish_reason": stop}]))


def claude_streaming():
    start = message(content=[], stop_reason=None, usage={"input_tokens": READ, "output_tokens": 1})
    sent: list[Any] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": QUOTED}},
        {"type": "content_block_stop", "index": 0},
    ]
    for index, (name, given) in enumerate(CALLS, 1):
        block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
        text = json.dumps(given)
        sent.append({"type": "content_block_start", "index": index, "content_block": block})
        for part in (text[:7], text[7:]):
            delta = {"type": "input_json_delta", "partial_json": part}
            sent.append({"type": "content_block_delta", "index": index, "delta": delta})
        sent.append({"type": "content_block_stop", "index": index})
    stopped = {"stop_reason": "tool_use", "stop_sequence": None}
    end = [
        {"type": "message_delta", "delta": stopped, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    return stream([*sent, *end])


def gpt_streaming():
    deltas: list[Any] = [{"role": "assistant", "content": QUOTED}]
    for index, (name, given) in enumerate(CALLS):
        text = json.dumps(given)
        head = {"index": index, "id": f"call_{index}", "type": "function"}
        deltas.append({"tool_calls": [head | {"function": {"name": name, "arguments": text[:7]}}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": text[7:]}}]})
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "claude-test"}
    chunks = [base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    usage = {"prompt_tokens": READ, "completion_tokens": 7, "total_tokens": READ + 7}
    end = [
        base | {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        base | {"choices": [], "usage": usage},
    ]
    lines = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in [*chunks, *end]]
    return stream([*lines, b"data: [DONE]\n\n"])


CALLING = {"anthropic": claude_calling, "openai": gpt_calling}
STREAMING = {"anthropic": claude_streaming, "openai": gpt_streaming}


def live(provider, url, **given):
    model = FORMATS[provider].model(
        "claude-test", api_key="key", guard=TickGuard(), base_url=url, reply_format=FORM, **given
    )
    model.open()
    return model


async def complete(provider, handler, tools=SENT, **given):
    async with serve(handler) as server:
        model = live(provider, server.url, **given)
        try:
            reply = await RetryingModel(model, attempts=1, first_wait_ms=1).complete(
                system="s", prompt="p", max_tokens=64, deadline_ms=4_000, tools=tools
            )
        finally:
            await model.close()
    return reply, server.requests[0][1]


def read(reply):
    return [(use.name, json.loads(use.arguments)) for use in reply.uses]


@EVERY
def test_tools_are_sent_and_the_calls_of_the_reply_read(provider):
    reply, body = asyncio.run(complete(provider, CALLING[provider]()))
    assert read(reply) == CALLS
    assert reply.text == QUOTED
    assert (reply.input_tokens, reply.output_tokens) == (READ, 7)
    assert len(body["tools"]) == len(SENT)
    assert FORMATS[provider].form_of(body) is None, "a reply with calls has no form"


@EVERY
def test_streamed_calls_are_read_as_whole_ones(provider):
    reply, _ = asyncio.run(complete(provider, STREAMING[provider](), stall_ms=2_000.0))
    assert read(reply) == CALLS
    assert reply.text == QUOTED


@EVERY
def test_calls_without_a_word_are_a_reply_and_a_word_without_calls_too(provider):
    silent = {"anthropic": claude_calling(text=""), "openai": gpt_calling(text=None)}[provider]
    assert read(asyncio.run(complete(provider, silent))[0]) == CALLS
    words, _ = asyncio.run(complete(provider, saying(FORMATS[provider], QUOTED)))
    assert (words.text, words.uses) == (QUOTED, ())


@EVERY
def test_call_where_no_tool_was_given_is_no_reply(provider):
    with pytest.raises(ModelError, match="it calls a tool where none was given"):
        asyncio.run(complete(provider, CALLING[provider](), tools=()))


@EVERY
def test_call_that_was_cut_is_a_failure(provider):
    cut = {"anthropic": claude_calling(stop="max_tokens"), "openai": gpt_calling(stop="length")}[provider]
    with pytest.raises(ModelError) as caught:
        asyncio.run(complete(provider, cut))
    assert caught.value.context["kind"] == "cut"


@EVERY
@pytest.mark.parametrize("status", [400, 422])
def test_server_that_refuses_tools_is_told_with_the_setting(provider, status):
    handler = answer(FORMATS[provider].error("invalid_request_error", "tools?"), status)
    with pytest.raises(ModelError, match=r"needs planner\.native_tools = false"):
        asyncio.run(complete(provider, handler))


def test_strict_tools_are_closed_as_each_api_wants_it():
    for form in tool_forms(SENT, nulls=True):
        assert form.strict
        assert form.schema["required"] == list(form.schema["properties"])
        assert form.schema["additionalProperties"] is False
    fill = next(form for form in tool_forms(SENT, nulls=True) if form.name == "thinktwice__why")
    assert fill.schema["properties"]["fill_id"]["type"] == "string"
    assert fill.schema["properties"]["limit"]["anyOf"] == [
        {"type": "integer", "description": "items at most"}, {"type": "null"}
    ]  # fmt: skip
    claude = tool_forms(SENT, nulls=False)
    strict = [form for form in claude if form.strict]
    left_out = sum(len(form.schema["properties"]) - len(form.schema["required"]) for form in strict)
    assert 0 < len(strict) < len(claude)
    assert left_out <= MOST_LEFT_OUT
    assert '"null"' not in json.dumps([form.schema for form in strict])
    assert [form.name for form in claude] == [tool.name for tool in SENT]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"type": "object"}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": {"items": {"type": "object"}}}, "additionalProperties": False},
        {"type": "object", "properties": {"a": True}, "additionalProperties": False},
        {"type": "object", "properties": [], "additionalProperties": False},
        {
            "type": "object",
            "properties": {"a": {"anyOf": [{"type": "object"}]}},
            "additionalProperties": False,
        },
    ],
)
def test_schema_that_cannot_be_closed_is_sent_as_it_is(schema):
    assert not is_closed(schema)
    for nulls in (True, False):
        (form,) = tool_forms([ToolDefinition(name="quote", description="", input_schema=schema)], nulls=nulls)
        assert (form.strict, form.schema) == (False, schema)


async def _planned(source, path, *, native=True):
    settings = LlmSettings(model="anthropic/claude-haiku-5-5", prices=(PRICE,))
    account = ModelAccount(settings, JournalWriter(MemorySink()), SimulatedClock())
    if path is not None:
        account.keep = CassetteWriter(path).keep
    caller = Caller("anthropic", "claude-test", FORM.name, "ab" * 32, None, FORM, FORM.reads)
    model = AccountedModel(caller, source, account, TickGuard())
    planner = ModelPlanner(model, PlannerSettings(native_tools=native), max_tokens=64)
    return await planner.plan(QUESTION, SHOWN), account


@EVERY
def test_calls_without_a_word_are_no_reply_that_cannot_be_used(provider):
    silent = {"anthropic": claude_calling(text=""), "openai": gpt_calling(text=None)}[provider]

    async def requested():
        async with serve(silent) as server:
            model = live(provider, server.url)
            try:
                return await _planned(LiveSource(model), None)
            finally:
                await model.close()

    plan, account = asyncio.run(requested())
    assert len(plan.tools) == 2
    assert account.unusable == 0


@EVERY
def test_plan_by_native_tools_is_recorded_charged_and_played_back(provider, tmp_path):
    path = tmp_path / "plans.jsonl"

    async def requested():
        async with serve(CALLING[provider]()) as server:
            model = live(provider, server.url)
            try:
                return await _planned(LiveSource(RetryingModel(model, attempts=1, first_wait_ms=1)), path)
            finally:
                await model.close()

    plan, account = asyncio.run(requested())
    assert [(call.method, dict(call.params)) for call in plan.tools] == [
        (name.removeprefix("thinktwice__"), given) for name, given in CALLS
    ]
    assert (plan.confidence, plan.reasoning, plan.failure) == (0.8, "Episodes, then the gate.", None)
    assert account.ledger.run.usd == pytest.approx((READ * 1.0 + 7 * 5.0) / 1e6)
    assert account.unusable == 0
    (call,) = read_cassette(path).calls()
    assert [use.name for use in call.uses] == [name for name, _ in CALLS]
    played, again = asyncio.run(_planned(RecordedSource(read_cassette(path)), None))
    assert played == plan
    assert again.ledger.run.usd == account.ledger.run.usd


def test_plan_in_words_is_recorded_and_played_back(tmp_path):
    call = {"client": "thinktwice", "method": "gate", "params": {}}
    text = json.dumps({"confidence": 0.9, "clarification": None, "tools": [call]})
    path = tmp_path / "c.jsonl"

    async def recorded():
        async with serve(saying(FORMATS["anthropic"], f"<reasoning>The gate.</reasoning>{text}")) as server:
            model = live("anthropic", server.url)
            try:
                plan, _ = await _planned(LiveSource(model), path, native=False)
            finally:
                await model.close()
            return plan, FORMATS["anthropic"].form_of(server.requests[0][1])

    plan, form = asyncio.run(recorded())
    assert [tool.method for tool in plan.tools] == ["gate"]
    assert form == FORM.schema
    played, _ = asyncio.run(_planned(RecordedSource(read_cassette(path)), None, native=False))
    assert played == plan
    with pytest.raises(CassetteMiss):
        asyncio.run(_planned(RecordedSource(read_cassette(path)), None))


def test_tools_have_a_part_in_the_key_and_the_estimate_only_where_they_are_given():
    caller = Caller("anthropic", "claude-test", FORM.name, "ab" * 32)
    plain = question_key(caller, "s", "p", 64)
    assert plain == "368b7206ee0f7bb49e8e0ac90b611fc889b857e37e7bec5f6f9bdcbab1d2fe73"
    assert Question(caller, "s", "p", 64, 1).key == plain
    with_tools = Question(caller, "s", "p", 64, 1, tools=tuple(SENT))
    assert with_tools.key != plain
    fewer = Question(caller, "s", "p", 64, 1, tools=tuple(SENT[:1]))
    assert len({plain, with_tools.key, fewer.key}) == 3
    assert (
        estimate(with_tools).input_tokens > estimate(Question(caller, "s", "p", 64, 1)).input_tokens + 1_000
    )


def test_form_of_plans_is_registered_beside_those_of_texts():
    assert FORMS_ON_DEMAND[FORM.name] is FORM
