"""The journal rows of one refined text: what became of it, and each of its events."""

from collections.abc import Iterator
from typing import Any

from schemas.canonical import content_hash, content_id
from schemas.claims import FactCheck
from schemas.deliberation import Critique, Deliberation

Row = tuple[str, dict[str, Any], dict[str, Any]]
KIND = "deliberation"


def deliberation_rows(
    done: Deliberation, text: str, *, report_id: str | None = None, proposal_hash: str | None = None
) -> Iterator[Row]:
    """Kind, payload and telemetry of each row; none for a text that was skipped.

    Args:
        done: the outcome.
        text: what kind of text it is: `narrative` or `rationale`.
        report_id: of the report that has the text.
        proposal_hash: of the proposal that has it.
    """
    if done.status == "skipped":
        return
    payload = {"report_id": report_id, "proposal_hash": proposal_hash, "text": text, **_outcome(done)}
    deliberation_id = content_id(payload)
    measured = {"elapsed_ms": done.elapsed_ms, "error": done.error}  # its words may hold a time
    yield KIND, {"deliberation_id": deliberation_id, **payload}, measured
    for event in done.events:
        fields = {"deliberation_id": deliberation_id, **event.payload()["fields"]}
        yield event.kind, fields, {"elapsed_ms": event.elapsed_ms}


def check_row(text: str, checked: FactCheck, kept: bool) -> dict[str, Any]:
    """What a row says of the check of one kind of text.

    Args:
        text: what kind of text it is: `narrative` or `judge_reason`.
        checked: the check.
        kept: whether any of the text stands.
    """
    claims = [claim.payload() for claim in checked.claims]
    counts = {**checked.counts, "dropped_comments": checked.dropped_comments}
    return {"text": text, "kept": kept, "counts": counts, "claims": claims}


def _outcome(done: Deliberation) -> dict[str, Any]:
    return {
        "preset": done.preset,
        "status": done.status,
        "stop_reason": done.stop_reason,
        "degraded_from": done.degraded_from,
        "changed": done.changed,
        "final_hash": content_hash(done.final),
        "candidates": [
            {"number": c.number, "hash": c.hash, "parent": c.parent, "round": c.round, "author": c.author}
            for c in done.candidates
        ],
        "critiques": [_critique(critique) for critique in done.critiques],
        "self_reported_gain": done.self_reported_gain,
        "verified_gain": done.verified_gain,
        "usage": done.usage.payload(),
        **({"cleaned": done.cleaned} if done.cleaned else {}),
    }


def _critique(critique: Critique) -> dict[str, Any]:
    """A critique with the codes of its findings; their words stand in the fact check."""
    kept = critique.payload()
    return kept | {"findings": [found.code for found in critique.findings]}
