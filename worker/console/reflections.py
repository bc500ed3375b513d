"""What the fast reflection found in a run over time, and where two runs part."""

import json
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from schemas.canonical import ns_to_datetime
from services.evidence.tool_arguments import CostArguments
from services.evidence_tools.account_answers import CALL, costs
from services.evidence_tools.run_view import RunView
from services.journal.chain import JournalRow, is_pruned
from services.journal.index import JournalIndex

if TYPE_CHECKING:
    from services.store import RunRecord, Store

IDS = ("_id", "_ids", "_hash")  # how names of fields end that say which, and not what
MONTH = 7  # characters of an ISO date
QUANTILES = (0.5, 0.95, 0.99)
MOST_QUESTIONS = 200
FIGURES = ("total_return", "max_drawdown", "trades", "expectancy_r", "sharpe")
MAKING = frozenset(
    {
        "deliberation",
        "fact_check",
        "reflection_critique",
        "reflection_correction",
        "review_cycle",
        "chunk_outline",
        "chunk_write",
    }
)
DECISIONS = frozenset({"policy_frozen", "policy_amended", "boundary_verdict", "policy_evaluation"})


async def _rows_with_text(store: "Store", record: "RunRecord", kind: str) -> AsyncIterator[JournalRow]:
    async for row in store.journal.as_stored(record.run_id, {kind}):
        if not is_pruned(row):
            yield row


async def reflections_of(store: "Store", record: "RunRecord") -> dict[str, Any]:
    """Statuses and findings by month, latency by tier (ms), and how many answers of models were missing.

    With the mean conviction of what was proposed, and which share of it was revised after a reflection.
    """
    months: dict[str, Counter[str]] = defaultdict(Counter)
    statuses: dict[str, Counter[str]] = defaultdict(Counter)
    latencies: dict[str, list[float]] = defaultdict(list)
    outcomes: Counter[str] = Counter()
    async for row in _rows_with_text(store, record, "policy_reflection"):
        result = json.loads(row.payload)["result"]
        meta = result.get("meta", result)  # one that did not run is its own invocation
        outcomes[meta["outcome"]] += 1
        if "status" not in result:
            continue
        month = ns_to_datetime(row.known_at).isoformat()[:MONTH]
        statuses[month][result["status"]] += 1
        months[month].update({finding["code"] for finding in result["findings"]})
        measured = json.loads(row.telemetry) if row.telemetry else {}
        if isinstance(spent := measured.get("latency_ms"), (int, float)):
            latencies[meta["tier"]].append(float(spent))
    convictions, revised = list[float](), 0
    async for row in _rows_with_text(store, record, "policy_proposal"):
        payload = json.loads(row.payload)
        if payload["proposal"] is not None:
            convictions.append(payload["proposal"]["conviction"])
            revised += payload["round"] > 0
    count = sum(outcomes.values())
    return {
        "reflections": count,
        "outcomes": dict(outcomes),
        "proposals": len(convictions),
        "mean_confidence": fmean(convictions) if convictions else None,
        "refinement_rate": revised / len(convictions) if convictions else None,
        "degraded_share": outcomes["degraded"] / count if count else None,
        "months": [
            {"month": month, "statuses": dict(statuses[month]), "findings": dict(months[month])}
            for month in sorted(statuses)
        ],
        "latency_ms": {tier: _quantiles(spent) for tier, spent in sorted(latencies.items())},
    }


async def sum_up_questions(store: "Store") -> dict[str, Any]:
    """How the newest questions of conversations were answered: confidence, shares, calls with their ms."""
    documents = await store.conversations.newest(MOST_QUESTIONS)
    if not documents:
        return {"questions": 0}
    calls = [call for found in documents for call in found.get("tool_calls") or ()]
    return {
        "questions": len(documents),
        "mean_confidence": fmean(found.get("confidence") or 0.0 for found in documents),
        "clarification_rate": fmean(bool(found.get("clarification")) for found in documents),
        "refinement_rate": fmean(bool(found.get("refined")) for found in documents),
        "calls_per_question": len(calls) / len(documents),
        "latency_ms": _quantiles([call["latency_ms"] for call in calls]),
    }


async def making_of(store: "Store", record: "RunRecord", report_id: str) -> list[dict[str, Any]]:
    """Rows of how the texts of a report were made: rounds, critiques, scores, claims that were checked."""
    found, made = [], set()
    async for row in store.journal.rows(record.run_id, kinds=MAKING):
        payload = json.loads(row.payload)
        if payload.get("report_id") == report_id:
            made.add(payload.get("deliberation_id"))
        elif payload.get("deliberation_id") is None or payload["deliberation_id"] not in made:
            continue
        fields = {name: value for name, value in payload.items() if not name.endswith(IDS)}
        found.append({"seq": row.seq, "kind": row.kind, "fields": fields})
    return found


async def questions_of(store: "Store", record: "RunRecord") -> dict[str, Any]:
    """What models were asked in a run: calls and cost by seat, and the newest questions, newest first.

    The words of a question are made of rows before it and are not stored: `key` is their hash.
    """
    index = await JournalIndex.read(store.journal.rows(record.run_id, kinds={CALL}))
    calls = [_question(event.row) for event in index.of_kind(CALL)]
    seats = costs(RunView(record.run_id, index, 0, None), CostArguments(run=record.run_id)).seats
    by_seat = {seat.seat: [call for call in calls if call["prompt"] == seat.seat] for seat in seats}
    return {
        "seats": [
            seat.model_dump()
            | {
                "outcomes": dict(Counter(call["outcome"] for call in by_seat[seat.seat])),
                "latency_ms": _quantiles([call["latency_ms"] or 0.0 for call in by_seat[seat.seat]]),
            }
            for seat in seats
        ],
        "questions": calls[: -MOST_QUESTIONS - 1 : -1],
    }


def _quantiles(spent: list[float]) -> dict[str, float | None]:
    found = {f"p{q * 100:.0f}": float(np.quantile(spent, q)) if spent else None for q in QUANTILES}
    return {"n": len(spent), **found}


def _question(row: "JournalRow") -> dict[str, Any]:
    payload = json.loads(row.payload)
    call, usage = payload["call"], payload["call"]["usage"] or {}
    named = ("prompt", "provider", "model", "outcome", "text", "message", "key")
    return {
        "seq": row.seq,
        "known_at": row.known_at,
        "symbol": row.symbol,
        **{name: call.get(name) for name in named},
        "input_tokens": usage.get("input_tokens"),
        "output_tokens": usage.get("output_tokens"),
        "usd": payload["usd"],
        "estimated": payload["estimated"],
        "latency_ms": json.loads(row.telemetry or "{}").get("latency_ms"),
    }


async def compare_runs(store: "Store", first: "RunRecord", second: "RunRecord") -> dict[str, Any]:
    """Settings that differ, the figures of both, and the first decision at which they part."""
    return {
        "runs": [first.run_id, second.run_id],
        "settings": _differences(first.config, second.config),
        "figures": {
            name: [((run.document or {}).get("performance") or {}).get(name) for run in (first, second)]
            for name in FIGURES
        },
        "parted": await _first_parting(store, first, second),
    }


def _differences(first: Any, second: Any, path: str = "") -> list[dict[str, Any]]:
    """Fields that differ, by their dotted names."""
    if isinstance(first, dict) and isinstance(second, dict):
        found = []
        for name in sorted({*first, *second}):
            inner = f"{path}.{name}" if path else name
            found += _differences(first.get(name), second.get(name), inner)
        return found
    return [] if first == second else [{"setting": path, "values": [first, second]}]


async def _first_parting(store: "Store", first: "RunRecord", second: "RunRecord") -> dict[str, Any] | None:
    """The first decisions of two runs, in order, that are not the same; None where all are."""
    rows = [store.journal.rows(run.run_id, kinds=DECISIONS) for run in (first, second)]
    while True:
        pair = [await anext(found, None) for found in rows]
        if pair == [None, None]:
            return None
        if pair[0] is None or pair[1] is None or _content(pair[0]) != _content(pair[1]):
            return {"rows": [row and document_of_row(row) for row in pair]}


def _content(row: "JournalRow") -> Any:
    """What was decided: ids and hashes also differ where something else was seen and the same was decided."""
    return row.known_at, row.kind, row.symbol, _without_ids(json.loads(row.payload))


def _without_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_ids(inner) for name, inner in value.items() if not name.endswith(IDS)}
    return [_without_ids(inner) for inner in value] if isinstance(value, list) else value


def document_of_row(row: "JournalRow") -> dict[str, Any]:
    """A row of the journal as plain data, as `journal --jsonl` prints it."""
    head = {name: getattr(row, name) for name in ("seq", "ts_event", "known_at", "kind", "symbol", "hash")}
    return {**head, "payload": json.loads(row.payload)}
