import asyncio
import subprocess
import sys
import time
import traceback

import pytest

from agents.language_models.anthropic import AnthropicModel
from schemas.errors import InvariantViolation, ModelError
from services.model_calls.language_model import LanguageModel, ModelReply
from tests.agents.language_models.wire_server import READ, answer, drip, hang, message, reset, serve
from trading_core.tick_guard import TickGuard

KEY = "test-key-that-must-not-leak"


async def _complete(handler, deadline_ms=5_000.0, guard=None, **options):
    async with serve(handler) as server:
        model = AnthropicModel(
            "claude-test", api_key=KEY, guard=guard or TickGuard(), base_url=server.url, **options
        )
        try:
            reply = await model.complete(
                system="Be brief.", prompt="2+2?", max_tokens=64, deadline_ms=deadline_ms
            )
        finally:
            await model.close()
        return reply, server


def complete(handler, **options):
    return asyncio.run(_complete(handler, **options))


def failure(handler, **options) -> ModelError:
    with pytest.raises(ModelError) as caught:
        complete(handler, **options)
    return caught.value


def test_anthropic_good_reply_is_text_with_its_usage():
    reply, server = complete(answer(message('{"verdict": "pass"}')))
    assert isinstance(reply, ModelReply)
    assert (reply.text, reply.model) == ('{"verdict": "pass"}', "claude-test")
    assert (reply.input_tokens, reply.output_tokens) == (READ, 7)
    assert reply.latency_ms > 0
    headers, body = server.requests[0]
    assert KEY in str(headers)
    assert body["messages"] == [{"role": "user", "content": "2+2?"}]
    assert body["system"] == [{"type": "text", "text": "Be brief."}], "too short for any cache: no mark"
    assert body["max_tokens"] == 64


def test_anthropic_model_is_asked_not_to_think_only_where_that_is_set():
    for options, sent in (({}, None), ({"effort": "none"}, {"type": "disabled"})):
        _, server = complete(answer(message("4")), **options)
        assert server.requests[0][1].get("thinking") == sent


def test_anthropic_model_satisfies_the_port():
    port: LanguageModel = AnthropicModel("claude-test", api_key=KEY, guard=TickGuard())
    assert callable(port.complete)


@pytest.mark.parametrize(
    ("handler", "kind", "retryable"),
    [
        (answer(message("no", stop_reason="refusal", content=[])), "refusal", False),
        (answer(message('{"verdict": "pa', stop_reason="max_tokens")), "cut", False),
        (answer(message("half", stop_reason=None)), "malformed", True),
        (answer(message("", content=[])), "malformed", True),
        (answer(b'{"id": "msg_1", "type": "mess'), "malformed", True),
        (answer({"unexpected": True}), "malformed", True),
        (answer(b"<html>gateway</html>", headers={"content-type": "text/html"}), "malformed", True),
        (
            answer({"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, 529),
            "overloaded",
            True,
        ),
        (answer({"type": "error", "error": {"type": "api_error", "message": "x"}}, 500), "server", True),
        (
            answer({"type": "error", "error": {"type": "rate_limit_error", "message": "x"}}, 429),
            "throttled",
            True,
        ),
        (
            answer({"type": "error", "error": {"type": "authentication_error", "message": "x"}}, 401),
            "rejected",
            False,
        ),
        (
            answer({"type": "error", "error": {"type": "invalid_request_error", "message": "x"}}, 400),
            "rejected",
            False,
        ),
        (reset, "network", True),
    ],
)
def test_anthropic_failure_error_names_its_kind_and_whether_to_retry(handler, kind, retryable):
    error = failure(handler)
    assert (error.context["kind"], error.retryable) == (kind, retryable)


def test_anthropic_long_retry_after_is_not_waited_for():
    throttled = answer({"type": "error", "error": {"type": "rate_limit_error"}}, 429, {"retry-after": "60"})
    start = time.monotonic()
    assert failure(throttled).context["status"] == 429
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("handler", [hang, drip])
def test_anthropic_reply_that_never_ends_error_at_the_total_deadline(handler):
    error = failure(handler, deadline_ms=200.0)
    assert (error.context["kind"], error.retryable) == ("timeout", True)


def test_anthropic_overloaded_is_called_exactly_once():
    async def run():
        async with serve(answer({"type": "error", "error": {"type": "overloaded_error"}}, 529)) as server:
            model = AnthropicModel("claude-test", api_key=KEY, guard=TickGuard(), base_url=server.url)
            with pytest.raises(ModelError):
                await model.complete(system="s", prompt="p", max_tokens=8, deadline_ms=5_000)
            await model.close()
            return len(server.requests)

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize("handler", [hang, reset, answer({"type": "error"}, 401), answer(b"{")])
def test_anthropic_error_holds_neither_key_nor_request(handler):
    error = failure(handler, deadline_ms=300.0)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert KEY not in "".join(traceback.format_exception(error)) + str(error.context)


def test_anthropic_refused_connection_sent_no_request_and_a_reset_one_did():
    async def run():
        async with serve(reset) as server:
            url = server.url
        model = AnthropicModel("claude-test", api_key=KEY, guard=TickGuard(), base_url=url)
        with pytest.raises(ModelError) as caught:
            await model.complete(system="s", prompt="p", max_tokens=8, deadline_ms=5_000)
        await model.close()
        return caught.value.context

    refused = asyncio.run(run())
    assert (refused["kind"], refused["requests"]) == ("network", 0)
    assert "requests" not in failure(reset).context


def test_anthropic_call_inside_the_tick_path_error_and_nothing_is_sent():
    guard = TickGuard()

    async def run():
        async with serve(answer(message())) as server:
            model = AnthropicModel("claude-test", api_key=KEY, guard=guard, base_url=server.url)
            with guard.tick_path(), pytest.raises(InvariantViolation, match="llm_calls"):
                await model.complete(system="s", prompt="p", max_tokens=8, deadline_ms=1_000)
            return server.requests

    assert asyncio.run(run()) == []
    assert guard.attempts["llm_calls"] == 1


def test_anthropic_adapter_imported_alone_does_not_load_the_sdk():
    code = "import sys, agents.language_models.anthropic; print('anthropic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"
