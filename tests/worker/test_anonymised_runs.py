"""`llm.anonymise`: no question of a run names a symbol, a day or a price, and the run trades as it did."""

import asyncio
import json
import re
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest

from agents.judge_agent_client import JudgeAgentClient
from prompts import load_prompt
from schemas.judge import JudgeAction, ReplanVerdict
from schemas.reasons import PlanReason
from schemas.settings import ReflectionSettings, Settings
from schemas.slow_reflection import DeferredItem
from schemas.vocabulary import RecommendedAction
from services.high_level_reflection_service import HighLevelReflectionService
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.model_calls.wording import Wordings
from services.policy_checks.consolidation import consolidation_question, weigh_reply
from services.policy_checks.reasons import with_reasons
from tests.agents.strategies.questions import Question, tighten
from tests.services.policy_checks.plans import changed, right_request
from tests.services.store.artefacts import report, request
from tests.worker.asking_models import PERIOD, Asked, agreeing, agreeing_run, asking
from tests.worker.shared_runs import Run, fewer_bars, run_on
from tests.worker.test_session_over_the_wire import trades
from worker.bootstrap import assemble
from worker.models import Models, Overrides
from worker.runs.run_text import performance_parts
from worker.studies.ablation.worth import _unfit

pytestmark = pytest.mark.usefixtures("over_the_cap")  # a reader is asked where it may decide

BARS = fewer_bars(*PERIOD)
AGREES = json.dumps({"verdict": "pass", "comment": "Fine.", "findings": [], "deferred_needs": []})
ID = re.compile(r"\b[0-9a-f]{12,64}\b")
PRICE_DIGITS = 5


def full(anonymise: bool = True) -> Settings:
    patience = {"budget_event_ms": 20_000.0, "budget_heartbeat_ms": 20_000.0}
    reflection = ReflectionSettings.model_validate({"mode": "full", **patience})
    return asking(anonymise=anonymise).model_copy(update={"reflection": reflection})


@cache
def everybody(anonymise: bool = True) -> tuple[Run, Models]:
    """A run whose strategist, second reader and narrator are models."""
    models = Models(strategist=Asked(), fast=Asked(AGREES), slow=Asked("no narrative"))
    return run_on(BARS, full(anonymise), models=models), models


def names_what_it_hides(text: str, closes: set[str]) -> list[str]:
    """Symbols, years and closes of the run that a text holds outside of hashes."""
    plain = ID.sub("#", text)
    words = set(re.findall(r"[A-Z]{2,5}", plain)) & set(BARS.symbols)
    years = re.findall(r"(?<![\w.])(?:19|20)\d\d(?=-\d\d)|\d{18,19}", plain)
    numbers = set(re.findall(r"\d+\.\d+", plain))
    return [*words, *years, *(numbers & closes)]


def closes_of(run: Run) -> set[str]:
    """Closes as a question that hides nothing shows them, where their digits tell them from other numbers."""
    shown = (str(float(f"{row['snapshot']['close']:.6g}")) for row in run.of("policy_snapshot"))
    return {name for name in shown if len(name.replace(".", "")) >= PRICE_DIGITS}


@pytest.mark.parametrize("who", ["strategist", "fast"])
def test_question_of_an_anonymised_run_names_no_symbol_no_year_and_no_close(who: str) -> None:
    run, models = everybody()
    closes = closes_of(run)
    question = getattr(models, who).requests
    assert len(question) > 50
    assert len(closes) > 50
    for item in question:
        assert names_what_it_hides(item["prompt"], closes) == []
        assert names_what_it_hides(item["system"], closes) == []
    plain, by_name = everybody(False)
    shown = [names_what_it_hides(item["prompt"], closes_of(plain)) for item in getattr(by_name, who).requests]
    assert all(shown), "the same look finds them where nothing is hidden"


def test_anonymised_run_trades_as_the_same_run_that_hides_nothing() -> None:
    (hidden, model), (plain, by_name) = agreeing_run(anonymise=True), agreeing_run()
    assert len(model.requests) == len(by_name.requests) > 100
    assert trades(hidden) == trades(plain)
    assert len(trades(plain)) > 3
    assert hidden.document["errors"] == 0


def test_anonymised_questions_call_symbols_assets_and_the_decision_bar_t() -> None:
    _, model = agreeing_run(anonymise=True)
    names = {f"asset_{number}" for number, _ in enumerate(BARS.symbols, 1)}
    assert {question.snapshot["symbol"] for question in model.questions} <= names
    assert {question.snapshot["known_at"] for question in model.questions} == {"T"}
    assert {question.snapshot["close"] for question in model.questions} == {100.0}
    assert "tick_size" not in model.requests[0]["system"]


def test_stop_that_an_anonymised_model_tightens_lands_at_the_price_of_the_market() -> None:
    def halfway(question: Question) -> dict[str, Any]:
        position = question.snapshot["position"]
        if position is None:
            return agreeing(question)
        return tighten(0.5 * (position["stop"] + question.snapshot["close"]))

    run = run_on(BARS, asking(anonymise=True), models=Models(strategist=Asked(halfway)))
    snapshots = {snapshot["snapshot_hash"]: snapshot["snapshot"] for snapshot in run.of("policy_snapshot")}
    moved = [
        amendment
        for amendment in run.of("policy_amended")
        if amendment["amended"]["amendment"]["kind"] == "tighten"
    ]
    assert len(moved) > 3
    for entry in moved:
        seen = snapshots[entry["amended"]["snapshot_hash"]]
        wanted = 0.5 * (seen["position"]["stop"] + seen["close"])
        assert entry["amended"]["amendment"]["stop"] == pytest.approx(wanted, rel=1e-5)
        assert abs(wanted / 100.0 - 1.0) > 0.1, "a price of the disguise would be another one"


def test_stop_that_is_not_tighter_is_sent_back_in_the_prices_of_the_question() -> None:
    def looser(requested: Question) -> dict[str, Any]:
        position = requested.snapshot["position"]
        return agreeing(requested) if position is None else tighten(position["stop"] * 0.9)

    model = Asked(looser)
    run_on(BARS, asking(anonymise=True), models=Models(strategist=model))
    corrected = [question for question in model.questions if question.correction is not None]
    assert len(corrected) > 3
    for question in corrected:
        level = float(f"{question.snapshot['position']['stop'] * 0.9:.6g}")
        lines = [float(number) for number in re.findall(r"\d+\.?\d*", question.correction["why"])]  # type: ignore[index]
        assert lines == pytest.approx([level, question.snapshot["position"]["stop"], 100.0], rel=1e-4)


def test_second_reader_of_an_anonymised_question_sees_reasons_on_its_scale_and_no_price_of_the_market() -> (
    None
):
    bar = {"open": 50.0, "high": 50.11, "low": 49.37, "close": 50.0}
    requested = right_request()
    features = {**requested.snapshot.features, **bar}
    requested = changed(requested, {"snapshot.close": 50.0, "snapshot.features": features})
    because = (PlanReason(kind="feature", name="low"), PlanReason(kind="case_rate", name="all"))
    requested = changed(
        requested, {"proposal": with_reasons(requested.proposal, requested.snapshot, because)}
    )
    assert "low is 49.37" in requested.proposal.rationale
    wording = Wordings.of_run(("ELSE", requested.snapshot.symbol), anonymise=True).of(requested.snapshot)
    question = consolidation_question(load_prompt("policy_level_reflection"), requested, (), wording)
    assert "low is 98.74" in question
    assert "49.37" not in question
    objection = {"reason": 1, "code": "reason_too_weak"}
    reply = {"verdict": "revise", "comment": None, "findings": [], "objections": [objection]}
    added = weigh_reply(json.dumps(reply), requested, ())
    assert [finding.code for finding in added.findings] == ["model_lowered_verdict", "reason_too_weak"]


SHOWN = report(
    request(),
    narrative="AAPL lost from 2003-01-02 to 2003-05-30, as of 1075593600000000000 ns.",
    drift_findings=("AAPL drifted",),
    deferred_seen=("review AAPL",),
)


def test_narrator_of_an_anonymised_run_is_told_no_symbol_and_no_day() -> None:
    claim = {"kind": "value", "measure": "report_trades", "of": {}}
    sections = [{"topic": "window", "claims": [claim], "comment": "asset_one is in the run."}]
    narrator = Asked(json.dumps({"sections": sections}))
    models = Models(Asked(AGREES), narrator, Asked())
    made = assemble(full(), BARS, JournalWriter(MemorySink()), own=Overrides(models=models))
    service = made.slow_loop._reflection
    assert isinstance(service, HighLevelReflectionService)
    made.clock.advance(int(BARS.close_times[-1]))
    now = int(BARS.close_times[-1])
    deferred = DeferredItem(raised_at=now, symbol="AAPL", text="review AAPL", reflection_hash="h")
    question = request(now, deferred_items=(deferred,), episode_ids=(), new_episodes=0)
    shown = asyncio.run(service.reflect(question, (), ()))
    assert shown.narrative == "window:\n- The number of trades of the report was 0."
    (one,) = narrator.requests
    assert "review" not in one["prompt"], "a deferred need is carried unread"
    assert '"window":["T' in one["prompt"]
    assert names_what_it_hides(one["prompt"], set()) == []


def test_judge_of_an_anonymised_run_is_told_no_symbol_and_no_day(monkeypatch: pytest.MonkeyPatch) -> None:
    action = JudgeAction(kind="replan", reason="AAPL lost on 2003-05-30")
    verdict = ReplanVerdict(
        decision=RecommendedAction.HOLD, report_id="r", actions=(action,), reason="r", known_at=SHOWN.known_at
    )
    monkeypatch.setattr("agents.judge_agent_client.replan", lambda *_: verdict)
    judge = Asked(json.dumps({"reasons": [], "comment": None, "keep": ["a1"]}))
    settings = asking(anonymise=True)
    settings = settings.model_copy(update={"judge": settings.judge.model_copy(update={"replan": "model"})})
    models = Models(strategist=Asked(), judge=judge)
    made = assemble(settings, BARS, JournalWriter(MemorySink()), own=Overrides(models=models))
    client: JudgeAgentClient = made.slow_loop._judge  # type: ignore[assignment]
    decided = asyncio.run(client.replan(SHOWN, (), 0))
    assert decided.actions == (action,), "what it keeps is the action as it is"
    (one,) = judge.requests
    assert "asset_1 lost on T" in one["prompt"]
    assert names_what_it_hides(one["prompt"], set()) == []


def test_anonymised_run_has_its_headline_and_says_why() -> None:
    document = agreeing_run(anonymise=True)[0].document
    assert document["contamination"]["label"] == "anonymised"
    assert "llm.anonymise" in document["contamination"]["reason"]
    assert document["headline"]["window"] == "whole"
    assert document["headline"]["trades"] == document["performance"]["trades"]
    ((title, rows),) = performance_parts(document)
    assert (title, ("questions", document["contamination"]["reason"]) in rows) == ("Performance", True)
    plain = agreeing_run()[0].document
    assert (plain["contamination"]["label"], plain["headline"]) == ("unknown", None)
    sides: Any = [SimpleNamespace(document=entry) for entry in (document, plain)]
    assert _unfit(sides[:1]) is None
    assert str(_unfit(sides)).startswith("contaminated: no knowledge cutoff")


def test_anonymised_run_is_another_configuration() -> None:
    assert asking().config_hash == asking(anonymise=False).config_hash != asking(anonymise=True).config_hash
