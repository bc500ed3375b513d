"""One suite over every provider: how each outcome ends, what is sent again, what is charged and recorded."""

import asyncio
import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from agents.language_models.accounted import AccountedModel, LiveSource
from agents.language_models.cassette import CassetteWriter, read_cassette
from agents.language_models.retrying import RetryingModel
from schemas.errors import ModelError, ModelRefused
from schemas.settings.llm import LlmSettings, ModelPrice
from schemas.settings.providers import PROVIDERS, model_name
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.model_calls.budget import estimate
from services.model_calls.language_model import ModelReply
from services.model_calls.record import Caller, Question, RecordedCall
from services.policy_checks.consolidation import FORM
from tests.agents.language_models.wire_formats import FORMATS, WireFormat, completion, saying
from tests.agents.language_models.wire_server import (
    READ,
    Handler,
    WireServer,
    answer,
    drip,
    hang,
    in_turn,
    reset,
    serve,
)
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard
from worker.models import wire_model

KEY = "test-key-that-must-not-leak"
AGREES = json.dumps({"verdict": "pass", "comment": "Fine.", "findings": [], "deferred_needs": []})
PRICE = ModelPrice(model="claude-test", input_usd=1.0, output_usd=5.0)
TOLD_USD = (READ * 1.0 + 7 * 5.0) / 1e6
EVERY = pytest.mark.parametrize("provider", sorted(FORMATS))
LATER = {"retry-after": "Wed, 21 Oct 2099 07:28:00 GMT"}
TWO_TRIES = 2


@dataclass(frozen=True)
class Ended:
    """How a call over a wire ended."""

    reply: ModelReply | None
    error: ModelError | None
    call: RecordedCall
    usd: float
    document: dict[str, Any]
    server: WireServer
    guess_usd: float


async def _call(
    provider: str, handler: Handler, path: Any, deadline_ms: float, prompt: str = "p", **given: Any
) -> Ended:
    settings = LlmSettings(prices=(PRICE,), breaker_failures=100)
    account = ModelAccount(settings, JournalWriter(MemorySink()), SimulatedClock())
    records: list[RecordedCall] = []
    writer = CassetteWriter(path)

    def keep(call: RecordedCall) -> None:
        records.append(call)
        writer.keep(call)

    account.keep = keep
    account.requests = 1  # not the first of its run, where a wrong key would stop the start
    caller = Caller(provider, "claude-test", FORM.name, "ab" * 32, None, FORM, FORM.reads)
    async with serve(handler) as server:
        model = FORMATS[provider].model(
            "claude-test",
            guard=TickGuard(),
            base_url=server.url,
            reply_format=FORM,
            **{"api_key": KEY, **given},
        )
        model.open()
        source = LiveSource(RetryingModel(model, attempts=TWO_TRIES, first_wait_ms=1.0))
        accounted = AccountedModel(caller, source, account, TickGuard())
        reply, failure = None, None
        try:
            reply = await accounted.complete(
                system="s", prompt=prompt, max_tokens=64, deadline_ms=deadline_ms
            )
        except ModelError as error:
            failure = error
        await model.close()
    guess = estimate(Question(caller, "s", "p", 64, 1))
    guess_usd = (guess.input_tokens * 1.0 + guess.output_tokens * 5.0) / 1e6
    return Ended(reply, failure, records[0], account.ledger.run.usd, account.document(), server, guess_usd)


@pytest.fixture
def called(tmp_path) -> Callable[..., Ended]:
    def call(provider: str, handler: Handler, deadline_ms: float = 4_000.0, **given: Any) -> Ended:
        ended = asyncio.run(_call(provider, handler, tmp_path / "c.jsonl", deadline_ms, **given))
        played = read_cassette(tmp_path / "c.jsonl").calls()
        assert played == (ended.call,), "the cassette holds the outcome as it was"
        assert KEY not in (tmp_path / "c.jsonl").read_text("utf-8")
        assert KEY not in f"{ended.error} {ended.error.context if ended.error else ''}"
        return ended

    return call


def failing(status: int, name: str, **headers: str) -> Callable[[WireFormat], Handler]:
    return lambda wire: answer(wire.error(name, f"no, {KEY}"), status, headers)


def replying(text: str = AGREES, **changes: Any) -> Callable[[WireFormat], Handler]:
    return lambda wire: saying(wire, text, **changes)


def compressed(wire: WireFormat) -> Handler:
    body = gzip.compress(b" " * 50_000_000 + json.dumps(wire.body(AGREES)).encode())
    return answer(body, headers={"content-encoding": "gzip"})


def without_usage(wire: WireFormat) -> Handler:
    body = wire.body(AGREES)
    del body["usage"]
    return answer(body)


SHOWN, NOTHING, GUESSED, TWICE = "told", "nothing", "guessed", "guessed twice"
# name: the server, the outcome, requests sent, what is charged, whether it only ends at the deadline
CASES: dict[str, tuple[Callable[[WireFormat], Handler], str, int, str, bool]] = {
    "valid": (replying(), "reply", 1, SHOWN, False),
    "fence": (replying(f"```json\n{AGREES}\n```"), "reply", 1, SHOWN, False),
    "extra_fields": (lambda wire: answer(wire.body(AGREES) | {"news": 1}), "reply", 1, SHOWN, False),
    "dated_version": (replying(model="claude-test-20250929"), "reply", 1, SHOWN, False),
    "dated_as_openai_does": (replying(model="claude-test-2025-09-29"), "reply", 1, SHOWN, False),
    "another_model": (replying(model="claude-test-pro"), "wrong_model", 1, SHOWN, False),
    "refusal": (replying("I will not", stop="refusal"), "refusal", 1, SHOWN, False),
    "cut": (replying(AGREES[:20], stop="max_tokens"), "cut", 1, SHOWN, False),
    "status_400": (failing(400, "invalid_request_error"), "rejected", 2, NOTHING, False),
    "status_401": (failing(401, "authentication_error"), "rejected", 1, NOTHING, False),
    "status_403": (failing(403, "permission_error"), "rejected", 1, NOTHING, False),
    "status_404": (failing(404, "not_found_error"), "rejected", 1, NOTHING, False),
    "status_402": (failing(402, "payment_required"), "rejected", 1, NOTHING, False),
    "status_429": (failing(429, "rate_limit_error"), "throttled", 2, NOTHING, False),
    "status_429_until_a_date": (failing(429, "rate_limit_error", **LATER), "throttled", 1, NOTHING, False),
    "status_500": (failing(500, "server_error"), "server", 2, NOTHING, False),
    "status_529": (failing(529, "overloaded_error"), "overloaded", 2, NOTHING, False),
    "hang": (lambda wire: hang, "timeout", 1, GUESSED, True),
    "drip": (lambda wire: drip, "timeout", 1, GUESSED, True),
    "ten_megabytes": (replying("x" * 10_000_000), "malformed", 1, GUESSED, False),
    "ten_megabytes_of_error": (lambda wire: answer(b"x" * 10_000_000, 500), "server", 2, NOTHING, False),
    "gzip_bomb": (compressed, "malformed", 1, GUESSED, False),
    "missing_usage": (without_usage, "reply", 1, GUESSED, False),
    "both_requests_cut": (lambda wire: reset, "network", 2, TWICE, False),
    "first_request_cut": (lambda wire: in_turn(reset, saying(wire, AGREES)), "reply", 2, "both", False),
}


@EVERY
@pytest.mark.parametrize("name", CASES)
def test_providers_outcome_retries_charge_and_cassette(provider, name, called):
    handler, outcome, requests, charge, waits = CASES[name]
    ended = called(provider, handler(FORMATS[provider]), 300.0 if waits else 4_000.0)
    assert (ended.call.outcome, ended.call.requests) == (outcome, requests)
    assert len(ended.server.requests) == requests
    guessed = {SHOWN: 0, NOTHING: 0, GUESSED: 1, TWICE: 2, "both": 1}[charge]
    shown = TOLD_USD if charge in (SHOWN, "both") else 0.0
    assert ended.usd == pytest.approx(shown + guessed * ended.guess_usd)
    assert (ended.reply is not None) == (outcome == "reply")
    assert ended.document["unusable"] == 0


@pytest.mark.parametrize(("counted", "guessed"), [(0, 1), (1, 0), (11, 0)])
def test_providers_reply_of_a_server_that_counts_nothing_is_charged_by_an_estimate(counted, guessed, called):
    usage = {"prompt_tokens": counted, "completion_tokens": 0, "total_tokens": counted}
    ended = called("openai", saying(FORMATS["openai"], AGREES, usage=usage))
    assert ended.call.outcome == "reply"
    assert ended.document["estimated_calls"] == guessed
    assert (ended.usd == pytest.approx(ended.guess_usd)) is bool(guessed)


PARTS = [
    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
    {"type": "text", "text": AGREES[:5]},
    {"type": "text", "text": AGREES[5:]},
]


def choosing(stop: str, **payload: Any) -> Handler:
    """A completion whose one choice has such a message."""
    return answer(completion(choices=[{"index": 0, "finish_reason": stop, **payload}]))


def test_providers_content_in_parts_is_the_text_without_its_thoughts(called):
    ended = called("openai", choosing("stop", message={"role": "assistant", "content": PARTS}))
    assert ended.reply is not None
    assert ended.reply.text == AGREES


@pytest.mark.parametrize(
    "quoted",
    [{}, {"message": None}, {"message": {}}, {"message": {"role": "assistant", "content": None}}],
)
def test_providers_reply_that_its_bound_ended_before_any_content_is_cut(quoted, called):
    ended = called("openai", choosing("length", **quoted))
    assert (ended.call.outcome, ended.usd) == ("cut", pytest.approx(TOLD_USD))


@EVERY
@pytest.mark.parametrize(
    ("error", "outcome", "status"),
    [
        ({"code": 402, "message": "Insufficient credits"}, "rejected", 402),
        ({"type": "insufficient_quota", "message": "x"}, "rejected", None),
        ({"code": "429", "message": "x"}, "throttled", 429),
        ({"code": 502, "message": "x"}, "server", 502),
        ({"type": "overloaded_error", "message": "x"}, "overloaded", None),
        ("a word", "rejected", None),
    ],
)
def test_providers_error_in_an_answer_called_success_is_that_failure(
    provider, error, outcome, status, called
):
    ended = called(provider, answer({"error": error}))
    assert (ended.call.outcome, ended.call.status, ended.usd) == (outcome, status, 0.0)


FAILED = {"code": 502, "message": "the upstream gave up"}
CHOICE = {"index": 0, "message": {"role": "assistant", "content": "half"}, "finish_reason": "error"}


@pytest.mark.parametrize(
    "shown",
    [
        {"object": "chat.completion", "model": "m", "choices": [CHOICE | {"error": FAILED}]},
        {"errors": [FAILED]},
    ],
)
def test_providers_error_inside_a_choice_or_a_list_keeps_the_servers_words_and_code(shown, called):
    ended = called("openai", answer(shown))
    assert (ended.call.outcome, ended.call.status) == ("server", 502)
    assert "the upstream gave up" in str(ended.error)


def test_providers_error_inside_a_streamed_choice_keeps_the_servers_words_and_code(called):
    chunks = [
        {"index": 0, "delta": {"content": "half"}},
        {"index": 0, "finish_reason": "error", "error": FAILED},
    ]
    lines = [
        json.dumps({"object": "chat.completion.chunk", "model": "m", "choices": [chunk]}) for chunk in chunks
    ]
    body = "".join(f"data: {line}\n\n" for line in [*lines, "[DONE]"]).encode()
    ended = called("openai", answer(body, headers={"content-type": "text/event-stream"}), stall_ms=2_000.0)
    assert (ended.call.outcome, ended.call.status) == ("server", 502)
    assert "the upstream gave up" in str(ended.error)


def test_providers_code_that_is_the_status_is_told_once(called):
    ended = called("openai", answer({"error": {"code": 429, "message": "slow down"}}, 429))
    assert "HTTP 429 'slow down'" in str(ended.error)


@EVERY
def test_providers_gateway_that_answers_in_another_name_is_accepted_where_it_is_named(provider, called):
    handler = saying(FORMATS[provider], AGREES, model="gateway/some-model")
    assert called(provider, handler, accept=("gateway/some-model",)).call.outcome == "reply"


@EVERY
def test_providers_redirect_is_not_followed_with_the_key(provider, tmp_path):
    async def redirected() -> tuple[Ended, WireServer]:
        async with serve(saying(FORMATS[provider], AGREES)) as other:
            there = answer({}, 307, {"location": f"{other.url}/v1/elsewhere"})
            return await _call(provider, there, tmp_path / "c.jsonl", 4_000.0), other

    ended, other = asyncio.run(redirected())
    assert other.requests == [], "the key went to another address"
    assert ended.call.outcome == "rejected"
    assert "set llm.base_url" in str(ended.error)


@EVERY
def test_providers_reply_that_cannot_be_read_counts_as_unusable(provider, called):
    ended = called(provider, saying(FORMATS[provider], "I would buy everything."))
    assert (ended.call.outcome, ended.document["unusable"]) == ("reply", 1)


@EVERY
def test_providers_malformed_reply_keeps_what_was_seen_escaped_and_short(provider, called):
    page = f"<html>\u202e{KEY}\n" + "x" * 300
    handler = answer(page.encode(), headers={"content-type": "text/html"})
    text = str(called(provider, handler).error)
    assert "its type is 'text/html'" in text
    assert f"{len(page.encode())} bytes" in text
    assert "<html>\\u202e***" in text
    assert "\u202e" not in text
    assert len(text) < 500


@EVERY
def test_providers_question_carries_system_prompt_key_and_the_closed_form(provider, called):
    wire = FORMATS[provider]
    headers, body = called(provider, saying(wire, AGREES)).server.requests[0]
    assert KEY in str(headers)
    assert (wire.system_of(body), wire.prompt_of(body), body[PROVIDERS[provider].bound]) == ("s", "p", 64)
    form = wire.form_of(body)
    assert form == FORM.schema
    assert form["additionalProperties"] is False
    assert form["required"] == list(form["properties"])


@EVERY
@pytest.mark.parametrize(
    ("stop", "outcome"), [("end_turn", None), ("max_tokens", "cut"), ("refusal", "refusal")]
)
def test_providers_streamed_reply_ends_as_the_whole_one(provider, stop, outcome, called):
    ended = called(provider, FORMATS[provider].streamed(AGREES, stop=stop), stall_ms=2_000.0)
    assert ended.call.outcome == (outcome or "reply")
    assert ended.usd == pytest.approx(TOLD_USD)
    assert ended.reply is None or ended.reply.text == AGREES


@pytest.mark.parametrize(("provider", "sent"), [("openai", 0.2), ("anthropic", None)])
def test_providers_temperature_is_sent_where_the_format_has_one(provider, sent, called):
    ended = called(provider, saying(FORMATS[provider], AGREES), temperature=0.2)
    assert ended.server.requests[0][1].get("temperature") == sent
    assert ended.call.temperature_sent is (sent is not None), "the record says so"


@EVERY
@pytest.mark.parametrize("key", ["x", "e", "pass", "a" * 11, "deferred_needs", "policy_level_reflection"])
def test_reply_that_holds_the_letters_of_the_key_is_read_and_stored_whole(provider, key, called):
    text = json.dumps({**json.loads(AGREES), "comment": f"A word like {key} is an example."})
    prompt = "of policy_level_reflection"
    ended = called(provider, saying(FORMATS[provider], text), api_key=key, prompt=prompt)
    assert ended.reply is not None
    assert (ended.reply.text, ended.call.text) == (text, text)
    assert ended.document["unusable"] == 0


@EVERY
@pytest.mark.parametrize("key", [KEY, 'a"quoted/key', "x" * 12])
@pytest.mark.parametrize("stall_ms", [None, 2_000.0])
def test_reply_that_repeats_the_key_is_stored_without_it_and_read_alike_from_the_cassette(
    provider, key, stall_ms, called, tmp_path
):
    text = json.dumps({**json.loads(AGREES), "comment": f"your key is {key}"})
    handler = FORMATS[provider].streamed(text) if stall_ms else saying(FORMATS[provider], text)
    ended = called(provider, handler, api_key=key, stall_ms=stall_ms)
    (played,) = read_cassette(tmp_path / "c.jsonl").calls()
    assert ended.reply is not None
    assert json.loads(ended.reply.text) == {**json.loads(AGREES), "comment": "your key is ***"}
    assert played.result().text == ended.reply.text == ended.call.text
    assert ended.document["unusable"] == 0


@EVERY
def test_message_of_a_server_has_no_holes_where_the_key_is_a_short_word(provider, called):
    handler = answer(FORMATS[provider].error("some_error", "no such model: see the list"), 422)
    ended = called(provider, handler, api_key="e")
    assert "some_error 'no such model: see the list'" in str(ended.error)
    assert "no such model" in ended.call.text


@EVERY
@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_providers_first_question_turned_away_stops_the_start_without_the_key(provider, status, tmp_path):
    async def first() -> None:
        settings = LlmSettings(prices=(PRICE,))
        account = ModelAccount(settings, JournalWriter(MemorySink()), SimulatedClock())
        caller = Caller(provider, "claude-test", FORM.name, "ab" * 32)
        async with serve(failing(status, "some_error")(FORMATS[provider])) as server:
            model = FORMATS[provider].model(
                "claude-test", api_key=KEY, guard=TickGuard(), base_url=server.url
            )
            accounted = AccountedModel(caller, LiveSource(model), account, TickGuard())
            try:
                with pytest.raises(ModelRefused, match=f"HTTP {status} some_error") as caught:
                    await accounted.complete(system="s", prompt="p", max_tokens=8, deadline_ms=4_000.0)
                with pytest.raises(ModelError):  # a later one is a failure like any other
                    await accounted.complete(system="s", prompt="p", max_tokens=8, deadline_ms=4_000.0)
            finally:
                await model.close()
        assert KEY not in str(caught.value)
        assert "***" in str(caught.value)

    asyncio.run(first())


def test_providers_are_one_row_each_of_an_api_that_has_a_module():
    assert {row.wire for row in PROVIDERS.values()} == set(FORMATS)
    for name, wire in FORMATS.items():
        assert wire_model(name) is wire.model
        assert wire.model.package == name
    for name, row in PROVIDERS.items():
        assert row.bound in wire_model(row.wire).bounds
        assert model_name(f"{name}/x").row is row
        assert row.key == f"{name.upper()}_API_KEY"
