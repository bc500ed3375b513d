"""The journal rows of what a judge read about a report: each plan with what became of it, then its calls.

A tool of ours is a pure function of earlier rows. So a row holds the hash of the result with the ids and the
rows that it named, and whoever plays the run again makes the result again and compares.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from schemas.canonical import content_id
from schemas.evidence_plan import EvidenceCall, GatheredEvidence, RecommendationEvidence
from services.evidence.evidence_ids import ids_of

Row = tuple[str, dict[str, Any], dict[str, Any] | None]


def evidence_rows(evidence: Sequence[RecommendationEvidence], report_id: str) -> Iterator[Row]:
    """Kind, payload and telemetry of each row."""
    for one in evidence:
        gathered = one.gathered
        payload = {
            "report_id": report_id,
            "playbook_id": one.playbook_id,
            "regime": one.regime,
            "kind": one.kind,
            **_outcome(gathered),
        }
        evidence_id = content_id(payload)
        yield "evidence_plan", {"evidence_id": evidence_id, **payload}, None
        for call in gathered.calls:
            yield "evidence_call", {"evidence_id": evidence_id, **_call(call)}, call.telemetry()


def _outcome(gathered: GatheredEvidence) -> dict[str, Any]:
    plans = gathered.plans
    return {
        "question": gathered.question,
        "status": gathered.status,
        "confidence": gathered.confidence,
        "clarification": gathered.clarification,
        "calls": [call.id for call in gathered.calls],
        "steps": [step.payload() for step in gathered.steps],
        "dropped": [dropped.payload() for plan in plans for dropped in plan.dropped],
        "iterations": gathered.iterations,
        "refined": gathered.refined,
        "complete": gathered.complete,
        "reasoning": [plan.reasoning for plan in plans],
        "model": plans[0].model if plans else None,
        "prompt_hash": plans[0].prompt_hash if plans else None,
        "failure": next((plan.failure for plan in plans if plan.failure is not None), None),
    }


def _call(call: EvidenceCall) -> dict[str, Any]:
    content = call.reply.content or {}
    return {
        "call_id": call.id,
        "iteration": call.iteration,
        "client": call.client,
        "tool": call.method,
        "params": dict(call.params),
        "status": "failed" if call.reply.is_error else "ok",
        "ids": list(ids_of(call.reply)),
        "rows": [row["seq"] for row in content.get("rows", ())],
        "result_hash": call.reply.content_hash,
    }
