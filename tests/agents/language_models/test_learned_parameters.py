"""What a server refuses of the parameters is left out from then on, for the run."""

import asyncio
import json
from typing import Any

import pytest

from agents.language_models import wire_model
from agents.language_models.anthropic import AnthropicModel
from agents.language_models.openai import OpenAIModel
from agents.language_models.retrying import RetryingModel
from agents.language_models.wire_failures import refused_parameters
from schemas.errors import ModelError
from schemas.settings.providers import PROVIDERS, Provider
from services.policy_checks.consolidation import FORM
from tests.agents.language_models.wire_formats import FORMATS, WireFormat, completion
from tests.agents.language_models.wire_server import (
    Handler,
    WireServer,
    answer,
    hang,
    in_turn,
    message,
    serve,
)
from trading_core.tick_guard import TickGuard

EVERY = pytest.mark.parametrize("provider", sorted(FORMATS))
ANSWER, ROOM = 256, 8_000
LOADED = {"models": [{"name": "claude-test", "model": "claude-test:latest", "context_length": 4_000}]}
OTHER = {"models": [{"name": "other", "model": "other", "context_length": 9}]}
OWN = Provider(None, "OWN_API_KEY", keyless=True)


def refusing(wire: WireFormat, refuses: dict[str, tuple[str | None, str]], most: int = 10**9) -> Handler:
    """A server that turns away some parameters, each with what it names apart and what it says."""
    seen = WireServer("")

    async def handle(writer: asyncio.StreamWriter) -> None:
        body = seen.requests[-1][1]
        given = body | body.get("output_config", {})
        for name, (param, text) in refuses.items():
            if name in given:
                error = wire.error("invalid_request_error", text)
                error["error"]["param"] = param
                return await answer(error, 400)(writer)
        bound = next(given[name] for name in ("max_tokens", "max_completion_tokens") if name in given)
        if bound > most:
            text = f"'max_tokens' or 'max_completion_tokens' is too large: {bound}"
            return await answer(wire.error("BadRequestError", text), 400)(writer)
        await answer(wire.body())(writer)

    handle.seen = seen  # type: ignore[attr-defined]
    return handle


async def _ask(handler: Any, model: Any, times: int = 1, **given: Any) -> tuple[list[Any], list[Any]]:
    learned: dict[Any, Any] = {}
    async with serve(handler) as server:
        if hasattr(handler, "seen"):
            handler.seen.requests = server.requests
        made = [
            model(
                "claude-test", api_key="key-of-a-test", guard=TickGuard(), base_url=server.url,
                thought_tokens=ROOM, learned=learned, **given,
            )
            for _ in range(times)
        ]  # fmt: skip
        ends: list[Any] = []
        for wired in made:
            retrying = RetryingModel(wired, attempts=2, first_wait_ms=1.0)
            try:
                ends.append(
                    await retrying.complete(system="s", prompt="p", max_tokens=ANSWER, deadline_ms=4_000)
                )
            except ModelError as error:
                ends.append(error)
            await wired.close()
    return ends, [body for _, body in server.requests]


def ask(handler: Any, model: Any, times: int = 1, **given: Any) -> tuple[list[Any], list[Any]]:
    """How questions of models of one run end, and the bodies that their server saw."""
    return asyncio.run(_ask(handler, model, times, **given))


UNSUPPORTED = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
PYDANTIC = "[{'type': 'extra_forbidden', 'loc': ('body', 'max_completion_tokens')}]"


@pytest.mark.parametrize(
    ("row", "refused", "param", "quoted", "taken"),
    [
        (OWN, "max_tokens", "max_tokens", UNSUPPORTED, "max_completion_tokens"),
        (OWN, "max_tokens", None, UNSUPPORTED, "max_completion_tokens"),
        (PROVIDERS["openai"], "max_completion_tokens", None, PYDANTIC, "max_tokens"),
    ],
)
def test_name_of_the_bound_is_learned_from_the_first_refusal_at_any_address(
    row, refused, param, quoted, taken
):
    handler = refusing(FORMATS["openai"], {refused: (param, quoted)})
    ends, bodies = ask(handler, OpenAIModel, 3, row=row)
    assert [end.requests for end in ends] == [2, 1, 1], "the second model of the run knows it"
    assert [refused in body for body in bodies] == [True, False, False, False]
    assert {body[taken] for body in bodies[1:]} == {ANSWER + ROOM}


def test_gateway_with_a_reasoning_model_teaches_bound_temperature_and_effort_one_by_one():
    refuses: dict[str, tuple[str | None, str]] = {
        "max_tokens": ("max_tokens", UNSUPPORTED),
        "temperature": ("temperature", "Unsupported value: only the default (1) is supported"),
        "reasoning_effort": (None, '"claude-test" does not support thinking'),
    }
    handler = refusing(FORMATS["openai"], refuses)
    ends, bodies = ask(handler, OpenAIModel, 2, row=OWN, temperature=0.2)
    assert [end.requests for end in ends] == [4, 1]
    assert not refuses.keys() & bodies[-1].keys()
    assert [end.temperature_sent for end in ends] == [False, False]


def test_effort_that_claude_refuses_is_left_out_and_its_form_stays():
    text = "output_config.effort: this model does not support the effort parameter"
    handler = refusing(FORMATS["anthropic"], {"effort": (None, text)})
    ends, bodies = ask(handler, AnthropicModel, 2, reply_format=FORM)
    assert refused_parameters({"error": {"message": text}}) == {"effort"}, "no hint about the form"
    assert [end.requests for end in ends] == [2, 1]
    assert [sorted(body["output_config"]) for body in bodies] == [
        ["effort", "format"],
        ["format"],
        ["format"],
    ]


EXTRA = "output_config: Extra inputs are not permitted"


@pytest.mark.parametrize(
    ("provider", "refuses", "requests"),
    [
        ("openai", {"response_format": (None, "This response_format type is unavailable now")}, 2),
        ("openai", {"response_format": ("response_format.type", "Invalid value: 'json_schema'.")}, 2),
        ("anthropic", {"format": (None, "output_config.format: Extra inputs are not permitted")}, 2),
        ("anthropic", {"output_config": (None, EXTRA)}, 3),
    ],
)
def test_form_that_a_server_refuses_is_left_out_for_the_run_and_no_setting_is_needed(
    provider, refuses, requests
):
    wire = FORMATS[provider]
    ends, bodies = ask(refusing(wire, refuses), wire.model, 2, reply_format=FORM)
    assert [end.requests for end in ends] == [requests, 1]
    assert [wire.form_of(body) for body in bodies] == [FORM.schema] + [None] * requests
    effort = bodies[-1].get("reasoning_effort", bodies[-1].get("output_config", {}).get("effort"))
    assert effort == (None if "output_config" in refuses else "low"), "what it takes is sent still"


@EVERY
@pytest.mark.parametrize(
    "quoted",
    [
        "The compiled grammar is too large",
        "Schema is too complex for compilation.",
        "Schemas contains too many parameters with union types",
        "response_schema.properties[because].items: missing field.",
        "Unknown name \"const\" at 'generation_config.response_schema.items': Cannot find field.",
    ],
)
def test_form_that_is_refused_in_any_words_is_left_out_for_the_run(provider, quoted):
    wire = FORMATS[provider]
    name = {"openai": "response_format", "anthropic": "format"}[provider]
    ends, bodies = ask(refusing(wire, {name: (None, quoted)}), wire.model, 2, reply_format=FORM)
    assert [end.requests for end in ends] == [2, 1]
    assert [wire.form_of(body) for body in bodies] == [FORM.schema, None, None]


@EVERY
def test_form_of_a_model_that_answered_with_it_is_not_doubted_at_a_later_refusal(provider):
    wire = FORMATS[provider]

    async def scenario() -> list[Any]:
        refusal = answer(wire.error("invalid_request_error", "prompt is too long"), 400)
        async with serve(in_turn(answer(wire.body()), refusal, answer(wire.body()))) as server:
            model = wire.model(
                "claude-test", api_key="k", guard=TickGuard(), base_url=server.url, reply_format=FORM
            )
            question: dict[str, Any] = {
                "system": "s",
                "prompt": "p",
                "max_tokens": ANSWER,
                "deadline_ms": 4_000,
            }
            await model.complete(**question)
            with pytest.raises(ModelError, match="prompt is too long"):
                await model.complete(**question)
            await model.complete(**question)
            await model.close()
        return [wire.form_of(body) for _, body in server.requests]

    assert asyncio.run(scenario()) == [FORM.schema] * 3


@EVERY
def test_two_questions_at_once_that_are_refused_for_different_parameters_both_teach(provider):
    wire, both, open_to_all = FORMATS[provider], list[Any](), asyncio.Event()
    form = {"openai": "response_format", "anthropic": "format"}[provider]
    effort = {"openai": "reasoning_effort", "anthropic": "effort"}[provider]

    async def scenario() -> list[Any]:
        async def handle(writer: asyncio.StreamWriter) -> None:
            body = server.requests[-1][1]
            given = body | body.get("output_config", {})
            both.append(body)
            if len(both) == 2:
                open_to_all.set()
            await open_to_all.wait()  # neither knows what the other is told
            order = (form, effort) if wire.prompt_of(body) == "a" else (effort, form)
            refused = next((name for name in order if name in given), None)
            if refused is None:
                return await answer(wire.body())(writer)
            payload = wire.error("invalid_request_error", f"Unknown parameter: '{refused}'")
            payload["error"]["param"] = {"format": "output_config.format"}.get(refused, refused)
            await answer(payload, 400)(writer)

        async with serve(handle) as server:
            model = wire.model(
                "claude-test", api_key="k", guard=TickGuard(), base_url=server.url, reply_format=FORM
            )
            questions = [
                model.complete(system="s", prompt=prompt, max_tokens=ANSWER, deadline_ms=4_000)
                for prompt in ("a", "b")
            ]
            ends = await asyncio.gather(*questions)
            await model.close()
        return ends

    assert [end.text for end in asyncio.run(scenario())] == ["hello", "hello"]
    assert len(both) <= 6, "one refusal each, and no more than one after what the other learned"
    assert not {form, effort} & (both[-1] | both[-1].get("output_config", {})).keys()


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ({"message": "Unsupported value", "param": "temperature"}, {"temperature"}),
        ({"message": "'max_tokens' is odd", "param": "messages"}, set()),
        (
            {"detail": [{"loc": ["body", "max_completion_tokens"], "msg": "extra", "input": {"think": 1}}]},
            {"bound"},
        ),
        ({"message": "`temperature` is deprecated for this model."}, {"temperature"}),
        ({"message": "temperature: Extra inputs are not permitted"}, {"temperature"}),
        ({"message": "Invalid max_tokens value, the valid range is [1, 8192]"}, {"bound"}),
        ({"message": "Unrecognized request argument supplied: reasoning_effort"}, {"effort"}),
        ({"message": '"qwen" does not support thinking'}, {"effort"}),
        ({"message": "This model does not support the effort parameter."}, {"effort"}),
        ({"message": "Your credit balance is too low: think about adding temperature to it"}, set()),
        ({"message": "Your credit balance is too low; lower max_tokens, or the effort"}, set()),
        ({"message": "The model `kimi-k2-thinking` does not exist"}, set()),
        ({"message": "prompt is too long: 9 tokens > 8 with thinking"}, set()),
    ],
)
def test_parameter_is_refused_where_the_complaint_is_about_it_and_not_where_it_is_mentioned(error, refused):
    assert refused_parameters(error) == refused
    assert refused_parameters({"error": error}) == refused


@EVERY
def test_room_for_thoughts_that_a_small_context_has_not_is_given_up_and_the_answer_keeps_its_own(provider):
    ends, bodies = ask(refusing(FORMATS[provider], {}, most=4_096), FORMATS[provider].model, 2)
    assert ends[-1].requests == 1
    bound = next(name for name in FORMATS[provider].model.bounds if name in bodies[-1])
    assert bodies[-1][bound] == ANSWER


@EVERY
def test_question_that_no_bound_would_save_fails_alone_and_teaches_nothing(provider):
    wire, (first, *_) = FORMATS[provider], FORMATS[provider].model.bounds
    seen: list[Any] = []

    async def handle(writer: asyncio.StreamWriter) -> None:
        body = seen[0].requests[-1][1]
        text = "'max_tokens' and the input are more than the context"
        takes = wire.prompt_of(body) != "long" and body.get(first) == ANSWER + ROOM
        await answer(wire.body() if takes else wire.error("BadRequestError", text), 200 if takes else 400)(
            writer
        )

    async def scenario() -> list[Any]:
        ends: list[Any] = []
        async with serve(handle) as server:
            seen.append(server)
            model = wire.model(
                "claude-test", api_key="k", guard=TickGuard(), base_url=server.url, thought_tokens=ROOM
            )
            for prompt in ("p", "long", "p"):
                try:
                    ends.append(
                        await model.complete(system="s", prompt=prompt, max_tokens=ANSWER, deadline_ms=4_000)
                    )
                except ModelError as error:
                    ends.append(error)
            await model.close()
        return ends

    good, failed, again = asyncio.run(scenario())
    assert failed.context["kind"] == "rejected"
    assert (good.text, again.text) == ("hello", "hello")


@EVERY
def test_refusal_that_no_parameter_explains_is_tried_once_without_the_form_and_teaches_nothing(provider):
    text = "Your credit balance is too low to access the API."
    handler = answer(FORMATS[provider].error("invalid_request_error", text), 400)
    ends, bodies = ask(handler, FORMATS[provider].model, 2, reply_format=FORM)
    forms = [FORMATS[provider].form_of(body) for body in bodies]
    assert forms == [FORM.schema, None, FORM.schema, None], "the second model learned nothing of the first"
    for end in ends:
        assert text in str(end)
        assert "native_tools" not in str(end), "a hint names only what the complaint is about"


@EVERY
@pytest.mark.parametrize("effort", ["none", "low", "high"])
def test_effort_is_sent_as_each_api_has_it_with_room_beside_the_answer(provider, effort):
    _, (body,) = ask(answer(FORMATS[provider].body()), FORMATS[provider].model, effort=effort)
    bound = body[PROVIDERS[provider].bound]
    assert bound == (ANSWER if effort == "none" else ANSWER + ROOM)
    if provider == "openai":
        assert body["reasoning_effort"] == effort
    else:
        assert body.get("thinking") == ({"type": "disabled"} if effort == "none" else None)
        assert body.get("output_config") == (None if effort == "none" else {"effort": effort})


def usage(read: int, written: int, thoughts: int | None, total: int | None = None) -> dict[str, Any]:
    details = None if thoughts is None else {"reasoning_tokens": thoughts}
    return {
        "prompt_tokens": read, "completion_tokens": written, "completion_tokens_details": details,
        "total_tokens": read + written if total is None else total,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("counted", "text", "written", "kind"),
    [
        (usage(11, 6_200, 6_000), "fine", 6_200, None),
        (usage(11, 6_257, 6_000), "fine", 6_257, "cut"),
        (usage(11, 6_200, None), "fine", 6_200, None),
        (usage(11, 6_200, 0), "fine", 6_200, None),  # it counts none, and thought nevertheless
        (usage(11, 6_200, 0), "word " * 300, 6_200, "cut"),
        (usage(11, 200, 0), "fine", 200, None),
        (usage(11, 6_200, None), f"{'word ' * 5_000}</think>fine", 6_200, None),
        (usage(11, 6_200, None), "word " * 300, 6_200, "cut"),
        (usage(11, 6_200, None), f"<think>{'word ' * 5_000}</think>fine", 6_200, None),
        (usage(11, 200, None, 6_211), "fine", 6_200, None),  # Gemini: thoughts are in the total alone
    ],
)
def test_thoughts_take_none_of_the_room_of_an_answer_and_it_none_of_theirs(counted, text, written, kind):
    (end,), _ = ask(answer(completion(text, usage=counted)), OpenAIModel)
    if kind is None:
        assert (end.output_tokens, end.text) == (written, text)
    else:
        assert (end.context["kind"], end.context["usage"].output_tokens) == (kind, written)
        assert f"{ANSWER} at most" in str(end)


def test_thoughts_of_claude_are_counted_apart():
    counted = {
        "input_tokens": 11,
        "output_tokens": 6_200,
        "output_tokens_details": {"thinking_tokens": 5_900},
    }
    (end,), _ = ask(answer(message(usage=counted)), AnthropicModel)
    assert end.context["kind"] == "cut"
    counted["output_tokens_details"] = {"thinking_tokens": 6_000}
    (end,), _ = ask(answer(message(usage=counted)), AnthropicModel)
    assert end.output_tokens == 6_200


@pytest.mark.parametrize(
    ("provider", "read", "is_cut"),
    [("ollama", 4_096, True), ("ollama", 11_000, False), ("ollama", 11, False), ("vllm", 4_096, False)],
)
def test_question_that_its_server_cut_is_no_answer_and_says_what_to_raise(provider, read, is_cut):
    async def requested() -> Any:
        async with serve(answer(completion(usage=usage(read, 7, None)))) as server:
            row = PROVIDERS[provider]
            model = OpenAIModel("claude-test", api_key="k", guard=TickGuard(), row=row, base_url=server.url)
            try:
                return await model.complete(
                    system="s" * 20_000, prompt=json.dumps("p" * 20_000), max_tokens=8, deadline_ms=4_000
                )
            except ModelError as error:
                return error
            finally:
                await model.close()

    end = asyncio.run(requested())
    assert isinstance(end, ModelError) is is_cut
    if is_cut:
        assert end.context["kind"] == "cut"
        assert "the server cut the question: raise its context (it read 4096 tokens of 40002 bytes)" in str(
            end
        )


@pytest.mark.parametrize(
    ("provider", "counts", "cut"),
    [
        ("ollama", (3_900, 4_096, 4_096, 4_096), (False, False, True, True)),
        ("ollama", (4_096, 4_096, 3_700, 4_096), (False, True, False, True)),
        ("ollama", (4_000, 4_000, 4_000, 4_000), (False,) * 4),  # no context is set to that
        ("ollama", (3_072, 3_200, 3_456, 3_584), (False,) * 4),  # dense text fills none
        ("vllm", (4_096, 4_096, 4_096, 4_096), (False,) * 4),
    ],
)
def test_question_cut_by_less_than_half_is_told_by_a_shorter_one_that_filled_the_same_context(
    provider, counts, cut
):
    sizes, ends = (12_000, 14_000, 16_000, 18_000), []

    async def scenario() -> None:
        questions = [answer(completion(usage=usage(count, 7, None))) for count in counts]
        async with serve(in_turn(*questions)) as server:
            row = PROVIDERS[provider]
            model = OpenAIModel("claude-test", api_key="k", guard=TickGuard(), row=row, base_url=server.url)
            for size in sizes:
                try:
                    await model.complete(system="s", prompt="p" * size, max_tokens=8, deadline_ms=4_000)
                    ends.append("")
                except ModelError as error:
                    ends.append(str(error))
            await model.close()

    asyncio.run(scenario())
    assert tuple(bool(end) for end in ends) == cut
    assert all("the server cut the question: raise its context" in end for end in ends if end)


@pytest.mark.parametrize(
    ("sizes", "counts", "shown", "cut"),
    [
        ((9_000, 9_100), (4_000, 4_000), answer(LOADED), (True, True)),
        ((9_000, 9_100), (3_999, 4_000), answer(LOADED), (False, True)),
        ((9_000, 9_100), (4_000, 4_000), answer(OTHER), (False, False)),
        ((9_000, 9_100), (4_000, 4_000), answer({"models": 3}), (False, False)),
        ((9_000, 9_100), (4_000, 4_000), hang, (False, False)),
        ((9_000, 16_000), (3_000, 3_500), None, (False, True)),  # 3 bytes a token, then 4.6
        ((9_000, 13_000), (3_000, 3_500), None, (False, False)),
    ],
)
def test_question_that_was_cut_is_told_by_the_servers_context_or_by_the_tokens_of_one_before(
    sizes, counts, shown, cut, monkeypatch
):
    monkeypatch.setattr(wire_model, "CONTEXT_S", 0.05)
    ends = list[bool]()

    async def scenario() -> list[str]:
        questions = [answer(completion(usage=usage(count, 7, None))) for count in counts]
        async with serve(in_turn(*questions), shown=shown) as server:
            address, row = f"{server.url}/v1", PROVIDERS["ollama"]
            model = OpenAIModel("claude-test", api_key="k", guard=TickGuard(), row=row, base_url=address)
            for size in sizes:
                try:
                    await model.complete(system="s", prompt="p" * size, max_tokens=8, deadline_ms=4_000)
                    ends.append(False)
                except ModelError as error:
                    ends.append("the server cut the question" in str(error))
            await model.close()
        return server.read

    assert asyncio.run(scenario()) == ["/api/ps"], "once in a run"
    assert tuple(ends) == cut


class TimedClaude(AnthropicModel):
    """Asked at moments that a test names."""

    moments: list[float] = []
    clock = staticmethod(lambda: TimedClaude.moments.pop(0))


@pytest.mark.parametrize(
    ("moments", "kept"),
    [
        ((0.0, 5.0, 250.0), (None, None, None)),
        ((0.0, 900.0, 901.0, 1_800.0), (None, "1h", None, "1h")),
        ((0.0, 900.0, 87_300.0, 173_700.0), (None, "1h", None, None)),
        ((0.0, 7_200.0, 14_400.0), (None, None, None)),
    ],
)
def test_constant_part_is_kept_for_an_hour_where_the_last_question_is_minutes_away_and_no_day(moments, kept):
    async def requested() -> list[Any]:
        async with serve(answer(message())) as server:
            model = TimedClaude("claude-test", api_key="k", guard=TickGuard(), base_url=server.url)
            for _ in moments:
                await model.complete(system="s" * 5_000, prompt="p", max_tokens=8, deadline_ms=4_000)
            await model.close()
        return [body["system"][0]["cache_control"] for _, body in server.requests]

    TimedClaude.moments = list(moments)
    assert [mark.get("ttl") for mark in asyncio.run(requested())] == list(kept)


def test_tokens_that_are_kept_for_an_hour_are_counted_apart():
    counted = {
        "input_tokens": 5, "output_tokens": 6, "cache_creation_input_tokens": 700,
        "cache_creation": {"ephemeral_1h_input_tokens": 600, "ephemeral_5m_input_tokens": 100},
    }  # fmt: skip
    (end,), _ = ask(answer(message(usage=counted)), AnthropicModel)
    assert (end.cache_write_tokens, end.cache_hour_tokens) == (100, 600)
