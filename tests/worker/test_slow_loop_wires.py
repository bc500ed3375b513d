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
    requests = [one["request"] for one in embedded_run().of("high_level_request")]
    signals = [signal for request in requests for signal in request["untraded_signals"]]
    assert {signal["reason"] for signal in signals} >= {"expired"}
    assert any(signal["counterfactual_r"] is not None for signal in signals)
    assert len({(one["symbol"], one["label"], one["playbook_id"], one["reason"]) for one in signals}) == len(
        signals
    )
    for request in requests:
        assert all(signal["known_at"] <= request["known_at"] for signal in request["untraded_signals"])


def test_slow_loop_reads_only_episodes_known_at_the_slot() -> None:
    run = embedded_run()
    known = {one["episode"]["episode_id"]: one["episode"]["known_at"] for one in run.of("episode")}
    for one in run.of("high_level_request"):
        request = one["request"]
        assert request["episode_ids"]
        assert all(known[name] <= request["slot"] <= request["known_at"] for name in request["episode_ids"])


def test_slow_loop_runs_keep_both_gates() -> None:
    run = embedded_run()
    slots = [one["request"]["slot"] for one in run.of("high_level_request")]
    fresh = [one["request"]["new_episodes"] for one in run.of("high_level_request")]
    week = 7 * 86_400 * 10**9
    assert len(slots) > 3
    assert all(later - earlier >= week for earlier, later in zip(slots, slots[1:], strict=False))
    assert all(count >= 20 for count in fresh)


def test_slow_loop_measured_expectations_reach_the_next_snapshots() -> None:
    snapshots = embedded_run().of("policy_snapshot")
    measured = [sum(one["n"] for one in payload["snapshot"]["expectations"]) for payload in snapshots]
    assert measured[0] == 0
    assert measured[-1] == embedded_run().document["episodes"]
    assert measured == sorted(measured)


def test_slow_loop_remembers_what_the_judge_did_and_what_was_tried() -> None:
    requests = [one["request"] for one in losing_run().of("high_level_request")]
    assert requests[0]["judge_actions"] == requests[0]["tested_before"] == []
    assert requests[-1]["judge_actions"]
    assert any("side" in trial for trial in requests[-1]["tested_before"])
    assert not any(requests[0]["epochs"].values())
    assert requests[-1]["epochs"]["buys_strength"] >= 1


def test_slow_loop_charges_a_changed_playbook_half_in_every_new_epoch() -> None:
    levels: dict[int, set[tuple[int, float]]] = {}
    for one in losing_run().of("high_level_report"):
        report = one["report"]
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
    assert {one["reason"] for one in payloads(rows, "slow_skip")} == {"disabled"}
    assert payloads(rows, "high_level_report") == []


def test_slow_loop_next_request_carries_what_the_fast_path_deferred() -> None:
    made = session()

    def wishing(plan: Plan) -> Plan:
        rounds = tuple(
            PlanRound(
                one.answer,
                one.request,
                one.reflection.model_copy(update={"deferred": ("a trigger on gaps",)}),
            )
            if isinstance(one.reflection, PolicyLevelReflectionResult)
            else one
            for one in plan.rounds
        )
        return Plan(plan.end, rounds, plan.reason)

    plans_changed(made, wishing)
    finished(made)
    row = made.engine.t - 1
    request, report = asyncio.run(made.slow_loop.reflect_now(row))
    assert request.deferred_items
    assert any("a trigger on gaps" in text for text in report.deferred_seen)


def test_slow_loop_error_is_journalled_counted_once_per_slot_and_changes_nothing(monkeypatch: Any) -> None:
    made = session(Settings(), ("2003-01-01", "2006-06-30"))

    async def broken(*args: Any, **named: Any) -> None:
        raise RuntimeError("no report today")

    monkeypatch.setattr(made.slow_loop._reflection, "reflect", broken)
    rows = finished(made)
    errors = payloads(rows, "error")
    assert errors
    assert {one["where"] for one in errors} == {"slow_loop"}
    assert made.slow_loop.counters.errors == len(errors)
    assert payloads(rows, "replan_verdict") == []
    slots = {one["request"]["slot"] for one in payloads(rows, "high_level_request")}
    weeks = {slot // (7 * 86_400 * 10**9) for slot in slots}
    assert len(slots) == len(errors) <= 2 * len(weeks)
    assert [json.loads(row.payload)["state"] for row in rows if row.kind == "playbook_version"] == [
        "active"
    ] * 5


def test_slow_loop_requests_carry_drift_inputs_of_their_window() -> None:
    requests = [one["request"]["drift_inputs"] for one in embedded_run().of("high_level_request")]
    assert {one["trigger"] for one in requests} <= {"slot", "batch", "surprise"}
    assert all(one["fingerprints"] for one in requests)
    run = embedded_run()
    armed = sum(pair["now"]["armed"] for one in requests for pair in one["fires"].values())
    assert 0 < armed <= len(run.of("thesis_armed"))
    nothing = {"now": {"armed": 0, "activated": 0, "expired": 0, "r": []}}
    for earlier, later in zip(requests, requests[1:], strict=False):
        for name, pair in later["fires"].items():
            assert pair["before"] == earlier["fires"].get(name, nothing)["now"]
    texts = [text for one in run.of("high_level_report") for text in one["report"]["drift_findings"]]
    assert any("decision windows" in text for text in texts)
