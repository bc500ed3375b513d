"""What the reports of running sessions carry: every analysis, in numbers that come from the journal."""

import asyncio
import json
from collections import Counter, defaultdict
from copy import copy
from typing import Any

import pytest

from schemas.settings import HighLevelSettings, Settings
from tests.worker.shared_runs import Run, embedded_run, losing_run, planted_run

FIRES = {"thesis_armed": "armed", "activation_triggered": "activated", "thesis_expired": "expired"}
Rule = tuple[str, str]


def reports(run: Run) -> list[dict[str, Any]]:
    return [report["report"] for report in run.of("high_level_report")]


def test_slow_loop_fire_quality_counts_each_entry_rule_and_the_trades_of_its_window() -> None:
    run = embedded_run()
    side = {
        frozen["policy_id"]: frozen["policy"]["proposal"]["direction"] for frozen in run.of("policy_frozen")
    }
    fires: Counter[tuple[Rule, str]] = Counter()
    r: defaultdict[Rule, list[float]] = defaultdict(list)
    for row in run.rows:
        one = json.loads(row.payload)
        if row.kind in FIRES:
            fires[(one["playbook_id"], side[one["policy_id"]]), FIRES[row.kind]] += 1
        elif row.kind == "episode":
            r[one["episode"]["playbook_id"], one["episode"]["direction"]].append(one["episode"]["r"])
        elif row.kind == "high_level_report":
            found = {(rule["playbook_id"], rule["direction"]): rule for rule in one["report"]["fire_quality"]}
            assert {rule for rule, _ in fires} | set(r) <= set(found)
            for rule, windows in found.items():
                now = windows["now"]
                assert all(now[name] == fires[rule, name] for name in FIRES.values())
                assert now["trades"] == len(r[rule])
                mean = sum(r[rule]) / len(r[rule]) if r[rule] else None
                assert now["mean_r"] == (None if mean is None else pytest.approx(mean, abs=1e-8))
            fires.clear()
            r.clear()


def test_slow_loop_fire_quality_of_the_window_before_is_that_of_the_report_before() -> None:
    earlier, *rest = reports(embedded_run())
    assert rest
    for later in rest:
        known = {
            (episode["playbook_id"], episode["direction"]): episode["now"]
            for episode in earlier["fire_quality"]
        }
        for episode in later["fire_quality"]:
            before = known.get((episode["playbook_id"], episode["direction"]))
            assert episode["before"] == before or (before is None and episode["before"]["armed"] == 0)
        earlier = later


def test_slow_loop_reports_carry_decay_expectations_and_failure_modes_of_every_playbook() -> None:
    for report in reports(embedded_run()):
        traded = {episode["playbook_id"]: episode["n"] for episode in report["playbook_findings"]}
        assert {episode["playbook_id"]: episode["n"] for episode in report["decay"]} == traded
        assert {episode["playbook_id"]: episode["n"] for episode in report["expectations"]} == traded
        assert all(0.0 <= item["level"] <= item["highest"] < item["limit"] for item in report["decay"])
        missed = sum(len(item["missed"]) for item in report["expectations"])
        assert len(report["expectation_misses"]) == missed
        losers = sum(report["failure_modes"].values())
        unclassified = report["failure_modes"].get("unclassified", 0)
        assert report["unclassified_share"] == pytest.approx(unclassified / losers, abs=1e-8)
    last = [reports(run())[-1]["failure_modes"] for run in (embedded_run, planted_run, losing_run)]
    unclassified = sum(modes.get("unclassified", 0) for modes in last)
    assert unclassified / sum(sum(modes.values()) for modes in last) < 0.05


def test_slow_loop_untraded_signals_are_told_apart_by_what_stopped_them() -> None:
    refused = Counter(refusal["reason"] for refusal in embedded_run().of("order_refused"))
    account = sum(count for reason, count in refused.items() if reason not in ("unfilled", "invalidated"))
    assert account
    shown: Counter[str] = Counter()
    for report in reports(embedded_run()):
        shown.update({reason: cell["n"] for reason, cell in report["untraded"].items()})
        assert all(cell["resolved"] <= cell["n"] for cell in report["untraded"].values())
    assert set(shown) == {"expired", "unfilled", "blocked"}
    assert shown["blocked"] <= account


def test_slow_loop_reports_hold_the_actions_of_the_judge_with_what_they_changed() -> None:
    verdicts = {
        json.loads(row.payload)["verdict_id"]: (row.known_at, json.loads(row.payload)["verdict"])
        for row in losing_run().rows
        if row.kind == "replan_verdict"
    }
    last = reports(losing_run())[-1]
    history = last["judge_history"]
    assert list(dict.fromkeys(item["verdict_id"] for item in history)) == last["judge_actions_seen"]
    assert {event["kind"] for event in history} >= {"set_risk_fraction", "set_threshold"}
    for event in history:
        at, verdict = verdicts[event["verdict_id"]]
        assert event["at"] == at
        assert (event["kind"], event["value"]) in {(act["kind"], act["value"]) for act in verdict["actions"]}


def test_slow_loop_window_leaves_out_what_the_judge_did_before_it() -> None:
    session = losing_run().result.session
    acted = sorted({report["at"] for report in reports(losing_run())[-1]["judge_history"]})
    row = session.bars.shape[0] - 1
    short = copy(session.slow_loop)
    short.facts = copy(session.slow_loop.facts)
    short.facts._settings = Settings(
        high_level=HighLevelSettings(window_bars=row - int(session.bars.close_times.searchsorted(acted[-1])))
    )
    whole, window = (asyncio.run(loop.reflect_now(row))[1] for loop in (session.slow_loop, short))
    assert {seen.at for seen in whole.judge_history} >= set(acted)
    assert {seen.at for seen in window.judge_history} == {at for at in acted if at >= acted[-1]}
    assert len(window.judge_actions_seen) < len(whole.judge_actions_seen)


def test_slow_loop_grid_values_tried_stay_in_the_family_of_later_reports() -> None:
    run = losing_run()
    tried: set[str] = set()
    requests = [payload["request"] for payload in run.of("high_level_request")]
    found = reports(run)
    assert any(report["grid_trials"] for report in found)
    for request, report in zip(requests, found, strict=True):
        assert set(request["tested_before"]) == tried
        tried |= {
            f"grid|{episode['playbook_id']}|{episode['parameter']}|{episode['value']!r}"
            for episode in report["grid_trials"]
        }
        sizes = {item["family_size"] for item in report["clusters"] if item["family_size"]}
        assert len(sizes) == 1
        assert min(sizes) > len(tried)
    assert tried
