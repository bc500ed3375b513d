"""What a run with models will take, before it and once its first questions are answered."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from prompts import load_prompt
from schemas.settings import LlmSettings
from schemas.settings.llm import RunLimits
from services.deliberation.forms import IMPROVEMENT, QUALITY_REWRITE
from services.high_level.report_sections import TOPICS
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.account import ModelAccount
from services.model_calls.budget import Spent
from tests.agents.language_models.wire_formats import FORMATS
from tests.agents.language_models.wire_server import WireServer, answer, events, message, stream
from tests.agents.strategies.questions import ABSTAIN, BECAUSE, HOLD, propose, question
from tests.services.deliberation.scripted import section
from tests.worker.shared_runs import fewer_bars, run_on
from tests.worker.test_judge_with_a_model import definitions
from tests.worker.test_judge_with_a_model import settings as judging_settings
from tests.worker.test_judge_with_a_model import world as judging_world
from tests.worker.test_model_recordings import Desk
from tests.worker.test_session_with_a_model import FULL, AnsweringModel
from tests.worker.test_texts_of_models import TRADES, rewritten
from tests.worker.wire import AGREES, wire
from trading_core.clock import SimulatedClock
from worker.models import Models, Overrides
from worker.runs.backtest import run_backtest
from worker.runs.dry_run import WITHOUT_LIMITS, count_questions, describe_questions
from worker.runs.forecast import AFTER, RunForecast

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

SLICE = ("2003-01-01", "2003-12-31")
SPAN = ("--from", SLICE[0], "--to", SLICE[1], "--symbols", "AAPL,IBM")
READER = ("--reflection", "full")
SEATS = ("strategist", "high_level_reflection", "judge_replanning", "evidence_planner", QUALITY_REWRITE)


def test_forecast_takes_the_rows_left_to_be_like_those_since_the_first_question_and_says_it_once():
    account = ModelAccount(LlmSettings(), JournalWriter(MemorySink()), SimulatedClock())
    lines, seconds = list[str](), [0.0]
    forecast = RunForecast(account, lines.append, lambda: seconds[0])
    forecast.look(100, 1_100)  # nothing is asked before the rules are warm
    account.ledger.charge(Spent(AFTER - 1, 0, 0.5), 0)
    forecast.look(150, 1_100)
    assert lines == []
    account.ledger.charge(Spent(1, 0, 0.5), 0)
    seconds[0] = 72.0
    forecast.look(200, 1_100)
    forecast.look(250, 1_100)
    assert account.document()["forecast"] == {
        "after_calls": 20, "calls": 200, "usd": pytest.approx(10.0), "hours": pytest.approx(0.2),
    }  # fmt: skip
    (line,) = lines
    assert "200, $10.00 and 12 minutes" in line


def test_run_says_what_it_will_take_and_a_dry_run_counts_the_questions_that_a_reader_who_agrees_is_asked():
    lines, reader, bars = list[str](), AnsweringModel(json.dumps(AGREES)), fewer_bars(*SLICE)
    own = Overrides(models=Models(fast=reader), say=lines.append)
    done = asyncio.run(run_backtest(FULL, bars, JournalWriter(MemorySink()), own=own))
    payload = done.document("r", "memory")["model"]
    assert payload["calls"] > AFTER
    assert len(lines) == 1
    assert f"after {payload['forecast']['after_calls']} questions" in lines[0]
    assert AFTER <= payload["forecast"]["after_calls"] < payload["forecast"]["calls"]
    bounded = FULL.model_copy(update={"llm": FULL.llm.model_copy(update={"per_run": RunLimits(calls=5)})})
    found = asyncio.run(count_questions(bounded, bars))
    assert found["by_prompt"]["policy_level_reflection"] == len(reader.prompts) > 20
    assert found["limits"] == {"calls": 5}
    assert found["usd"] > 0.0 < found["tokens"]
    assert "llm.per_run.calls = 5 would end the asking before" in describe_questions(found)


class Everyone:
    """Sits in every seat: plans, tells and scores as whoever asks needs it, and agrees with the rest."""

    def __init__(self) -> None:
        self.server = WireServer("")
        self.prompts = {load_prompt(name).system[:200]: name for name in SEATS}

    async def __call__(self, writer: asyncio.StreamWriter) -> None:
        body = self.server.requests[-1][1]
        system, prompt = FORMATS["anthropic"].system_of(body), FORMATS["anthropic"].prompt_of(body)
        text = json.dumps(self.reply(self.prompts.get(system[:200], ""), prompt))
        await (stream(events(text)) if body.get("stream") else answer(message(text)))(writer)

    def reply(self, name: str, prompt: str) -> dict[str, Any]:
        if name == "strategist":
            request = question(prompt)
            base = next((base for base in request.bases if base["origin"] != "refused"), None)
            if base is None:
                return ABSTAIN if request.task == "revise" else HOLD
            return propose(base["id"]) | {"because": [*base["plan"]["because"], *BECAUSE][::-1][:6]}
        if name == "high_level_reflection":
            return {"sections": [section(TRADES, topic=topic) for topic in TOPICS]}
        if name == "judge_replanning":
            return {"reasons": [], "comment": None, "keep": [f"a{number}" for number in range(1, 3)]}
        if name == "evidence_planner":
            return {"tools": [], "confidence": 1.0}
        return rewritten(100) if name == QUALITY_REWRITE else AGREES


def test_dry_run_counts_seat_by_seat_what_a_run_over_the_wire_asks(monkeypatch):
    base = judging_settings()
    settings = base.model_copy(
        update={
            "policy_loop": base.policy_loop.model_copy(update={"strategist": "model"}),
            "reflection": base.reflection.model_copy(update={"mode": "full"}),
            "planner": base.planner.model_copy(update={"judge": "model"}),
            "llm": base.llm.model_copy(update=WITHOUT_LIMITS),
        }
    )
    everyone = Everyone()
    with wire(monkeypatch, everyone) as server:
        everyone.server = server
        run = run_on(judging_world(), settings, definitions())
    request = {seat["prompt"]: seat["questions"] for seat in run.document["model"]["seats"]}
    request.pop(IMPROVEMENT)  # a correction: the count says that those come on top
    assert set(request) == {*SEATS, "policy_level_reflection", "text_critique"}
    counted = asyncio.run(count_questions(settings, judging_world(), definitions()))["by_prompt"]
    assert counted == pytest.approx(request, rel=0.05), (
        "plans for other reasons are looked at again more often"
    )


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name in [name for name in os.environ if name.startswith(("THINKTWICE_", "ANTHROPIC_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("THINKTWICE_LLM__MODEL", "anthropic/claude-haiku-5-5")
    monkeypatch.chdir(tmp_path)
    return Desk(tmp_path)


def test_dry_run_of_the_command_counts_without_a_key_and_stores_nothing(desk):
    found = json.loads(desk.run("backtest", *SPAN, *READER, "--dry-run", "--json").stdout)
    assert found["questions"] == sum(found["by_prompt"].values()) > AFTER
    assert desk.run("backtest", *SPAN, *READER, "--dry-run").stdout.startswith(f"{found['questions']:,} ")
    assert list(desk.folder.iterdir()) == []


def test_dry_run_of_settings_that_ask_no_model_is_refused_with_what_to_set(desk):
    result = desk.run("backtest", *SPAN, "--dry-run")
    assert result.exit_code == 2
    assert "--reflection full" in result.stderr
