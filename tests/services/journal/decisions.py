"""A journal with one whole decision in it: from regime change to exit, with the lesson behind it."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter

SNAPSHOT, PROPOSAL, REFLECTION, VERDICT = "5" * 64, "6" * 64, "7" * 64, "8" * 64
POLICY, ORDER, ENTRY, SCALED, EXIT, REPORT, REPLAN = (
    f"{name}{'0' * 8}" for name in ("pol", "ord", "fa1", "sc3", "fb2", "rep", "ver")
)
FROM_FILE, LEARNT = "1" * 64, "2" * 64
EPISODE = {
    "episode_id": "epi1",
    "playbook_id": "trend_pullback",
    "direction": "long",
    "regime": "up/low",
    "r": -1.0,
    "exit_reason": "stop",
    "failure_mode": "chop",
    "entry_label": 1,
    "exit_label": 2,
}
POLICY_BODY = {
    "snapshot_hash": SNAPSHOT,
    "proposal_hash": PROPOSAL,
    "reflection_hash": REFLECTION,
    "verdict_hash": VERDICT,
    "playbook_id": "trend_pullback",
    "playbook_version": 2,
    "regime_key": "up/low",
    "risk_fraction": 0.005,
    "model": "rules",
    "replaces": None,
    "frozen_at": 60,
    "proposal": {"direction": "long"},
}


INSIDE = {"policy_reflection": "result", "replan_verdict": "verdict"}  # where a model's comment stands


def decision_rows(
    *, playbook_hash: str = LEARNT, leave_out: str = "", comments: Mapping[str, str] = MappingProxyType({})
) -> MemorySink:
    """The rows of one decision, some kind left out, or with a model's comment, on request."""
    sink = MemorySink()
    writer = JournalWriter(sink, flush_rows=1)

    async def write() -> None:
        for time, kind, symbol, payload in events(playbook_hash):
            if kind in comments:
                holder = payload[INSIDE[kind]] if kind in INSIDE else payload
                holder["comment"] = comments[kind]
            if kind != leave_out:
                writer.append(kind, ts_event=time, known_at=time, symbol=symbol, payload=payload)
        await writer.flush()

    asyncio.run(write())
    return sink


def version(version_hash: str, state: str, **where: Any) -> dict[str, Any]:
    """One step of a playbook version."""
    empty = dict.fromkeys(("parent_hash", "report_id", "verdict_id", "action_id", "expires_at"))
    return empty | {"version_hash": version_hash, "state": state, "since": 0, "reason": state, **where}


def events(playbook_hash: str) -> list[tuple[int, str, str | None, dict[str, Any]]]:
    """(time, kind, symbol, payload) of every row."""
    learnt = {"report_id": REPORT, "verdict_id": REPLAN, "action_id": "act", "parent_hash": FROM_FILE}
    report = {
        "window_start": 0,
        "window_end": 40,
        "n_episodes": 21,
        "recommended_action": "policy_adjust",
        "insufficient_sample": False,
        "narrative": "Stops are hit early.",
        "evidence_refs": ["epi1"],
    }
    snapshot = {
        "bar_label": 50,
        "close": 10.0,
        "state": "IDLE",
        "regime": None,
        "base_rates": {},
        "staleness_bars": 0,
    }
    memory = {bucket: [{"episode_id": "epi1"}] for bucket in ("winners", "losers", "failures")}
    result = {
        "status": "pass",
        "checks_run": ["invariant"],
        "prompt_hash": "9" * 64,
        "memory": memory,
        "findings": [{"code": "stop_too_tight", "severity": "minor", "message": "the stop is close"}],
    }
    verdict = {"decision": "approve", "reason": "nothing against it"}
    order = {
        "order_id": ORDER,
        "policy_id": POLICY,
        "direction": "long",
        "quantity": 3.0,
        "stop": 9.0,
        "target": 12.0,
    }
    fill = {"order_id": ORDER, "policy_id": POLICY, "direction": "long", "price": 10.1, "bar_label": 80}
    return [
        (0, "genesis", None, {"config_hash": "0" * 64}),
        (0, "playbook_version", None, version(FROM_FILE, "active")),
        (30, "episode", "AAPL", {"episode_id": "epi1", "episode": EPISODE}),
        (40, "high_level_request", None, {"request_hash": "3" * 64, "request": {"episode_ids": ["epi1"]}}),
        (40, "high_level_report", None, {"report_id": REPORT, "request_hash": "3" * 64, "report": report}),
        (
            40,
            "replan_verdict",
            None,
            {
                "verdict_id": REPLAN,
                "report_id": REPORT,
                "verdict": {"decision": "policy_adjust", "reason": "graded significant", "actions": []},
            },
        ),
        (40, "playbook_version", None, version(LEARNT, "candidate", **learnt)),
        (50, "playbook_version", None, version(LEARNT, "active", **learnt)),
        (60, "policy_event", "AAPL", {"event_id": "evt", "events": ["regime_change"], "bar_label": 50}),
        (60, "policy_snapshot", "AAPL", {"snapshot_hash": SNAPSHOT, "event_id": "evt", "snapshot": snapshot}),
        (60, "policy_proposal", "AAPL", {"proposal_hash": PROPOSAL, "proposal": {"thesis": "up"}}),
        (60, "policy_reflection", "AAPL", {"reflection_hash": REFLECTION, "result": result}),
        (60, "boundary_verdict", "AAPL", {"verdict_hash": VERDICT, "verdict": verdict}),
        (
            60,
            "policy_frozen",
            "AAPL",
            {"policy_id": POLICY, "policy": POLICY_BODY | {"playbook_hash": playbook_hash}},
        ),
        (70, "thesis_armed", "AAPL", {"policy_id": POLICY, "bar_label": 60}),
        (70, "thesis_armed", "IBM", {"policy_id": "other", "bar_label": 60}),
        (75, "order_accepted", "AAPL", order),
        (90, "entry_filled", "AAPL", {"fill_id": ENTRY} | fill),
        (
            92,
            "scale_out_filled",
            "AAPL",
            {"fill_id": SCALED} | fill | {"order_id": "half", "entry_order_id": ORDER, "remaining": 1.5},
        ),
        (
            93,
            "stop_tightened",
            "AAPL",
            {"policy_id": POLICY, "stop_before": 9.0, "stop": 10.1, "by": "trail"},
        ),
        (93, "stop_tightened", "IBM", {"policy_id": "other", "stop_before": 1.0, "stop": 2.0, "by": "trail"}),
        (95, "stop_breach", "AAPL", {"policy_id": POLICY, "bar_label": 90}),
        (
            99,
            "exit_filled",
            "AAPL",
            {"fill_id": EXIT}
            | fill
            | {"order_id": "out", "entry_order_id": ORDER, "reason": "stop", "r": -1.0},
        ),
    ]
