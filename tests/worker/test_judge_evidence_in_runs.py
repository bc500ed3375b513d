"""The judge of a run that asks a model reads before its verdict, from the own rows of the run."""

import asyncio
import json
from functools import cache

import pytest

from agents.planning.run_evidence import RunEvidence
from schemas.errors import ConfigError
from schemas.settings import JudgeSettings, LlmSettings, PlannerSettings, Settings
from schemas.settings.planner import OWN, ToolServer
from services.journal.index import Event, JournalIndex
from services.journal.references import check_references
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store import NewRun, open_store
from tests.agents.planning.planned import Says
from tests.worker.replays import backtest_replay
from tests.worker.shared_runs import embedded_run, losing_run, run_on
from tests.worker.test_judge_with_a_model import Scripted as Keeps
from tests.worker.test_judge_with_a_model import definitions as judging_books
from tests.worker.test_judge_with_a_model import settings as judging_settings
from tests.worker.test_judge_with_a_model import world as judging_world
from worker.bootstrap import assemble
from worker.feeds.sample_data.worlds import make_world
from worker.models import Models, Overrides
from worker.runs.backtest import run_backtest
from worker.runs.store_run import record_run
from worker.studies.scenarios import planted_books

KINDS = ("evidence_plan", "evidence_call")


def short_world():
    """The first reports of the losing world, quick enough to repeat."""
    return make_world("reverting", seed=3, bars=500, symbols=6)


def judged_run(planner="rules", judge="model"):
    """One whose judge drops what is recommended, so that the next report recommends it again."""
    models = Models(judge=Keeps({"reasons": [], "comment": None, "keep": []}) if judge == "model" else None)
    return run_on(short_world(), quick(planner, judge), planted_books(), models=models)


@cache
def short_run():
    return judged_run()


def quick(planner="rules", judge="model"):
    return judging_settings(judge).model_copy(update={"planner": PlannerSettings(judge=planner)})


def verdicts(run):
    return [verdict["verdict"] for verdict in run.of("replan_verdict")]


def test_verdict_of_a_run_names_what_its_calls_read():
    assert Settings().planner.judge == "rules"
    run = short_run()
    plans = {entry["evidence_id"]: entry for entry in run.of("evidence_plan")}
    read: dict[str, list[str]] = {}
    for call in run.of("evidence_call"):
        read.setdefault(plans[call["evidence_id"]]["report_id"], []).extend(call["ids"])
    acting = [verdict for verdict in verdicts(run) if verdict["actions"] or verdict["refused"]]
    for verdict in acting:
        ids = read[verdict["report_id"]]
        assert len(ids) > 5
        assert set(ids) <= set(verdict["evidence_ids"])
        assert verdict["evidence_ids"][0] == verdict["report_id"]
    assert {plan["report_id"] for plan in plans.values()} == {verdict["report_id"] for verdict in acting}
    assert len(acting) > 1


def test_run_whose_judge_follows_rules_reads_nothing_for_it_and_decides_what_the_rules_decide():
    run = judged_run(judge="rules")
    assert run.of(*KINDS) == []
    assert any(verdict["actions"] for verdict in verdicts(run))
    assert embedded_run().of(*KINDS) == []


def test_every_id_and_row_of_evidence_is_in_the_run_before_it():
    index = JournalIndex()
    for row in short_run().rows:
        index.add(Event(row, json.loads(row.payload)))
    assert check_references(index, finished=True).ok
    assert index.of_kind("evidence_call")
    kinds = ("episode", "playbook_version", "high_level_report")
    for event in index.of_kind("evidence_call"):
        assert event.payload["status"] == "ok"
        assert all(seq < event.row.seq for seq in event.payload["rows"])
        for name in event.payload["ids"]:
            found = [index.get(kind, name) for kind in kinds]
            assert any(entry is not None and entry.row.known_at <= event.row.known_at for entry in found), (
                name
            )


def test_evidence_stands_between_a_report_and_its_verdict():
    order = [
        row.kind for row in short_run().rows if row.kind in (*KINDS, "high_level_report", "replan_verdict")
    ]
    last = ""
    for kind in order:
        if kind in KINDS:
            assert last in ("high_level_report", *KINDS)
        last = kind
    assert order.count("evidence_plan") > 1


def test_switched_off_the_judge_reads_nothing_and_decides_the_same():
    rules, off = short_run(), judged_run("off")
    assert off.of(*KINDS) == []
    assert len(rules.of(*KINDS)) > 3
    decided = ("decision", "actions", "refused", "reason", "known_at")
    assert [[verdict[name] for name in decided] for verdict in verdicts(rules)] == [
        [verdict[name] for name in decided] for verdict in verdicts(off)
    ]
    assert [verdict["evidence_ids"] for verdict in verdicts(rules)] != [
        verdict["evidence_ids"] for verdict in verdicts(off)
    ]


def test_tool_that_answers_otherwise_changes_the_head_of_the_run(monkeypatch):
    before = short_run().document["journal"]["head_hash"]
    plain = RunEvidence.read

    async def fewer(self, report, seen):
        return await plain(self, report, seen - 200)

    monkeypatch.setattr(RunEvidence, "read", fewer)
    after = judged_run().document["journal"]["head_hash"]
    assert before != after


def stored(folder, settings, bars):
    data = {"source": "world", "path": None, "sha256": bars.sha256, "symbols": list(bars.symbols)}
    data |= {"timeframe": bars.timeframe, "label": bars.label}
    new = NewRun("w", 0, "backtest", settings.config_hash, settings.payload(), data, {})

    async def backtest(*given, **named):
        own = Overrides(Models(judge=Keeps({"reasons": [], "comment": None, "keep": ["a1"]})))
        return await run_backtest(*given, **(named | {"definitions": planted_books(), "own": own}))

    async def scenario():
        async with await open_store(f"sqlite:///{folder}/t.db", create=True) as store:
            await record_run(backtest, settings, bars, store, new)
            record = await store.runs.find("latest")
            replay = backtest_replay(settings, bars, store, record, planted_books())
            return await replay.compare()

    return asyncio.run(scenario())


def test_replay_reads_again_asks_no_server_and_compares(tmp_path):
    report = stored(tmp_path, quick(), short_world())
    assert (report.ok, report.problem) == (True, None)


def test_what_decides_in_a_run_is_hashed_and_where_tools_are_asked_is_not():
    for change in ({"judge": "off"}, {"confidence_threshold": 0.9}, {"max_iterations": 3},
                   {"enable_reflection": False}, {"native_tools": False}):  # fmt: skip
        assert Settings(planner=PlannerSettings(**change)).config_hash != Settings().config_hash
    asking = PlannerSettings(history=1, schema_ttl_s=5, servers={"x": ToolServer(url="http://localhost:1")})
    assert Settings(planner=asking).config_hash == Settings().config_hash


def test_planner_of_a_model_needs_a_judge_that_is_one():
    with pytest.raises(ValueError, match="planner.judge 'model' plans with the judge's model"):
        Settings(planner=PlannerSettings(judge="model"))
    settings = Settings(
        planner=PlannerSettings(judge="model"),
        judge=JudgeSettings(replan="model"),
        llm=LlmSettings(model="anthropic/claude-haiku-5-5"),
    )
    assert settings.planner.judge == "model"


def test_session_of_the_losing_run_keeps_no_second_journal():
    session = losing_run().result.session
    assert session.kept is not None
    assert len(session.kept.rows) < session.journal.events / 5
    sink = MemorySink()
    off = assemble(quick("off", "rules"), short_world(), JournalWriter(sink), planted_books())
    assert off.kept is None
    with pytest.raises(ConfigError, match="use 'rules'"):
        assemble(
            quick("rules", "rules").model_copy(update={"planner": PlannerSettings(judge="model")}),
            short_world(), JournalWriter(sink), planted_books(),
        )  # fmt: skip


PLANS = json.dumps({"confidence": 0.9, "tools": [{"client": OWN, "method": "trades", "params": {}}]})


def test_model_plans_what_its_judge_reads_and_the_replay_asks_nobody(tmp_path):
    settings = judging_settings()
    settings = settings.model_copy(update={"planner": PlannerSettings(judge="model")})
    planner, judge = Says(PLANS), Keeps({"reasons": [], "comment": None, "keep": ["a1"]})
    data = {"sha256": judging_world().sha256, "path": None}
    new = NewRun("x", 0, "backtest", settings.config_hash, settings.payload(), data, {})

    async def backtest(*given, **named):
        models = Models(judge=judge, texts={"evidence_planner": planner})
        return await run_backtest(*given, **named, own=Overrides(models=models))

    async def scenario():
        async with await open_store(f"sqlite:///{tmp_path}/m.db", create=True) as store:
            kept = await record_run(
                backtest, settings, judging_world(), store, new, definitions=judging_books()
            )
            kinds = {*KINDS, "model_call", "replan_verdict"}
            rows = [row async for row in store.journal.rows(kept.record.run_id, kinds=kinds)]
            replay = backtest_replay(settings, judging_world(), store, kept.record, judging_books())
            return [(row.kind, json.loads(row.payload)) for row in rows], await replay.compare()

    rows, replay = asyncio.run(scenario())
    request = len(planner.requested)
    plans = [payload for kind, payload in rows if kind == "evidence_plan"]
    assert request >= len(plans) >= 1
    assert {(plan["model"], plan["status"], plan["confidence"]) for plan in plans} == {
        ("said", "gathered", 0.9)
    }
    assert {payload["call"]["prompt"] for kind, payload in rows if kind == "model_call"} == {
        "evidence_planner",
        "judge_replanning",
    }
    calls = [payload for kind, payload in rows if kind == "evidence_call"]
    assert {(call["tool"], call["params"]["limit"]) for call in calls} == {("trades", 5)}
    [verdict, *_] = [payload["verdict"] for kind, payload in rows if kind == "replan_verdict"]
    assert set(calls[0]["ids"]) <= set(verdict["evidence_ids"])
    assert replay.ok, replay
    assert len(planner.requested) == request
