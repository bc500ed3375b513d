"""One word names a model of any provider: runs over loopback, reasoning models and gateways among them."""

import asyncio
import json
from typing import Any

import numpy as np
import pytest

from schemas.errors import ConfigError, ModelError
from schemas.settings import LlmSettings, ReflectionSettings, Settings
from schemas.settings.llm import ModelPrice
from schemas.settings.providers import PROVIDERS, model_name
from services.policy_checks.consolidation import FORM
from tests.agents.language_models.wire_formats import FORMATS, completion
from tests.agents.language_models.wire_server import WireServer, answer, message, serve
from tests.worker.shared_runs import fewer_bars, run_on
from tests.worker.test_providers_in_runs import ProviderDesk, desk  # noqa: F401
from tests.worker.wire import AGREES, wire
from trading_core.tick_guard import TickGuard
from worker.models import check_models, model_address

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

SLICE = ("2003-01-01", "2003-06-30")
SPAN = ("--from", SLICE[0], "--to", SLICE[1])
BUDGETS = ("BUDGET_EVENT_MS", "BUDGET_HEARTBEAT_MS")
NAMES = {
    "anthropic": ("claude-haiku-5-5", "claude-haiku-5-5-20261101"),
    "openai": ("gpt-6-sol", "gpt-6-sol-2026-10-01"),
    "gemini": ("gemini-4-pro", "models/gemini-4-pro"),
    "ollama": ("qwen3:8b", "qwen3:8b"),
    "openrouter": ("vendor/x-sonnet-4.5:free", "vendor/x-4.5-sonnet-20250929"),
    "vllm": ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
    "some-where": ("own", "own"),
}


class Answering:
    """A server of a model that answers in a name of its own, and refuses what it is told to."""

    def __init__(self, provider: str, name: str, refuses: tuple[str, ...] = ()) -> None:
        self.wire = FORMATS[model_name(f"{provider}/x").row.wire]
        self.name, self.refuses = name, refuses
        self.server = WireServer("")

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        body = self.server.requests[-1][1]
        refused = next((name for name in self.refuses if name in body), None)
        text = f"Unsupported parameter: '{refused}' is not supported with this model."
        if refused is not None:
            await answer(self.wire.error("invalid_request_error", text), 400)(writer)
        else:
            await answer(self.wire.body(json.dumps(AGREES), model=self.name))(writer)


@pytest.mark.parametrize("provider", NAMES)
def test_model_of_any_provider_is_configured_by_one_word(provider, desk, monkeypatch):  # noqa: F811
    request, answers = NAMES[provider]
    handler = Answering(provider, answers)
    known = provider if provider in PROVIDERS else "anthropic"
    with wire(monkeypatch, handler, provider=known) as handler.server:
        for name in BUDGETS:
            monkeypatch.setenv(f"THINKTWICE_REFLECTION__{name}", "20000")
        word = f"{provider}/{request}" + ("" if provider in PROVIDERS else f"@{handler.server.url}/v1")
        words = ("--reflection", "full", "--model", word, "--json", *SPAN)
        done = desk.run("backtest", *words, "--llm", "record", "--cassette", "c.jsonl")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["model"]["outcomes"] == {"reply": document["model"]["calls"]}
    assert document["model"]["calls"] >= 3
    free = provider in ("ollama", "vllm")
    assert (document["model"]["usd"] == 0.0) is free
    assert document["model"]["unpriced"] == ([] if free or provider == "anthropic" else [request])
    assert {body["model"] for _, body in handler.server.requests} == {request}
    again = desk.run("backtest", *words, "--llm", "replay", "--cassette", "c.jsonl", "--db", "sqlite:///b.db")
    assert json.loads(again.stdout)["journal"]["head_hash"] == document["journal"]["head_hash"]
    assert desk.run("verify", "latest").exit_code == 0


def test_gateway_with_gpt_6_answers_every_question_wherever_its_address_stands(desk, monkeypatch):  # noqa: F811
    handler = Answering("openai", "gpt-6-sol", ("max_tokens", "temperature"))
    config = '[llm]\nmodel = "openai/gpt-6-sol"\n[deliberation.review]\nenabled = true\n'
    (desk.folder / "p.toml").write_text(config, "utf-8")
    with wire(monkeypatch, handler, provider="openai") as handler.server:
        url = handler.server.url
        for given in ({"THINKTWICE_LLM__BASE_URL": url}, {"OPENAI_BASE_URL": url}):
            with monkeypatch.context() as patch:
                for name, value in given.items():
                    patch.setenv(name, value)
                tape = f"c{len(given)}-{next(iter(given))}.jsonl"
                words = ("backtest", "p.toml", "--reflection", "full", "--json", *SPAN)
                done = desk.run(*words, "--llm", "record", "--cassette", tape, "--db", f"sqlite:///{tape}.db")
                document = json.loads(done.stdout)
                assert document["model"]["outcomes"].keys() == {"reply"}
                assert document["model"]["requests"] <= document["model"]["calls"] + 1


def test_what_the_first_refusal_taught_changes_no_questions_identity():
    """A server that refuses nothing is asked questions of the same keys; the records say what was sent."""

    def calls(refuses: tuple[str, ...]) -> list[dict[str, Any]]:
        handler = Answering("some-where", "own", refuses)
        with pytest.MonkeyPatch.context() as patch, wire(patch, handler) as handler.server:
            llm = LlmSettings(model=f"some-where/own@{handler.server.url}/v1")
            budgets = dict.fromkeys(map(str.lower, BUDGETS), 20_000.0)
            reflection = ReflectionSettings.model_validate({"mode": "full", **budgets})
            run = run_on(fewer_bars(*SLICE), Settings(reflection=reflection, llm=llm))
        return [row["call"] for row in run.of("model_call")]

    willing, strict = calls(()), calls(("max_tokens", "reasoning_effort"))
    assert [call["key"] for call in willing] == [call["key"] for call in strict]
    assert [call["requests"] for call in willing[:3]] == [1, 1, 1]
    assert [call["requests"] for call in strict[:3]] == [3, 1, 1]


def test_provider_that_nobody_knows_needs_an_address_and_says_where_it_is_given():
    full = ReflectionSettings(mode="full")
    unknown = Settings(reflection=full, llm=LlmSettings(model="openia/gpt-6"))
    with pytest.raises(ConfigError) as caught:
        check_models(unknown, {})
    text = str(caught.value)
    for part in ("'openia'", "llm.base_url = 'http://HOST/v1'", "openia/gpt-6@http://HOST/v1", "'openai'?"):
        assert part in text
    own = model_name("openia/gpt-6")
    assert model_address(unknown, {"OPENIA_BASE_URL": "http://h/v1"}, own) == "http://h/v1"
    given = Settings(llm=LlmSettings(model="openia/gpt-6", base_url="http://b/v1"))
    assert model_address(given, {"OPENIA_BASE_URL": "http://h/v1"}, own) == "http://b/v1"
    assert model_address(given, {}, model_name("openia/x@http://c/v1")) == "http://c/v1"
    other = model_name("anthropic/claude-x")
    assert model_address(given, {}, other) == PROVIDERS["anthropic"].address, "base_url is of llm.model alone"
    with pytest.raises(ConfigError, match=r"the address of 'x' is 'http:///'"):
        model_address(given, {}, model_name("openia/x@http:///"))


@pytest.mark.parametrize("provider", ["ollama", "vllm"])
def test_public_address_of_the_environment_makes_no_model_free(provider):
    public, near = (
        {f"{provider.upper()}_BASE_URL": address} for address in ("https://x.example.com/v1", "http://gpu/v1")
    )
    word = f"{provider}/qwen3:8b"
    free, request = LlmSettings(model=word), model_name(word)
    settings = Settings(reflection=ReflectionSettings(mode="full"), llm=free)
    with pytest.raises(ConfigError, match=r"_BASE_URL is 'https://x.example.com/v1', .* give the price"):
        check_models(settings, public)
    assert model_address(settings, near, request) == "http://gpu/v1"
    priced = LlmSettings(model=word, prices=(ModelPrice(model=word, input_usd=0.0, output_usd=0.0),))
    shown = settings.model_copy(update={"llm": priced})
    assert model_address(shown, public, request) == "https://x.example.com/v1"
    written = settings.model_copy(
        update={"llm": LlmSettings(model=word, base_url="https://x.example.com/v1")}
    )
    assert model_address(written, public, request) == "https://x.example.com/v1"
    assert written.llm.known_price(provider, "qwen3:8b") is None


THOUGHTS, REPLIES, ANSWER = (1_200.0, 6_000.0), 178, 256  # tokens: median and 99th percentile
Z_99 = 2.3263


def thoughts_of(seed: int) -> Any:
    """Tokens that a model thinks before each reply."""
    spread = np.log(THOUGHTS[1] / THOUGHTS[0]) / Z_99
    return np.random.default_rng(seed).lognormal(np.log(THOUGHTS[0]), spread, REPLIES).astype(int)


@pytest.mark.parametrize("provider", sorted(FORMATS))
def test_replies_of_a_reasoning_model_parse_to_the_closed_schema(provider):
    quoted = json.dumps(AGREES)
    length = len(quoted) // 3
    left = list(thoughts_of(46))

    async def scenario() -> int:
        seen = WireServer("")

        async def handle(writer: asyncio.StreamWriter) -> None:
            body, thought = seen.requests[-1][1], int(left.pop(0))
            bound = body.get("max_tokens") or body["max_completion_tokens"]
            cut = thought + length > bound
            written, text = min(bound, thought + length), "" if cut else quoted
            if provider == "openai":
                usage = {
                    "prompt_tokens": 900, "completion_tokens": written, "total_tokens": 900 + written,
                    "completion_tokens_details": {"reasoning_tokens": min(thought, written)},
                }  # fmt: skip
                body = completion(text, stop="max_tokens" if cut else "end_turn", usage=usage)
            else:
                stop = "max_tokens" if cut else "end_turn"
                usage = {"input_tokens": 900, "output_tokens": written}
                body = message(text, stop_reason=stop, usage=usage)
            await answer(body)(writer)

        parsed = 0
        async with serve(handle) as server:
            seen.requests = server.requests
            model = FORMATS[provider].model(
                "claude-test", api_key="key-of-a-test", guard=TickGuard(), base_url=server.url,
                thought_tokens=LlmSettings().thought_tokens, reply_format=FORM,
            )  # fmt: skip
            for _ in range(REPLIES):
                try:
                    reply = await model.complete(
                        system="s", prompt="p", max_tokens=ANSWER, deadline_ms=10_000
                    )
                except ModelError:
                    continue
                parsed += FORM.reads(reply.text)
            await model.close()
        return parsed

    assert asyncio.run(scenario()) / REPLIES >= 0.99
