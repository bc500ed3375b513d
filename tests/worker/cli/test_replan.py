"""`reflect` and `replan`: a report on demand, one verdict on it, its effect, and files that are read back."""

import asyncio
import json
import shutil

import pytest

from services.playbooks.loader import load_playbooks, read_playbook
from services.store import open_store
from tests.agents.language_models.wire_server import events, stream
from tests.services.store.stores import new_run
from tests.worker.cli.conftest import with_planted
from tests.worker.planted_store import definitions, new_planted, store_planted, world
from tests.worker.shared_runs import NO_EXPERIMENTS, forget_the_room_for_experiments, losing_settings
from tests.worker.wire import wire
from worker.cli.printing import time_option
from worker.runs import run_inputs

DB = "sqlite:///thinktwice.db"


def in_store(work):
    async def opened():
        async with await open_store(DB, create=True) as store:
            return await work(store)

    return asyncio.run(opened())


def answered(shell, *words):
    result = shell.run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def journalled(shell, *kinds):
    words = [word for kind in kinds for word in ("--kind", kind)]
    return [
        json.loads(line) for line in shell.run("journal", "latest", "--jsonl", *words).stdout.splitlines()
    ]


def replanned(shell):
    """The verdict of the run that lowered risk, sent a candidate to shadow and replanned, and its report."""
    return next(
        row["payload"]
        for row in journalled(shell, "replan_verdict")
        if row["payload"]["verdict"]["decision"] == "replan"
    )


def before(known_at, bars=3):
    """A time some bars before a bar close, as the command takes it."""
    closes = world().close_times.tolist()
    return str(world_time(closes[closes.index(known_at) - bars]))


def world_time(ns):
    from schemas.canonical import ns_to_datetime

    return ns_to_datetime(ns).isoformat()


def changed(document, kind):
    """{field: (from, to)} of what an action changes, and the states of what it moved."""
    (steps,) = [item["transitions"] for item in document["actions"] if item["action"]["kind"] == kind]
    fields = {field["field"]: (field["from"], field["to"]) for step in steps for field in step["changes"]}
    return fields, [step["state"] for step in steps]


def test_report_on_demand_is_judged_once_and_its_effect_can_be_traded(
    reported, report_of_planted, judged_of_planted
):
    planted, (_, payload, rows) = reported, report_of_planted
    name = payload["report_id"]
    assert payload["report"]["known_at"] <= replanned(planted)["verdict"]["known_at"]
    assert f"# Report {name}" in planted.run("report", "latest", name[:6]).stdout
    assert (planted.folder / "out" / "reports" / f"{name}.html").exists()
    listed = [item for item in answered(planted, "reports")["slots"] if item["by"] == "on demand"]
    assert [(report["report_id"], report["delivery"]) for report in listed] == [(name, "waiting")]

    first = judged_of_planted.shown
    shutil.copytree(judged_of_planted.folder, planted.folder, dirs_exist_ok=True)
    assert (first["judged"], first["source"], first["verdict"]["decision"]) == ("now", "on_demand", "replan")
    assert first["verdict"]["evidence_ids"][0] == name
    assert changed(first, "set_risk_fraction") == ({"risk_fraction": (0.005, 0.0025)}, ["retired", "active"])
    assert changed(first, "set_threshold") == (
        {"parameters.side.value": (1.0, -1.0)},
        ["candidate", "shadow"],
    )
    boundaries = {item["action"]["kind"]: item["boundaries"] for item in first["actions"]}
    assert set(boundaries["replan"]) <= set(world().symbols)
    assert boundaries["replan"]
    assert {trial["state"] for trial in first["on_trial"]} == {"shadow"}
    assert all(item["ends"] for item in first["on_trial"])

    books = {playbook.id: playbook for playbook in load_playbooks(planted.folder / "books")}
    assert sorted(books) == sorted(definition.id for definition in definitions())
    assert books["buys_strength"].risk_fraction == 0.0025
    tried = [read_playbook(path) for path in (planted.folder / "books" / "candidates").iterdir()]
    assert -1.0 in {definition.parameters["side"].value for definition in tried}

    again = answered(planted, "replan", name)
    assert again["judged"] == "before"
    assert {**again, "judged": "now", "written": first["written"]} == first
    assert "was judged already (by rules" in planted.complaint("replan", name, "--judge", "model")
    assert len(journalled(planted)) == rows, "the run itself stays as it is"


@pytest.mark.parametrize("words", [(), ("--at", "2020-02-01")])
def test_replan_of_a_run_reflects_on_its_end_or_a_time_first(planted, words):
    payload = answered(planted, "replan", "latest", *words)
    assert (payload["judged"], payload["source"]) == ("now", "on_demand")
    closes = world().close_times
    wanted = closes[closes <= time_option("2020-02-01", "--at")][-1] if words else closes[-1]
    assert payload["known_at"] == int(wanted)
    assert payload["verdict"]["decision"] in ("hold", "research_experiment", "policy_adjust", "replan")
    for finding in payload["refused"]:
        assert finding["code"]
        assert finding["reason"]
    listed = [item for item in answered(planted, "reports")["slots"] if item["by"] == "on demand"]
    assert [claim["verdict"] for claim in listed] == [payload["verdict"]["decision"]]


def test_replan_of_a_report_that_the_run_judged_applies_nothing_again(planted):
    stored = replanned(planted)
    payload = answered(planted, "replan", stored["report_id"], "--write", "books")
    assert (payload["judged"], payload["source"]) == ("in the run", "run")
    assert payload["verdict"]["verdict_id"] == stored["verdict_id"]
    assert changed(payload, "set_risk_fraction")[0] == {"risk_fraction": (0.005, 0.0025)}
    versions = [row["payload"] for row in journalled(planted, "playbook_version")]
    in_force = next(
        version
        for version in versions
        if version["report_id"] == stored["report_id"] and version["state"] == "active"
    )
    books = {playbook.id: playbook for playbook in load_playbooks(planted.folder / "books")}
    assert books["buys_strength"].version == in_force["version"]
    text = planted.run("replan", stored["report_id"]).stdout
    assert "judged and applied in the run: nothing is applied again" in text
    assert "risk_fraction 0.005 -> 0.0025" in text
    assert "was judged already" in planted.complaint("replan", stored["report_id"], "--judge", "model")


def test_replan_of_an_action_that_was_refused_says_that_it_was_not_carried_out(shell, monkeypatch):
    store = shell.folder / "thinktwice.db"
    with pytest.MonkeyPatch.context() as patch:
        forget_the_room_for_experiments(patch)
        store_planted(store, settings=losing_settings(NO_EXPERIMENTS), bars=300)
    planted = with_planted(shell, store, monkeypatch, bars=300)
    refused = journalled(planted, "action_refused")[0]["payload"]
    assert refused["code"] == "too_many_experiments"
    verdict = next(
        row["payload"]
        for row in journalled(planted, "replan_verdict")
        if row["payload"]["verdict_id"] == refused["verdict_id"]
    )
    payload = answered(planted, "replan", verdict["report_id"])
    assert [finding["code"] for finding in payload["refused"]] == [refused["code"]]
    assert [item["carried_out"] for item in payload["actions"]] == [False]


def test_replan_asks_a_model_judge_that_drops_and_keeps_its_raw_reply(
    reported, report_of_planted, monkeypatch
):
    planted, words = reported, ("replan", report_of_planted.shown["report_id"], "--judge", "model")
    assert "names no model for its judge: set THINKTWICE_LLM__MODEL" in planted.complaint(*words)
    monkeypatch.setenv("THINKTWICE_LLM__MODEL", "anthropic/claude-test")
    assert "needs a key: set ANTHROPIC_API_KEY" in planted.complaint(*words)
    text = json.dumps({"reasons": [], "comment": None, "keep": ["a1"]})
    reply = stream(events(text))
    with wire(monkeypatch, reply, reply) as server:
        payload = answered(planted, *words)
    assert len(server.requests) == 1
    assert payload["verdict"]["model"] == "claude-test"
    assert len(payload["actions"]) == 1
    assert "dropped_by_model" in {finding["code"] for finding in payload["refused"]}
    (kept,) = in_store(lambda store: store.on_demand.of_run("r0001"))
    [request] = [call["payload"] for call in kept.calls if call["kind"] == "model_call"]
    assert request["call"]["text"] == text
    assert request["usd"] > 0
    read = [item["ids"] for told_of in payload["evidence"] for item in told_of["calls"]]
    assert read == [call["payload"]["ids"] for call in kept.calls if call["kind"] == "evidence_call"]
    assert {name for ids in read for name in ids} <= set(payload["verdict"]["evidence_ids"])


def test_report_that_several_runs_have_needs_the_run(planted):
    wanted = replanned(planted)["report_id"]

    async def copied(store):
        rows = [row async for row in store.journal.rows("r0001")]
        run_id = (await store.runs.create(new_planted(losing_settings()))).run_id
        await store.journal.append(run_id, rows)
        await store.runs.close(run_id, "finished")

    in_store(copied)
    assert f"report {wanted} is in several runs (r0001, r0002): name one with --run" in planted.complaint(
        "replan", wanted
    )
    assert answered(planted, "replan", wanted, "--run", "r0002")["run_id"] == "r0002"


def test_bars_or_playbooks_of_another_run_are_refused(planted, monkeypatch):
    monkeypatch.setattr(run_inputs, "playbooks", lambda settings: definitions()[:1])
    assert "`thinktwice verify r0001`" in planted.complaint("reflect")


def running(mode):
    async def made(store):
        return (await store.runs.create(new_run(mode=mode))).run_id

    return in_store(made)


def test_run_that_trades_on_paper_is_asked_by_a_request(shell):
    run_id = running("paper")
    request = answered(shell, "replan", run_id)
    assert (request["request"], request["kind"], request["payload"]) == (1, "replan", {"report_id": None})
    assert request["result"] == f"thinktwice requests {run_id}"
    assert "request 2 (kill_switch) waits for run r0001" in shell.run("kill", "on", "--run", run_id).stdout
    assert answered(shell, "kill", "off", "--run", run_id)["request"] == 3
    waiting = in_store(lambda store: store.operator.waiting(run_id))
    assert [(row.kind, row.payload) for row in waiting] == [
        ("replan", {"report_id": None}),
        ("kill_switch", {"on": True}),
        ("kill_switch", {"on": False}),
    ]
    in_store(lambda store: store.operator.answer(run_id, 1, "refused", {"reason": "no report yet"}))
    printed = shell.run("requests").stdout
    assert "refused" in printed
    assert "no report yet" in printed
    assert [trial["state"] for trial in answered(shell, "requests")] == ["refused", "waiting", "waiting"]
    assert "leave out --at" in shell.complaint("replan", run_id, "--at", "2020-02-01")
    assert "leave out --judge and --write" in shell.complaint("replan", run_id, "--judge", "rules")
    assert f"`thinktwice replan {run_id}` asks it" in shell.complaint("reflect", run_id)


def test_run_that_nobody_trades_takes_no_request(shell):
    run_id = running("backtest")
    for words in (["replan", run_id], ["kill", "on", "--run", run_id], ["reflect", run_id]):
        assert "is a backtest under way, or one that was killed" in shell.complaint(*words)
    in_store(lambda store: store.runs.close(run_id, "interrupted"))
    assert "nothing trades it" in shell.complaint("kill", "on", "--run", run_id)
    assert answered(shell, "requests") == []
