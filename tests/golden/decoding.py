"""Every payload of a journal through the contracts of today."""

from collections.abc import Callable
from typing import Any

from schemas.episode import Episode
from schemas.judge import BoundaryVerdict, ReplanVerdict
from schemas.plan import ChangePlan
from schemas.playbook import PlaybookVersion
from schemas.policy import AmendedPolicy, FrozenPolicy, PolicyAmendment
from schemas.proposal import PolicyProposal
from schemas.reflection import PolicyLevelReflectionResult
from schemas.slow_reflection import HighLevelReflectionReport, HighLevelReflectionRequest
from schemas.snapshot import PolicySnapshot
from schemas.tick_validation import TickValidationEvent
from services.feeds.port import FeedAnomalyKind
from services.journal.index import Event
from services.journal.kinds import TICK_KINDS

Decode = Callable[[dict[str, Any]], object]

ARTEFACTS: dict[str, Decode] = {
    "playbook_version": PlaybookVersion.of_row,
    "policy_snapshot": lambda payload: PolicySnapshot.model_validate(payload["snapshot"]),
    "policy_proposal": lambda payload: (
        payload["proposal"] and PolicyProposal.model_validate(payload["proposal"]),
        payload.get("amendment") and PolicyAmendment.model_validate(payload["amendment"]),
    ),
    "policy_reflection": lambda payload: PolicyLevelReflectionResult.model_validate(payload["result"]),
    "boundary_verdict": lambda payload: BoundaryVerdict.model_validate(payload["verdict"]),
    "policy_frozen": lambda payload: FrozenPolicy.model_validate(payload["policy"]),
    "policy_amended": lambda payload: AmendedPolicy.model_validate(payload["amended"]),
    "episode": lambda payload: Episode.model_validate(payload["episode"]),
    "shadow_episode": lambda payload: Episode.model_validate(payload["episode"]),
    "high_level_request": lambda payload: HighLevelReflectionRequest.model_validate(payload["request"]),
    "high_level_report": lambda payload: HighLevelReflectionReport.model_validate(payload["report"]),
    "replan_verdict": lambda payload: ReplanVerdict.model_validate(payload["verdict"]),
    "two_phase_phase1_complete": lambda payload: (
        payload["plan"] and ChangePlan.model_validate(payload["plan"])
    ),
    "plan_decided": lambda payload: payload["plan"] and ChangePlan.model_validate(payload["plan"]),
    "feed_anomaly": lambda payload: FeedAnomalyKind(payload["anomaly"]),
}
# Payloads without a contract: what readers of today take out of them.
FIELDS = {
    "genesis": {"config_hash", "label", "schema_versions", "seed", "symbols", "timeframe"},
    "policy_event": {"bar_label", "event_id", "events", "state"},
    "policy_skip": {"event_id", "reason", "next_eligible", "state"},
    "policy_evaluation": {"event_id", "outcome", "policy_id", "reason", "rounds", "snapshot_hash"},
    "slow_skip": {"facts", "next_eligible", "reason", "slot"},
    "entries_blocked": {"bar_label", "blocked"},
    "answer_arrived": {"event_id"},
    "operator_command": {"kind", "number", "payload"},
    "expectation_measured": {"expectation", "playbook_id", "version"},
    "shadow_trials": {"trials"},
    "evidence_plan": {"evidence_id", "report_id", "playbook_id", "regime", "kind", "question", "calls"},
    "evidence_call": {"evidence_id", "call_id", "tool", "params", "status", "ids", "rows", "result_hash"},
    "run_finished": {"bars", "end", "open_positions"},
    "two_phase_phase1_start": {"plan_trigger", "report_id", "verdict_id"},
    "plan_step": {"kind", "number", "phase", "plan_hash", "plan_id", "reason", "state", "versions"},
    "two_phase_phase2_complete": {
        "phase",
        "plan_edited",
        "plan_hash",
        "plan_id",
        "plan_length",
        "status",
        "tools_used",
    },
    "measure_renewed": {"expires_at", "measure", "shown", "since", "until", "version_hash"},
}


def undecoded(event: Event) -> str | None:
    """Why an event cannot be read by today's program; None where it can."""
    kind, payload = event.row.kind, event.payload
    try:
        if kind in ARTEFACTS:
            ARTEFACTS[kind](payload)
        elif kind in TICK_KINDS:
            _tick(event)
        elif kind not in FIELDS:
            return f"row {event.row.seq}: nobody reads kind {kind!r}"
        elif missing := FIELDS[kind] - payload.keys():
            return f"row {event.row.seq} ({kind}): lacks {sorted(missing)}"
    except (ValueError, KeyError, TypeError) as error:
        return f"row {event.row.seq} ({kind}): {error}"
    return None


def _tick(event: Event) -> None:
    row = event.row
    TickValidationEvent.model_validate(
        {
            "kind": row.kind,
            "symbol": row.symbol,
            "bar_label": event.payload["bar_label"],
            "ts_event": row.ts_event,
            "known_at": row.known_at,
            "detail": event.payload,
        }
    )
