"""The judge of a worker reads evidence from the stored rows of a run that no process trades."""

import json
import os

from agents.planning.plan_reply import PROMPT as PLANNER
from prompts import load_prompt
from schemas.settings import Settings
from schemas.settings.planner import OWN
from schemas.vocabulary import RecommendedAction
from services.store import open_store
from tests.agents.language_models.wire_server import answer, message
from tests.worker.slow_worker.prepared import DAY, START, played, resolved, settings, watched
from tests.worker.wire import wire
from trading_core.clock import SimulatedClock
from worker.review.replanning import judge_models
from worker.slow_worker.slot_runner import RunOfSlots
from worker.slow_worker.wiring import evidence_of_store, threaded_reflection


async def recommending(request, episodes, definitions):
    """A report that recommends something for the playbook that was traded."""
    report = await threaded_reflection(settings())(request, episodes, definitions)
    wanted = {"action": RecommendedAction.RESEARCH_EXPERIMENT, "playbook_id": "mean_reversion"}
    questions = [item.model_copy(update=wanted) for item in report.recommendations]
    return report.model_copy(update={"recommendations": tuple(questions)})


async def judged(tmp_path):
    trades = [resolved(n, START + (n + 1) * DAY // 8) for n in range(60)]
    made = by_models(judge="rules")
    async with watched(tmp_path, trades, made, reflect=recommending) as one:
        for day in range(1, 12):
            await one.look_at(START + day * DAY)
        reports = [stored for stored in await one.reports() if stored.verdict is not None]
        reader = evidence_of_store(one.store, RunOfSlots(one.run_id, made))
        assert reader is not None
        return reports, [await reader(stored.report) for stored in reports]


def test_verdict_of_a_worker_names_what_was_read_and_the_gate_is_the_reports_own(tmp_path):
    stored, read = played(judged(tmp_path))
    assert stored
    for claim, evidence in zip(stored, read, strict=True):
        calls = [call for about in evidence for call in about.gathered.calls]
        gates = [call.reply.content for call in calls if call.method == "gate"]
        assert gates
        assert {gate["report_id"] for gate in gates} == {claim.report_id}
        found = [item for call in calls for item in (call.reply.content or {}).get("trades", ())]
        trades = [item["episode_id"] for item in found]
        assert set(trades) & set(claim.verdict.evidence_ids)


def test_worker_reads_nothing_where_the_planner_of_the_judge_is_off_or_the_judge_follows_rules(tmp_path):
    async def scenario():
        async with await open_store(f"sqlite:///{tmp_path}/store.db", create=True) as store:
            made = (by_models(judge="off"), settings(), by_models(judge="rules"))
            return [evidence_of_store(store, RunOfSlots("r0001", each)) is None for each in made]

    assert played(scenario()) == [True, True, False]


def by_models(llm=None, **planner):
    """Settings of a run whose judge is a model that plans what it reads."""
    return Settings.model_validate(
        {
            "high_level": {},
            "judge": {"replan": "model"},
            "planner": {"judge": "model", **planner},
            "llm": {
                "model": "anthropic/claude-test",
                "attempts": 1,
                "prices": [{"model": "claude-test", "input_usd": 1.0, "output_usd": 5.0}],
                **(llm or {}),
            },
        }
    )


async def judged_by_models(tmp_path, made, environment=os.environ):
    """The verdicts of a worker on the reports of a run with these settings, and what it told."""
    trades = [resolved(n, START + (n + 1) * DAY // 8) for n in range(60)]
    shown = []
    clock = SimulatedClock(START)

    def note(name, fields):
        shown.append((name, fields))

    async with (
        judge_models(made, ["AAPL"], environment, clock, note) as models,
        watched(tmp_path, trades, made, reflect=recommending, models=models) as one,
    ):
        for day in range(1, 12):
            await one.look_at(START + day * DAY)
        verdicts = [stored.verdict for stored in await one.reports() if stored.verdict is not None]
    return verdicts, shown


def planning(confidence):
    """A provider whose model plans to read the trades."""
    calls = [{"client": OWN, "method": "trades", "params": {}}]
    return answer(message(json.dumps({"confidence": confidence, "tools": calls})))


def test_judge_of_a_worker_asks_the_model_of_its_planner_at_the_runs_settings(tmp_path, monkeypatch):
    with wire(monkeypatch, planning(0.8)) as server:
        verdicts, shown = played(judged_by_models(tmp_path, by_models(enable_reflection=False)))
    questions = [body for _, body in server.requests if load_prompt(PLANNER).text[:40] in json.dumps(body)]
    assert verdicts
    assert len(questions) == len(verdicts)
    assert "mean_reversion" in json.dumps(questions[0])
    for verdict in verdicts:
        trades = [name for name in verdict.evidence_ids if name.startswith("e0")]
        assert len(trades) == 5
        assert verdict.fallback == "nothing_to_drop", "the judge has its model, and no action to weigh"
    assert shown == []
    (tmp_path / "unsure").mkdir()
    with wire(monkeypatch, planning(0.8)):
        unsure, _ = played(judged_by_models(tmp_path / "unsure", by_models(confidence_threshold=0.9)))
    assert not any(name.startswith("e0") for verdict in unsure for name in verdict.evidence_ids)


def test_judge_of_a_worker_is_told_no_symbol_of_an_anonymised_run(tmp_path, monkeypatch):
    payload = {}
    for name, hidden in (("open", False), ("hidden", True)):
        (tmp_path / name).mkdir()
        with wire(monkeypatch, planning(0.8)) as server:
            played(
                judged_by_models(tmp_path / name, by_models({"anonymise": hidden}, enable_reflection=False))
            )
        payload[name] = json.dumps([body for _, body in server.requests])
    # The examples of the prompt have symbols of their own, in every request.
    assert payload["hidden"].count("AAPL") < payload["open"].count("AAPL")
    assert "asset_1" in payload["hidden"]
    assert "asset_1" not in payload["open"]


def test_budget_of_a_worker_s_judge_begins_with_each_report(tmp_path, monkeypatch):
    once = {"per_event": {"calls": 2}}  # of which one is left to the judge
    with wire(monkeypatch, planning(0.8)) as server:
        verdicts, _ = played(judged_by_models(tmp_path, by_models(once, enable_reflection=False)))
    assert len(verdicts) > 1
    assert len(server.requests) == len(verdicts)


def test_judge_of_a_worker_without_a_key_says_so_and_rules_plan(tmp_path):
    verdicts, shown = played(judged_by_models(tmp_path, by_models(), {}))
    ((name, fields),) = shown
    assert name == "judge_without_model"
    assert "ANTHROPIC_API_KEY" in fields["reason"]
    for verdict in verdicts:
        assert any(name.startswith("e0") for name in verdict.evidence_ids)
        assert verdict.fallback == "no_model"
