"""Mode `full`: the model is really asked, may only lower a verdict, and its failure leaves the rules' one."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.language_models.cassette import Cassette, recorded_call
from prompts import load_prompt
from schemas.errors import CassetteMiss, ConfigError, ModelError
from schemas.settings import LlmSettings, PolicyLoopSettings, ReflectionSettings, Settings
from schemas.vocabulary import InvocationOutcome
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.language_model import ModelReply
from services.policy_checks.bases import SnapshotCheck
from services.policy_level_reflection_service import PROMPT
from services.store import NewRun, open_store
from tests.agents.strategies.questions import HOLD, propose, question, reason
from tests.worker.replays import backtest_replay
from tests.worker.shared_runs import embedded_bars, fewer_bars, run_on
from trading_core.tick_guard import TickGuard
from worker.bootstrap import assemble
from worker.models import Models, Overrides, configured_models
from worker.runs.backtest import run_backtest
from worker.runs.interrupts import RunInterrupted
from worker.runs.replay import ReplayReport
from worker.runs.store_run import record_run
from worker.session import Session, Timing

READ = pytest.mark.usefixtures("over_the_cap")  # a second reader is asked about every plan

FULL = Settings(
    reflection=ReflectionSettings(mode="full", budget_event_ms=60_000.0, budget_heartbeat_ms=60_000.0),
    llm=LlmSettings(model="anthropic/claude-haiku-5-5", breaker_failures=1_000),
)


class AnsweringModel:
    """Answers every request with the same text, or fails."""

    def __init__(self, text: str | None) -> None:
        self.text = text
        self.prompts: list[str] = []

    async def complete(self, *, system: str, prompt: str, max_tokens: int, deadline_ms: float) -> ModelReply:
        self.prompts.append(prompt)
        if self.text is None:
            raise ModelError("the wire is cut", retryable=True, kind="network")
        return ModelReply(self.text, "scripted", 1, 1, 0.1)


def run(model: AnsweringModel) -> Session:
    session = assemble(
        FULL,
        embedded_bars("2003-01-01", "2003-09-30"),
        JournalWriter(MemorySink()),
        own=Overrides(models=Models(fast=model)),
    )
    session.begin()

    async def drive() -> None:
        timing = Timing()
        while not session.engine.done:
            await session.step(timing)

    asyncio.run(drive())
    return session


@READ
def test_session_full_asks_the_model_and_a_failing_one_degrades_visibly() -> None:
    model = AnsweringModel(None)
    session = run(model)
    counters = session.policy_loop.counters
    assert len(model.prompts) > 5
    document = counters.document()
    assert document["reflections"]["degraded"] == len(model.prompts)
    kept = counters.invocations[InvocationOutcome.RAN]
    assert document["degraded_share"] == len(model.prompts) / (len(model.prompts) + kept)
    assert counters.reflections["pass"] > 0
    assert counters.errors == 0


@READ
def test_session_full_reply_that_is_no_reply_never_loosens_or_breaks_anything() -> None:
    session = run(AnsweringModel("I would simply buy everything."))
    counters = session.policy_loop.counters
    assert counters.finding_codes["model_reply_malformed"] > 0
    assert counters.errors == 0


@READ
def test_session_full_asks_about_plans_that_the_rules_pass_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SnapshotCheck, "findings", lambda *questions: ())  # every base is offered
    reply = json.dumps({"comment": "fine", "verdict": "pass", "findings": [], "deferred_needs": []})
    model = AnsweringModel(reply)
    request = run(model).policy_loop.counters
    assert request.reflections["revise"] > 0
    assert len(model.prompts) == request.finding_codes["model_agrees"] == request.reflections["pass"]


class CitingStrategist:
    """Takes the first plan on offer, every second time with a rate of cases among its reasons."""

    def __init__(self) -> None:
        self.plans = 0

    async def complete(self, *, prompt: str, **request: Any) -> ModelReply:
        requested = question(prompt)
        if requested.task == "manage" or not requested.bases:
            return ModelReply(json.dumps(HOLD), "scripted", 1, 1, 0.1)
        self.plans += 1
        base = requested.bases[-1 if requested.task == "revise" else 0]
        own = [reason(given["kind"], given["name"]) for given in base["plan"]["because"]]
        because = own + [reason("case_rate", "all")] * (self.plans % 2)
        reply = propose(base["id"], because=because)
        return ModelReply(json.dumps(reply), "scripted", 1, 1, 0.1)


def named(part: str, prompt: str) -> Any:
    """What stands in a part of a second reader's prompt."""
    before = load_prompt(PROMPT).text.partition("{{" + part + "}}")[0].splitlines()[-1] + "\n"
    return json.JSONDecoder().raw_decode(prompt.partition(before)[2])[0]


@pytest.mark.parametrize(("strategist", "end"), [("rules", "2005-12-31"), ("model", "2004-06-30")])
def test_session_full_question_to_a_reader_names_something_that_its_verdict_may_rest_on(strategist, end):
    model = AnsweringModel(json.dumps({"verdict": "pass", "comment": "fine", "findings": []}))
    settings = FULL.model_copy(update={"policy_loop": PolicyLoopSettings(strategist=strategist)})
    thinking = None if strategist == "rules" else CitingStrategist()
    done = run_on(embedded_bars("2003-01-01", end), settings, models=Models(fast=model, strategist=thinking))
    for prompt in model.prompts:
        found, because = named("findings", prompt), named("reasons", prompt)
        grounds = [item for item in found if item["severity"] != "info"]
        assert grounds or any(reason["holds"] is not True for reason in because)
    counted = done.document["policy_loop"]["reader"]
    assert counted["asked"] == len(model.prompts) > 0
    assert counted["nothing_to_decide"] > 0
    passed = done.document["policy_loop"]["reflections"]["pass"]
    assert counted["asked"] + counted["nothing_to_decide"] == passed


@READ
def test_session_full_model_that_only_cites_what_informs_changes_nothing() -> None:
    cited = ["memory_insufficient"]
    session = run(AnsweringModel(json.dumps({"comment": "no", "verdict": "revise", "findings": cited})))
    counters = session.policy_loop.counters
    assert counters.finding_codes["model_lowered_without_evidence"] > 0
    assert counters.finding_codes["model_lowered_verdict"] == 0


@READ
def test_session_full_model_that_objects_to_reasons_that_rules_found_true_changes_nothing() -> None:
    objections = [{"reason": place, "code": "reason_too_weak"} for place in range(3)]
    reply = {"comment": "no", "verdict": "revise", "findings": [], "objections": objections}
    session = run(AnsweringModel(json.dumps(reply)))
    counters = session.policy_loop.counters
    assert counters.finding_codes["model_lowered_without_evidence"] > 0
    assert counters.finding_codes["objection_overruled"] > 0
    assert counters.finding_codes["model_lowered_verdict"] == counters.finding_codes["reason_too_weak"] == 0
    assert counters.outcomes["frozen"] > 0


def test_session_full_without_a_key_says_what_to_set() -> None:
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        configured_models(FULL, TickGuard(), {})


def test_session_deterministic_has_no_model() -> None:
    assert configured_models(Settings(), TickGuard(), {"ANTHROPIC_API_KEY": "k"}) == Models()


class ClosingModel(AnsweringModel):
    """Knows whether its connections were closed."""

    closed = False

    async def close(self) -> None:
        self.closed = True


def test_run_closes_its_models_at_the_end() -> None:
    fast, slow = ClosingModel("no"), ClosingModel("no")
    run_on(embedded_bars("2003-01-01", "2003-01-31"), FULL, models=Models(fast, slow))
    assert fast.closed
    assert slow.closed


@READ
def test_report_of_a_model_is_replayed_and_one_that_was_not_recorded_ends_the_run() -> None:
    bars = fewer_bars("2003-01-01", "2005-06-30")
    slow = AnsweringModel("no narrative")
    first = run_on(bars, FULL, models=Models(AnsweringModel("no verdict"), slow))
    assert len(slow.prompts) == first.document["high_level"]["runs"] > 0
    questions = [row for row in first.rows if row.kind == "model_call"]
    assert {row.symbol is None for row in questions if "high_level_reflection" in row.payload} == {True}
    assert {row.symbol is None for row in questions if "policy_level_reflection" in row.payload} == {False}
    calls = [recorded_call(payload, None) for payload in first.of("model_call")]
    assert run_on(bars, FULL, cassette=Cassette("all", calls)).rows[-1].hash == first.rows[-1].hash
    without = [call for call in calls if call.prompt != "high_level_reflection"]
    with pytest.raises(CassetteMiss, match=r"prompts/high_level_reflection\.txt"):
        run_on(bars, FULL, cassette=Cassette("fast only", without))


class InterruptedModel(AnsweringModel):
    """Answers a few times; then the operator presses Ctrl-C while it is asked."""

    async def complete(self, **request: Any) -> ModelReply:
        if len(self.prompts) == 3:
            raise KeyboardInterrupt
        return await super().complete(**request)


@READ
def test_run_interrupted_while_a_model_was_asked_replays_up_to_that_question(tmp_path: Path) -> None:
    bars = embedded_bars("2003-01-01", "2003-09-30")
    new = NewRun("x", 0, "backtest", FULL.config_hash, FULL.payload(), {"sha256": bars.sha256}, {})
    runner: Any = partial(run_backtest, own=Overrides(Models(InterruptedModel("no verdict"))))

    async def interrupted_and_replayed() -> ReplayReport:
        async with await open_store(f"sqlite:///{tmp_path}/t.db", create=True) as store:
            with pytest.raises(RunInterrupted):
                await record_run(runner, FULL, bars, store, new)
            record = await store.runs.find("latest")
            return await backtest_replay(FULL, bars, store, record).compare()

    report = asyncio.run(interrupted_and_replayed())
    assert report.ok, report
    assert report.compared == report.stored > 10
