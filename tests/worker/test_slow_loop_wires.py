"""The wires of the slow loop in running sessions: what it is given, and what must not reach it."""

import asyncio
import json
from typing import Any

from schemas.reflection import PolicyLevelReflectionResult
from schemas.settings import HighLevelSettings, Settings
from services.ports import Plan, PlanRound
from tests.worker.shared_runs import embedded_run, losing_run
from tests.worker.test_session_wires import finished, payloads, plans_changed, session


def test_slow_loop_requests_carry_untraded_signals_known_since_the_last_run() -> None:
    requests = [payload["request"] for payload in embedded_run().of("high_level_request")]
    signals = [signal for request in requests for signal in request["untraded_signals"]]
    assert {signal["reason"] for signal in signals} >= {"expired"}
    assert any(signal["counterfactual_r"] is not None for signal in signals)
    assert len(
        {(reason["symbol"], reason["label"], reason["playbook_id"], reason["reason"]) for reason in signals}
    ) == len(signals)
    for request in requests:
        assert all(signal["known_at"] <= request["known_at"] for signal in request["untraded_signals"])


def test_slow_loop_reads_only_episodes_known_at_the_slot() -> None:
    run = embedded_run()
    known = {
        episode["episode"]["episode_id"]: episode["episode"]["known_at"] for episode in run.of("episode")
    }
    for payload in run.of("high_level_request"):
        request = payload["request"]
        assert request["episode_ids"]
        assert all(known[name] <= request["slot"] <= request["known_at"] for name in request["episode_ids"])


def test_slow_loop_runs_keep_both_gates() -> None:
    run = embedded_run()
    slots = [request["request"]["slot"] for request in run.of("high_level_request")]
    fresh = [request["request"]["new_episodes"] for request in run.of("high_level_request")]
    week = 7 * 86_400 * 10**9
    assert len(slots) > 3
    assert all(later - earlier >= week for earlier, later in zip(slots, slots[1:], strict=False))
    assert all(count >= 20 for count in fresh)


def test_slow_loop_measured_expectations_reach_the_next_snapshots() -> None:
    snapshots = embedded_run().of("policy_snapshot")
    measured = [sum(cell["n"] for cell in payload["snapshot"]["expectations"]) for payload in snapshots]
    assert measured[0] == 0
    assert measured[-1] == embedded_run().document["episodes"]
    assert measured == sorted(measured)


def test_slow_loop_remembers_what_the_judge_did_and_what_was_tried() -> None:
    requests = [request["request"] for request in losing_run().of("high_level_request")]
    assert requests[0]["judge_actions"] == requests[0]["tested_before"] == []
    assert requests[-1]["judge_actions"]
    assert any("side" in trial for trial in requests[-1]["tested_before"])
    assert not any(requests[0]["epochs"].values())
    assert requests[-1]["epochs"]["buys_strength"] >= 1


def test_slow_loop_charges_a_changed_playbook_half_in_every_new_epoch() -> None:
    levels: dict[int, set[tuple[int, float]]] = {}
    for payload in losing_run().of("high_level_report"):
        report = payload["report"]
        tested = [item for item in report["clusters"] if item["playbook_id"] == "buys_strength"]
        selected = {(item["regime"]) for item in tested if item["grade"] == "significant"}
        epoch = report["epochs"].get("buys_strength", 0)
        for item in tested:
            if item["regime"] is None:
                whole = item["alpha"] * 2 ** (epoch + 1) / max(len(selected), 1)
                levels.setdefault(item["family_size"], set()).add((epoch, round(whole, 12)))
    assert all(len({whole for _, whole in seen}) == 1 for seen in levels.values())
    assert any(len({epoch for epoch, _ in seen}) > 1 for seen in levels.values())


def test_slow_loop_switched_off_skips_with_that_reason_and_learns_nothing() -> None:
    made = session(Settings(high_level=HighLevelSettings(enabled=False)))
    rows = finished(made)
    assert {payload["reason"] for payload in payloads(rows, "slow_skip")} == {"disabled"}
    assert payloads(rows, "high_level_report") == []


def test_slow_loop_next_request_carries_what_the_fast_path_deferred() -> None:
    made = session()

    def wishing(plan: Plan) -> Plan:
        rounds = tuple(
            PlanRound(
                payload.answer,
                payload.request,
                payload.reflection.model_copy(update={"deferred": ("a trigger on gaps",)}),
            )
            if isinstance(payload.reflection, PolicyLevelReflectionResult)
            else payload
            for payload in plan.rounds
        )
        return Plan(plan.end, rounds, plan.reason)

    plans_changed(made, wishing)
    finished(made)
    row = made.engine.t - 1
    request, report = asyncio.run(made.slow_loop.reflect_now(row))
    assert request.deferred_items
    assert any("a trigger on gaps" in text for text in report.deferred_seen)


def test_slow_loop_error_is_journalled_counted_once_per_slot_and_changes_nothing(monkeypatch: Any) -> None:
    made = session(Settings(), ("2003-01-01", "2005-10-31"))

    async def broken(*args: Any, **named: Any) -> None:
        raise RuntimeError("no report today")

    monkeypatch.setattr(made.slow_loop._reflection, "reflect", broken)
    rows = finished(made)
    errors = payloads(rows, "error")
    assert errors
    assert {error["where"] for error in errors} == {"slow_loop"}
    assert made.slow_loop.counters.errors == len(errors)
    assert payloads(rows, "replan_verdict") == []
    slots = {payload["request"]["slot"] for payload in payloads(rows, "high_level_request")}
    weeks = {slot // (7 * 86_400 * 10**9) for slot in slots}
    assert len(slots) == len(errors) <= 2 * len(weeks)
    assert [json.loads(row.payload)["state"] for row in rows if row.kind == "playbook_version"] == [
        "active"
    ] * 5


def test_slow_loop_requests_carry_drift_inputs_of_their_window() -> None:
    requests = [request["request"]["drift_inputs"] for request in embedded_run().of("high_level_request")]
    assert {request["trigger"] for request in requests} <= {"slot", "batch", "surprise"}
    assert all(request["fingerprints"] for request in requests)
    run = embedded_run()
    armed = sum(pair["now"]["armed"] for request in requests for pair in request["fires"].values())
    assert 0 < armed <= len(run.of("thesis_armed"))
    nothing = {"now": {"armed": 0, "activated": 0, "expired": 0, "r": []}}
    for earlier, later in zip(requests, requests[1:], strict=False):
        for name, pair in later["fires"].items():
            assert pair["before"] == earlier["fires"].get(name, nothing)["now"]
    texts = [text for report in run.of("high_level_report") for text in report["report"]["drift_findings"]]
    assert any("decision windows" in text for text in texts)
