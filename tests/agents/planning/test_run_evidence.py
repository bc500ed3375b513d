"""What a judge's planner reads of a run: our own tools as of the report's moment, changing nothing."""

import asyncio
import json
from dataclasses import replace
from functools import cache

from agents.planning.run_evidence import RunEvidence
from schemas.errors import ModelError
from schemas.evidence_plan import EvidencePlan, PlannedCall
from schemas.settings import Settings
from schemas.settings.planner import OWN
from schemas.slow_reflection import HighLevelReflectionReport
from services.evidence_tools.evidence_buffer import EvidenceBuffer
from services.slow_loop.evidence_rows import evidence_rows
from tests.worker.shared_runs import losing_run, losing_settings


class Planner:
    """Plans the same calls for every question, once."""

    def __init__(self, *calls, confidence=1.0):
        tools = tuple(PlannedCall(client=OWN, method=method, params=params) for method, params in calls)
        self.first = EvidencePlan(confidence=confidence, tools=tools)
        self.requested = []

    async def plan(self, question, tools, earlier=()):
        self.requested.append(
            (question, {client: [tool.name for tool in some] for client, some in tools.items()})
        )
        return EvidencePlan() if earlier else self.first


class Silent:
    async def plan(self, question, tools, earlier=()):
        raise ModelError("no answer", kind="timeout")


def reports():
    """Reports of the run that recommend something, each with the number of rows behind it."""
    found = []
    for row in losing_run().rows:
        if row.kind == "high_level_report":
            report = HighLevelReflectionReport.model_validate_json(
                json.dumps(json.loads(row.payload)["report"])
            )
            if any(item.action != "hold" for item in report.recommendations):
                found.append((report, row.seq + 1))
    return found


@cache
def kept_of_run():
    return kept_of(losing_run().rows)


def kept_of(rows):
    kept = EvidenceBuffer(losing_settings())
    for row in rows:
        kept.add(row)
    return kept


def read(report, seen, rows=None, planner=None):
    plans = None if planner is None else lambda known_at: planner
    kept = kept_of_run() if rows is None else kept_of(rows)
    evidence = RunEvidence(kept, Settings().planner, plans)
    return asyncio.run(evidence.read(report, seen))


def written(evidence):
    return [(kind, payload) for kind, payload, _ in evidence_rows(evidence, "r")]


def test_every_recommendation_beyond_hold_is_asked_about_by_its_cluster():
    for report, seen in reports():
        asking = [item for item in report.recommendations if item.action != "hold"]
        evidence = read(report, seen)
        assert [(episode.playbook_id, episode.regime) for episode in evidence] == [
            (item.playbook_id, item.regime) for item in asking
        ]
        for item, request in zip(asking, evidence, strict=True):
            named = {"playbook_id": item.playbook_id, "regime": item.regime}
            cluster = {name: value for name, value in named.items() if value is not None} | {"limit": 5}
            of_playbook = {name: value for name, value in cluster.items() if name != "regime"}
            made = [(call.method, dict(call.params)) for call in request.gathered.calls]
            assert made == [
                ("trades", cluster), ("gate", cluster), ("playbooks", of_playbook)
            ]  # fmt: skip
            assert (request.gathered.status, request.gathered.complete, request.gathered.refined) == (
                "gathered",
                True,
                False,
            )
            assert request.kind in request.gathered.question
            assert not any(call.reply.is_error for call in request.gathered.calls)


def test_report_that_only_holds_is_not_asked_about():
    report, seen = reports()[0]
    planner = Planner()
    holding = [item for item in report.recommendations if item.action == "hold"]
    assert read(report.model_copy(update={"recommendations": tuple(holding)}), seen, planner=planner) == ()
    assert planner.requested == []


def test_by_rules_nothing_waits_so_that_nothing_comes_between_two_rows():
    report, seen = reports()[0]
    evidence = RunEvidence(kept_of_run(), Settings().planner)
    others: list[str] = []

    async def scenario():
        asyncio.get_running_loop().call_soon(others.append, "a row of the feed")
        read_now = await evidence.read(report, seen)
        return read_now, list(others)

    read_now, between = asyncio.run(scenario())
    assert len(read_now[0].gathered.calls) == 3
    assert between == []
    assert others == ["a row of the feed"]


def test_rows_after_the_moment_change_no_byte():
    report, seen = reports()[0]
    rows = losing_run().rows
    later = [
        replace(row, payload=row.payload.replace('"r":', '"r":1', 1)) if row.seq >= seen else row
        for row in rows
    ]
    assert [row.payload for row in later] != [row.payload for row in rows]
    expected = written(read(report, seen, rows[:seen]))
    assert written(read(report, seen, later)) == expected
    moved = [
        replace(row, known_at=report.known_at + 1) if row.kind == "episode" else row for row in rows[:seen]
    ]
    assert written(read(report, seen, moved)) != expected


def test_model_that_plans_is_held_to_this_run_its_clock_and_small_pages():
    report, seen = reports()[0]
    late = "2999-01-01"
    planner = Planner(
        ("trades", {"limit": 100}),
        ("trades", {"run": "r0001"}),
        ("gate", {"at": late}),
        ("gate", {"at": "2000-01-01"}),
        ("rule", {"entry": "close > 1"}),
    )
    (first, *_) = read(report, seen, planner=planner)
    shown = [(call.method, dict(call.params), call.reply.is_error) for call in first.gathered.calls]
    assert shown[0] == ("trades", {"limit": 5}, False)
    assert shown[1] == ("trades", {"run": "r0001", "limit": 5}, True)
    assert shown[2] == ("gate", {"at": late, "limit": 5}, True)
    assert shown[3][2] is True  # the run had not begun: no row of it was known by then
    assert [dropped.method for dropped in first.gathered.plans[0].dropped] == ["rule"]
    assert planner.requested[0][1] == {OWN: ["playbooks", "trades", "gate"]}


def test_planner_that_is_unsure_or_silent_leaves_the_judge_without_evidence():
    report, seen = reports()[0]
    unsure = read(report, seen, planner=Planner(("trades", {}), confidence=0.3))[0].gathered
    assert (unsure.status, unsure.calls, unsure.confidence) == ("abstained", (), 0.3)
    silent = read(report, seen, planner=Silent())[0].gathered
    assert (silent.status, silent.calls, silent.plans[0].failure) == ("abstained", (), "timeout")


def test_call_changes_no_row_and_the_next_answer_is_the_same():
    report, seen = reports()[0]
    kept = kept_of(losing_run().rows)
    before = list(kept.rows)
    evidence = RunEvidence(kept, Settings().planner)
    first = asyncio.run(evidence.read(report, seen))
    assert written(asyncio.run(evidence.read(report, seen))) == written(first)
    assert kept.rows == before


def test_rows_hold_the_hash_of_each_result_with_its_ids_and_rows():
    report, seen = reports()[-1]
    evidence = read(report, seen)
    rows = written(evidence)
    calls = [call for request in evidence for call in request.gathered.calls]
    shown = [payload for kind, payload in rows if kind == "evidence_call"]
    assert [item["result_hash"] for item in shown] == [call.reply.content_hash for call in calls]
    for item, call in zip(shown, calls, strict=True):
        content = call.reply.content
        assert item["rows"] == [row["seq"] for row in content["rows"]]
        assert all(row < seen for row in item["rows"])
        for name in item["ids"]:
            assert name in call.reply.text
    episodes = next(item for item in shown if item["tool"] == "trades")
    assert 1 <= len(episodes["ids"]) <= 5
    assert len({payload["evidence_id"] for kind, payload in rows if kind == "evidence_plan"}) == len(evidence)
