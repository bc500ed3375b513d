"""Requests as a run made them: rebuilt from its journal, each with the memory that its reflection read."""

from collections.abc import Iterator
from typing import Any

from schemas.settings import Settings
from schemas.snapshot import PolicySnapshot
from services.playbooks.loader import load_playbooks
from services.playbooks.registry import PlaybookRegistry
from services.policy_loop.invariant_context import invariant_context
from tests.worker.shared_runs import Run
from trading_core.tick_guard import TickGuard


def requests_of(run: Run) -> Iterator[dict[str, Any]]:
    """Documents of every plan that the run reflected on, in order, as `thinktwice check` reads them."""
    snapshots = {part["snapshot_hash"]: part["snapshot"] for part in run.of("policy_snapshot")}
    proposals = {part["proposal_hash"]: part["proposal"] for part in run.of("policy_proposal")}
    versions = {part["version_hash"]: part["definition"] for part in run.of("playbook_version")}
    reader = PlaybookRegistry(load_playbooks(None), TickGuard(), 0).reader()
    for result in (part["result"] for part in run.of("policy_reflection")):
        if proposals.get(result["proposal_hash"]) is None:  # an amendment's
            continue
        snapshot = snapshots[result["snapshot_hash"]]
        guardrails = invariant_context(Settings(), PolicySnapshot.model_validate(snapshot), reader, ())
        yield {
            "snapshot": snapshot,
            "proposal": proposals[result["proposal_hash"]],
            "playbook": versions[result["playbook_hash"]],
            "state": snapshot["state"],
            "memory": result["memory"],
            "invariants": guardrails.payload(),
        }
