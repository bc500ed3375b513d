"""Whole runs over each provider's wire: recorded, verified, replayed, by the rules where the model fails."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from schemas.settings import LlmSettings, ReflectionSettings, Settings
from schemas.settings.llm import ModelPrice
from tests.agents.language_models.wire_formats import FORMATS, saying
from tests.agents.language_models.wire_server import Handler, answer, by_turns, in_turn
from tests.agents.strategies.questions import propose
from tests.worker.shared_runs import Run, fewer_bars, run_on
from tests.worker.strategist_wire import StrategistOnTheWire, first_plan
from tests.worker.test_model_recordings import Desk
from tests.worker.test_session_over_the_wire import NEVER_OPENS, trades
from tests.worker.wire import AGREES, wire
from worker.runs.model_silence import is_silent, model_silence

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

EVERY = pytest.mark.parametrize("provider", sorted(FORMATS))
PRICES = (ModelPrice(model="claude-test", input_usd=0.0, output_usd=0.0),)
SLICE = ("2003-01-01", "2003-09-30")
CONFIG = """
[llm]
model = "{provider}/claude-test"
attempts = 1
prices = [{{ model = "claude-test", input_usd = 0.0, output_usd = 0.0 }}]
[reflection]
budget_event_ms = 20_000
budget_heartbeat_ms = 20_000
"""
UNCRITICISED = "[deliberation.pass]\nenabled = false\n"
SPAN = ("--from", "2003-01-01", "--to", "2003-09-30")
ALONE = ("--symbols", "IBM")  # no two symbols ask at one bar
TAPE = ("--cassette", "c.jsonl")


class ProviderDesk(Desk):
    """Commands whose models are asked over one provider's wire."""

    def backtest(
        self, *words: str, budget: float = 20_000.0, provider: str = "anthropic", more: str = ""
    ) -> Any:
        (self.folder / "p.toml").write_text(CONFIG.format(provider=provider) + more, "utf-8")
        return self.run("backtest", "p.toml", *SPAN, *words)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProviderDesk:
    for name in [name for name in os.environ if name.startswith(("THINKTWICE_", "ANTHROPIC_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    return ProviderDesk(tmp_path)


def full(provider: str, **llm: Any) -> Settings:
    budgets = {"budget_event_ms": 20_000.0, "budget_heartbeat_ms": 20_000.0}
    return Settings(
        reflection=ReflectionSettings.model_validate({"mode": "full", **budgets}),
        llm=LlmSettings.model_validate({"model": f"{provider}/claude-test", "prices": PRICES} | llm),
    )


@pytest.fixture(scope="module")
def by_rules() -> Run:
    return run_on(fewer_bars(*SLICE), Settings())


@EVERY
def test_strategist_and_second_reader_of_a_provider_verify_and_replay_to_the_same_rows(
    provider, desk, monkeypatch
):
    strategist = StrategistOnTheWire(first_plan, provider)
    both = ("--strategist", "model", "--reflection", "full", "--json")
    streamed = FORMATS[provider].streamed("no narrative")
    with wire(monkeypatch, strategist, streamed, provider) as server:
        strategist.server = server
        done = desk.backtest(*both, "--llm", "record", *TAPE, provider=provider)
    assert done.exit_code == 0, done.output
    first = json.loads(done.stdout)
    assert {FORMATS[provider].form_of(body) is not None for _, body in server.requests} == {True}
    assert first["model"]["outcomes"] == {"reply": first["model"]["calls"]}
    assert first["strategist"]["answers"].keys() >= {"claude-test"}
    assert desk.run("verify", "latest").exit_code == 0
    other = ("--db", "sqlite:///other.db")
    again = desk.backtest(*both, "--llm", "replay", *TAPE, *other, provider=provider)
    assert json.loads(again.stdout)["journal"]["head_hash"] == first["journal"]["head_hash"]


@EVERY
def test_orders_under_a_misbehaving_model_of_a_provider_are_those_of_the_rules(
    provider, by_rules, monkeypatch
):
    """Each failure after the other, again and again."""
    shown = FORMATS[provider]
    handlers = (
        saying(shown, "I would buy everything."),
        saying(shown, "no", stop="refusal"),
        saying(shown, "half", stop="max_tokens"),
        answer(shown.error("api_error", "x"), 500),
        saying(shown, json.dumps(AGREES), model="another"),
    )
    with wire(monkeypatch, by_turns(*handlers), provider=provider):
        run = run_on(fewer_bars(*SLICE), full(provider, attempts=1, breaker_failures=NEVER_OPENS))
    assert run.document["model"]["calls"] > 3 * len(handlers)
    assert run.document["model"]["outcomes"].keys() == {"reply", "refusal", "cut", "server", "wrong_model"}
    assert run.document["errors"] == 0
    assert trades(run) == trades(by_rules)


@EVERY
def test_replies_that_cannot_be_read_open_the_breaker_of_their_prompt(provider, monkeypatch):
    with wire(monkeypatch, saying(FORMATS[provider], "I would buy everything."), provider=provider):
        run = run_on(fewer_bars(*SLICE), full(provider, breaker_failures=3, breaker_pause=4))
    first = run.of("model_breaker")[0]
    assert (first["prompt"], first["change"], first["outcome"]) == (
        "policy_level_reflection", "opened", "unusable",
    )  # fmt: skip
    assert run.document["model"]["unusable"] == run.document["model"]["outcomes"]["reply"] >= 3


@EVERY
@pytest.mark.parametrize("key", ["x", "e", "anthropic"])
def test_run_whose_key_is_any_word_of_a_server_that_wants_none_has_its_replies_read(
    key, provider, by_rules, monkeypatch
):
    with wire(monkeypatch, saying(FORMATS[provider], json.dumps(AGREES)), provider=provider, key=key):
        run = run_on(fewer_bars(*SLICE), full(provider))
    calls = [row["call"] for row in run.of("model_call")]
    assert len(calls) > 3
    assert {(call["outcome"], call["text"]) for call in calls} == {("reply", json.dumps(AGREES))}
    assert run.document["policy_loop"]["degraded_share"] == 0.0


@EVERY
@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_start_whose_first_question_is_turned_away_stops_with_exit_2_and_no_key(
    status, provider, desk, monkeypatch
):
    key = "sk-test-key-0123"
    handler = answer(FORMATS[provider].error("some_error", f"you sent {key}"), status)
    with wire(monkeypatch, handler, provider=provider, key=key) as server:
        done = desk.backtest("--reflection", "full", provider=provider)
    assert done.exit_code == 2, done.output
    assert f"HTTP {status} some_error 'you sent ***'" in done.stderr
    assert key not in done.output
    assert len(server.requests) == (2 if status == 400 else 1)  # a 400 may mean the closed form
    assert key.encode() not in (desk.folder / "thinktwice.db").read_bytes()


@EVERY
def test_run_whose_model_never_answered_says_so_first_and_exits_1(provider, desk, monkeypatch):
    shown = FORMATS[provider]
    later = in_turn(
        answer(shown.error("api_error", "x"), 500), answer(shown.error("authentication_error", "x"), 401)
    )
    with wire(monkeypatch, later, provider=provider):
        done = desk.backtest("--reflection", "full", provider=provider)
    assert done.exit_code == 1, done.output
    first = done.stdout.splitlines()[0]
    assert first.startswith("the second reader answered 0 of ")
    assert "HTTP 401" in first
    assert "thinktwice: the model is lost at " in done.stderr
    assert "llm.on_lost = 'rules' lets the rules go on alone" in done.stderr
    assert "no headline" not in done.stdout, "a model that never answered contaminates nothing"


@EVERY
@pytest.mark.parametrize("on_lost", [None, "stop", "rules"])
def test_backtest_whose_model_is_lost_half_way_ends_there_and_verifies_or_goes_on_by_rules(
    on_lost, provider, desk, monkeypatch
):
    shown = FORMATS[provider]
    broke = answer(shown.error("invalid_request_error", "credit balance is too low"), 400)
    later = in_turn(*[saying(shown, json.dumps(AGREES))] * 4, broke)
    if on_lost is not None:
        monkeypatch.setenv("THINKTWICE_LLM__ON_LOST", on_lost)
    with wire(monkeypatch, later, provider=provider) as server:
        done = desk.backtest(*ALONE, "--reflection", "full", "--json", provider=provider)
    document = json.loads(done.stdout)
    assert document["model"]["lost"]
    assert len(server.requests) == 4 + 3, "the third in a row is the last that is asked"
    silence = model_silence(document)
    assert silence is not None
    assert silence.startswith("the second reader answered 4 of ")
    assert "HTTP 400" in silence
    assert "credit balance is too low" in silence
    ended = on_lost != "rules"
    assert (done.exit_code, document["ended_early"] is not None) == (int(ended), ended), done.stderr
    last = document["data"]["end"][:10]
    assert last < "2003-09-01" if ended else last == "2003-09-30", (
        "bars behind the loss are traded by rules alone"
    )
    assert ("the model is lost at " if ended else f"{silence}; the rules decided the others") in done.stderr
    verified = desk.run("verify", "latest")
    assert verified.exit_code == 0
    assert ("the model is lost at " in verified.stdout) is ended
    assert ("the model is lost at " in desk.run("status").stdout) is ended
    (listed,) = json.loads(desk.run("runs", "--json").stdout)
    assert (listed["status"], listed["ended_early"]) == ("finished", "model_lost" if ended else None)
    assert ("finished (model_lost)" in desk.run("runs").stdout) is ended


RETRY_INFO, QUOTA = "type.googleapis.com/google.rpc.RetryInfo", "type.googleapis.com/google.rpc.QuotaFailure"


def google(*details: dict[str, Any]) -> Handler:
    """Google's answer to a question for which a quota has no room, in the list that its gateway makes."""
    words = "You exceeded your current quota, please check your plan and billing details."
    error = {"code": 429, "message": words, "status": "RESOURCE_EXHAUSTED", "details": list(details)}
    return answer(json.dumps([{"error": error}]).encode(), 429)


def openai_says(name: str, words: str, **headers: str) -> Handler:
    return answer(
        {"error": {"message": words, "type": name, "param": None, "code": name}},
        429,
        {key.replace("_", "-"): value for key, value in headers.items()},
    )


SPENT = {
    "openai": ("openai", openai_says("insufficient_quota", "You exceeded your current quota")),
    "anthropic": (
        "anthropic",
        answer(FORMATS["anthropic"].error("invalid_request_error", "Your credit balance is too low"), 400),
    ),
    "google_by_day": ("openai", google({"@type": QUOTA, "violations": []})),
    "google_by_month": ("openai", google({"@type": RETRY_INFO, "retryDelay": "86000s"})),
    "openrouter": ("openai", answer({"error": {"code": 402, "message": "Insufficient credits"}}, 402)),
}


@pytest.mark.parametrize("name", SPENT)
def test_backtest_whose_account_is_spent_half_way_ends_after_three_questions_in_the_servers_words(
    name, desk, monkeypatch
):
    provider, spent = SPENT[name]
    with wire(
        monkeypatch, in_turn(*[saying(FORMATS[provider], json.dumps(AGREES))] * 4, spent), provider=provider
    ) as server:
        done = desk.backtest(*ALONE, "--reflection", "full", "--json", provider=provider)
    model = json.loads(done.stdout)["model"]
    assert (done.exit_code, model["lost"], len(server.requests)) == (1, True, 4 + 3), done.stderr
    assert re.search("credit|quota", done.stderr)


@pytest.mark.parametrize(
    "throttled",
    [
        openai_says("rate_limit_exceeded", "Rate limit reached", retry_after_ms="1"),
        openai_says("rate_limit_exceeded", "Rate limit reached", retry_after="0.001"),
        google({"@type": RETRY_INFO, "retryDelay": "0.001s"}),
    ],
)
def test_backtest_that_is_throttled_for_a_while_goes_on_with_its_model(throttled, desk, monkeypatch):
    monkeypatch.setenv("THINKTWICE_LLM__ATTEMPTS", "2")
    good = saying(FORMATS["openai"], json.dumps(AGREES))
    with wire(monkeypatch, in_turn(*[throttled] * 9, good), provider="openai"):
        done = desk.backtest("--reflection", "full", "--json", provider="openai")
    model = json.loads(done.stdout)["model"]
    assert (done.exit_code, model["lost"]) == (0, False), done.stderr
    assert (model["outcomes"]["throttled"], model["requests"]) == (4, model["calls"] + 5)


@EVERY
def test_run_whose_model_gave_no_usable_answer_says_so_first_and_exits_1(provider, desk, monkeypatch):
    shown = FORMATS[provider]
    with wire(monkeypatch, saying(shown, "I would rather wait and see."), provider=provider):
        done = desk.backtest("--reflection", "full", provider=provider)
    assert done.exit_code == 1, done.output
    first = done.stdout.splitlines()[0]
    assert first.startswith("the second reader answered 0 of ")
    assert first.endswith(" questions: its reply could not be read")
    assert "the rules decided alone" in done.stderr


@EVERY
def test_run_whose_strategist_gave_no_usable_answer_says_so_although_its_reader_answers(
    provider, desk, monkeypatch
):
    """The replies are a second reader's: of use to it, and of none to the strategist."""
    with wire(monkeypatch, saying(FORMATS[provider], json.dumps(AGREES)), provider=provider):
        done = desk.backtest("--reflection", "full", "--strategist", "model", provider=provider)
    assert done.exit_code == 1, done.output
    first = done.stdout.splitlines()[0]
    assert first.startswith("the strategist answered 0 of ")
    assert first.endswith(" questions: its reply could not be read")


def test_run_whose_rules_answered_for_a_tenth_of_its_strategists_replies_says_so_first(desk, monkeypatch):
    """Every reply parses, so none counts as unreadable; each second plan names a base that nobody offered."""
    questions: list[Any] = []

    def decide(question: Any) -> dict[str, Any] | str:
        if question.task != "choose":
            return first_plan(question)
        questions.append(question)
        return first_plan(question) if len(questions) % 3 == 1 else propose("0" * 16)

    strategist = StrategistOnTheWire(decide)
    with wire(monkeypatch, strategist) as server:
        strategist.server = server
        done = desk.backtest("--strategist", "model", "--json", more=UNCRITICISED)
    document = json.loads(done.stdout)
    assert document["model"]["unusable"] == 0
    by_rules = document["strategist"]["fallbacks"]["unknown_base"]
    silence = model_silence(document)
    assert silence is not None
    assert silence.startswith("the strategist gave a usable answer to ")
    assert f"unknown_base {by_rules}" in silence
    assert f"{silence}; the rules decided the others" in done.stderr


def seat(prompt: str, answered: int, questions: int, why: str | None = None, limited: int = 0) -> Any:
    last = "2004-05-03T00:00:00+00:00" if answered else None
    return {
        "model": "m", "prompt": prompt, "questions": questions, "answered": answered, "last_reply": last,
        "limited": limited, "why": why,
    }  # fmt: skip


def document_of(seats: list[Any], *, strategist: Any = None, requested: int = 0, **unused: int) -> Any:
    return {
        "model": {"seats": seats},
        "strategist": strategist or {"answers": {}, "fallbacks": {}},
        "policy_loop": {"reader": {"asked": requested, "nothing_to_decide": 0, "unused": unused}},
    }


def test_seats_that_were_not_answered_are_named_the_worst_first_texts_last_and_no_other():
    seats = [
        seat("text_critique", 0, 7, "HTTP 500"),
        seat("judge_replanning", 4, 5, "no whole reply within 500 ms"),
        seat("policy_level_reflection", 3, 40, "HTTP 400 credit balance is too low"),
        seat("strategist", 91, 100, "HTTP 500"),
    ]
    document = document_of(seats, strategist={"answers": {"m": 91, "rules": 9}, "fallbacks": {"server": 9}})
    assert model_silence(document) == (
        "the second reader answered 3 of 40 questions, the last on 2004-05-03: HTTP 400 credit balance is "
        "too low; the judge answered 4 of 5 questions, the last on 2004-05-03: no whole reply within 500 ms; "
        "text_critique answered 0 of 7 questions: HTTP 500"
    )
    seats[:] = seats[3:]
    assert model_silence(document) is None


def test_text_that_limits_alone_left_unanswered_is_no_model_that_failed():
    cut = document_of([seat("text_critique", 2, 7, "llm.per_event.calls = 10", limited=5)])
    assert model_silence(cut) is None
    failed = document_of([seat("text_critique", 2, 7, "HTTP 500", limited=4)])
    assert model_silence(failed) is not None
    reader = document_of([seat("policy_level_reflection", 2, 7, "llm.per_run.calls = 2", limited=5)])
    assert model_silence(reader) is not None, "a limit that took a seat that decides is said"


@pytest.mark.parametrize(("void", "silent"), [(40, True), (10, False)])
def test_reader_whose_verdicts_were_void_is_named_first_and_silent_where_all_were(void, silent):
    document = document_of(
        [seat("policy_level_reflection", 40, 40), seat("high_level_reflection", 3, 3)],
        requested=40, model_lowered_without_evidence=void,
    )  # fmt: skip
    assert model_silence(document) == (
        f"the second reader gave a usable answer to {40 - void} of 40 questions: "
        f"model_lowered_without_evidence {void}"
    )
    assert is_silent(document) is silent


@pytest.mark.parametrize(("why", "shown"), [("unknown_base", True), ("position_open", False)])
def test_tenth_of_the_answers_by_rules_counts_only_where_a_model_was_needed(why, shown):
    strategist = {"answers": {"m": 80, "rules": 20}, "fallbacks": {why: 10, "nothing_to_choose": 10}}
    document = document_of([seat("strategist", 100, 100)], strategist=strategist)
    text = f"the strategist gave a usable answer to 80 of 90 questions: {why} 10"
    assert model_silence(document) == (text if shown else None)


def test_run_whose_readers_verdicts_rest_on_nothing_says_so_first_and_exits_1(desk, monkeypatch):
    """Every reply parses, and each names a finding that there is not."""
    void = json.dumps(AGREES | {"verdict": "revise", "findings": ["no_such_finding"]})
    with wire(monkeypatch, saying(FORMATS["anthropic"], void)):
        done = desk.backtest("--reflection", "full")
    assert done.exit_code == 1, done.output
    first = done.stdout.splitlines()[0]
    assert first.startswith("the second reader gave a usable answer to 0 of ")
    assert "model_cited_unknown_finding" in first
    assert "the rules decided alone" in done.stderr


def test_first_line_names_the_reason_that_took_most_of_the_unanswered_questions(desk, monkeypatch):
    """Failures, then answers, and a limit that ends the asking."""
    shown = FORMATS["anthropic"]
    fault, good = answer(shown.error("api_error", "a passing fault"), 500), saying(shown, json.dumps(AGREES))
    handler = in_turn(good, fault, fault, good)
    monkeypatch.setenv("THINKTWICE_LLM__PER_RUN__CALLS", "6")
    monkeypatch.setenv("THINKTWICE_LLM__AT_ONCE", "1")
    with wire(monkeypatch, handler):
        done = desk.backtest("--reflection", "full", "--json")
    document = json.loads(done.stdout)
    (reader,) = document["model"]["seats"]
    assert 0 < reader["unanswered"]["server 500"] < reader["unanswered"]["run_calls"] == reader["limited"]
    silence = model_silence(document)
    assert silence is not None
    assert "llm.per_run.calls = 6" in silence
    assert "a passing fault" not in silence
