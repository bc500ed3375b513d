"""How plans stand by the journal: each row about a plan moves its row in the store, in one transaction."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import update
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.plan import ChangePlan
from services.journal.chain import JournalRow
from services.store.plan_records import (
    PlanDecision,
    StoredPlan,
    new_columns,
    revision_columns,
    stored_plan,
    with_decision,
)
from services.store.tables import change_plans


async def project(connection: AsyncConnection, run_id: str, rows: Sequence[JournalRow]) -> None:
    """Move the plans of a run by rows about them, in order; the journal has the last word."""
    for row in rows:
        payload = json.loads(row.payload)
        if payload.get("plan_id") is None:
            continue
        stored = await stored_plan(connection, run_id, payload["plan_id"])
        if stored is None and row.kind == "two_phase_phase1_complete" and payload["plan"] is not None:
            plan = ChangePlan.model_validate(payload["plan"])
            elapsed_ms = (json.loads(row.telemetry or "null") or {}).get("elapsed_ms")
            told = {"reasoning": payload["reasoning"], "elapsed_ms": elapsed_ms and round(elapsed_ms)}
            told["journalled"] = True
            await connection.execute(change_plans.insert().values(new_columns(run_id, plan, **told)))
        elif stored is not None:
            own = (change_plans.c.run_id == run_id) & (change_plans.c.plan_id == payload["plan_id"])
            values = _moved(stored, row, payload)
            await connection.execute(update(change_plans).where(own).values({"journalled": 1, **values}))


def _moved(stored: StoredPlan, row: JournalRow, payload: dict[str, Any]) -> dict[str, Any]:
    """What a row changes of a plan that is there."""
    if row.kind == "two_phase_phase1_complete" and payload["plan_hash"] not in stored.hashes:
        rest = ChangePlan.model_validate(payload["plan"])  # behind a checkpoint
        return revision_columns((*stored.revisions, rest)) | {"state": "awaiting_approval"}
    if row.kind == "plan_decided":
        return _decided(stored, row, payload)
    if row.kind == "plan_step":
        steps = {str(number): state for number, state in stored.record.steps.items()}
        steps[str(payload["number"])] = payload["state"]
        values = {"steps": json.dumps(steps), "phase": payload["phase"]}
        return values | {"reasons": json.dumps([payload["reason"]])} if payload["reason"] else values
    if row.kind == "two_phase_phase2_complete":
        values = {"state": payload["status"], "phase": payload["phase"]}
        back = payload["status"] == "rolled_back"
        undone = json.dumps(dict.fromkeys(map(str, stored.record.steps), "undone"))
        return values | {"steps": undone} if back else values
    return {}


def _decided(stored: StoredPlan, row: JournalRow, payload: dict[str, Any]) -> dict[str, Any]:
    """A decision; the one that a command has taken before keeps its own time."""
    record = stored.record
    values: dict[str, Any] = {"state": payload["state"], "reasons": json.dumps(payload["reasons"])}
    if payload["plan"] is not None and payload["plan_hash"] != record.hash:
        plan = ChangePlan.model_validate(payload["plan"])
        values |= revision_columns((*stored.revisions, plan))
    said = (payload["decision"], payload["plan_hash"], payload["by"])
    last = record.decisions[-1] if record.decisions else None
    if last is None or (last.decision, last.hash, last.by) != said:
        decision = PlanDecision(said[0], payload["revision"], said[1], said[2], row.known_at)
        values["decisions"] = with_decision(record.decisions, decision)
    return values
