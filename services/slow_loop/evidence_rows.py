"""The journal rows of what a judge read about a report: each plan with what became of it, then its calls.

A tool of ours is a pure function of earlier rows. So a row holds the hash of the result with the ids and the
rows that it named, and whoever plays the run again makes the result again and compares.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from schemas.canonical import content_id
from schemas.evidence_plan import EvidenceCall, GatheredEvidence, RecommendationEvidence
from schemas.tool import ToolReply
from services.model_calls.quoting import count_noun

PLAN, CALL = "evidence_plan", "evidence_call"
SHOWN = ("playbook_id", "regime", "kind", "question", "status", "confidence", "complete")
TOLD_OF_CALL = ("call_id", "tool", "params", "status", "ids", "rows")
Row = tuple[str, dict[str, Any], dict[str, Any] | None]


def evidence_rows(evidence: Sequence[RecommendationEvidence], report_id: str) -> Iterator[Row]:
    """Kind, payload and telemetry of each row."""
    for number, recommendation in enumerate(evidence, 1):
        gathered = recommendation.gathered
        payload = {
            "report_id": report_id,
            "number": number,
            "playbook_id": recommendation.playbook_id,
            "regime": recommendation.regime,
            "kind": recommendation.kind,
            **_outcome(gathered),
        }
        evidence_id = content_id(payload)
        yield PLAN, {"evidence_id": evidence_id, **payload}, None
        for call in gathered.calls:
            yield CALL, {"evidence_id": evidence_id, **_call(call)}, call.telemetry()


def told_evidence(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """What was read for each report, by its id, out of kinds and payloads of rows in order."""
    found: dict[str, list[dict[str, Any]]] = {}
    calls: dict[str, list[dict[str, Any]]] = {}
    for kind, payload in rows:
        if kind == PLAN:
            made = calls[payload["evidence_id"]] = list[dict[str, Any]]()
            fields = {name: payload[name] for name in SHOWN} | {"calls": made}
            found.setdefault(payload["report_id"], []).append(fields)
        elif kind == CALL:
            calls[payload["evidence_id"]].append({name: payload[name] for name in TOLD_OF_CALL})
    return found


def evidence_line(payload: Mapping[str, Any]) -> str:
    """`read for open_experiment of squeeze_breakout: trades (5 ids), gate (1 id)`."""
    where = " in ".join(name for name in (payload["playbook_id"], payload["regime"]) if name is not None)
    calls = ", ".join(f"{call['tool']} ({_brought(call)})" for call in payload["calls"])
    return f"read for {payload['kind']}{where and f' of {where}'}: {calls or payload['status']}"


def _brought(call: Mapping[str, Any]) -> str:
    return "failed" if call["status"] == "failed" else count_noun(len(call["ids"]), "id")


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


OF_LISTS = {
    "trades": ("episode_id",),
    "versions": ("version_hash",),
    "reports": ("report_id",),
    "steps": ("id",),
}
OF_RESULT = ("report_id", "fill_id")


def ids_of(reply: ToolReply) -> tuple[str, ...]:
    """Ids of episodes, versions, reports and fills; none where the call failed."""
    return tuple(dict.fromkeys(_ids(reply.content or {})))


def _ids(content: dict[str, Any]) -> Iterator[str]:
    for name in OF_RESULT:
        if content.get(name) is not None:
            yield str(content[name])
    for name, fields in OF_LISTS.items():
        for item in content.get(name, ()):
            yield from (str(item[field]) for field in fields if item.get(field) is not None)
