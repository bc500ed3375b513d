"""A stored run as plain data, as lists of runs have it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from services.store import RunRecord

PLAIN = ("run_id", "name", "created_at", "mode", "status", "config_hash", "data", "events", "head_hash")


def document_of(record: "RunRecord") -> dict[str, Any]:
    """One entry of what `runs --json` prints."""
    doubts = ((record.document or {}).get("data") or {}).get("doubts", [])
    named = {name: getattr(record, name) for name in (*PLAIN, "environment", "damage")}
    return named | {"doubts": doubts, "ended_early": (record.ended_early or {}).get("reason")}
