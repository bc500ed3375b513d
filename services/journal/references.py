"""Whether every id in a journal leads somewhere: an artifact that names another one must find it.

One table says which field of which kind names what.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from services.journal.index import Event, JournalIndex

HASHES = {
    "snapshot_hash": "policy_snapshot",
    "proposal_hash": "policy_proposal",
    "reflection_hash": "policy_reflection",
}
POLICY_HASHES = HASHES | {"verdict_hash": "boundary_verdict", "replaces": "policy_frozen"}
OWNER = {"policy_id": "policy_frozen"}
AMENDED = {"amendment_id": "policy_amended"}
JUDGED = {"report_id": "high_level_report", "verdict_id": "replan_verdict"}
PLANNED = {"plan_id": "two_phase_phase1_complete"}
CHECKED = {"verdict_id": "guard_verdict"}
DELIBERATED = {"deliberation_id": "deliberation"}

# kind -> dotted field -> kind of the artifact it names; a field may be null, and may hold a list.
REFERENCES: dict[str, dict[str, str]] = {
    "policy_skip": {"event_id": "policy_event"},
    "policy_snapshot": {"event_id": "policy_event"},
    "strategist_background": {"snapshot_hash": "policy_snapshot"},
    "policy_proposal": {"snapshot_hash": "policy_snapshot", "amendment.policy_id": "policy_frozen"},
    "policy_reflection": {
        "proposal_hash": "policy_proposal",
        "snapshot_hash": "policy_snapshot",
        "result.memory.winners.episode_id": "episode",
        "result.memory.losers.episode_id": "episode",
        "result.memory.failures.episode_id": "episode",
    },
    "proposal_clamped": {"proposal_hash": "policy_proposal", "snapshot_hash": "policy_snapshot"},
    "boundary_verdict": HASHES,
    "policy_frozen": {f"policy.{name}": kind for name, kind in POLICY_HASHES.items()}
    | {"policy.playbook_hash": "playbook_version"},
    "policy_amended": OWNER
    | {
        "amended.policy_id": "policy_frozen",
        "amended.snapshot_hash": "policy_snapshot",
        "amended.amendment_hash": "policy_proposal",
        "amended.reflection_hash": "policy_reflection",
        "amended.verdict_hash": "boundary_verdict",
    },
    "policy_evaluation": {"event_id": "policy_event", "snapshot_hash": "policy_snapshot"} | OWNER | AMENDED,
    "stop_tightened": AMENDED,
    "order_accepted": OWNER,
    "entry_filled": OWNER | {"order_id": "order_accepted"},
    "add_filled": OWNER | {"entry_order_id": "order_accepted"},
    "scale_out_filled": OWNER | {"entry_order_id": "order_accepted"},
    "exit_filled": OWNER | {"entry_order_id": "order_accepted"},
    "episode": {"episode.policy_id": "policy_frozen", "episode.playbook_hash": "playbook_version"},
    "shadow_episode": {"version_hash": "playbook_version"},
    "measure_renewed": {"version_hash": "playbook_version"},
    "high_level_request": {"request.episode_ids": "episode"},
    "high_level_report": {"request_hash": "high_level_request", "report.evidence_refs": "episode"},
    "fact_check": {
        "report_id": "high_level_report",
        "verdict_id": "replan_verdict",
        "proposal_hash": "policy_proposal",
        "snapshot_hash": "policy_snapshot",
    },
    "deliberation": {"report_id": "high_level_report", "proposal_hash": "policy_proposal"},
    "reflection_critique": DELIBERATED,
    "reflection_correction": DELIBERATED,
    "review_cycle": DELIBERATED,
    "chunk_outline": DELIBERATED,
    "chunk_write": DELIBERATED,
    "evidence_plan": {"report_id": "high_level_report"},
    "evidence_call": {"evidence_id": "evidence_plan"},
    "guard_settled": CHECKED,
    "guard_outcome": CHECKED,
    "guard_asked": CHECKED,
    "guard_decided": CHECKED,
    "replan_verdict": {"report_id": "high_level_report"},
    "two_phase_phase1_start": JUDGED,
    "two_phase_phase1_complete": JUDGED,
    "plan_decided": PLANNED,
    "plan_step": PLANNED | {"versions": "playbook_version"},
    "two_phase_phase2_complete": PLANNED,
    "playbook_version": {
        "report_id": "high_level_report",
        "verdict_id": "replan_verdict",
        "parent_hash": "playbook_version",
    },
}


@dataclass(frozen=True)
class ReferenceReport:
    """Result of the check: one line for each id that leads nowhere, or the problem why none was followed.

    `pruned` ids name rows whose text was taken; there are no more of a kind than such rows.
    """

    ok: bool
    checked: int
    dangling: tuple[str, ...]
    problem: str | None = None
    pruned: int = 0


def check_references(index: JournalIndex, *, finished: bool) -> ReferenceReport:
    """Follow every id of a journal.

    Args:
        index: all rows of the run.
        finished: false for a run that broke off, whose last moment may be incomplete and is left out.
    """
    open_from = None if finished or not index.events else index.events[-1].row.known_at
    checked = 0
    lost: list[tuple[str, str, str]] = []  # kind, id, and what to say of it
    for event in index.events:
        if open_from is not None and event.row.known_at >= open_from:
            continue
        for name, kind, key in references(event):
            checked += 1
            if index.get(kind, key) is None:
                where = f"row {event.row.seq} ({event.row.kind})"
                lost.append((kind, key, f"{where}: {name} {key[:16]} names no {kind}"))
    missing = Counter(kind for kind, _ in {(kind, key) for kind, key, _ in lost})
    pruned = {kind for kind, count in missing.items() if count <= index.pruned[kind]}
    dangling = tuple(line for kind, _, line in lost if kind not in pruned)
    return ReferenceReport(not dangling, checked, dangling, pruned=len(lost) - len(dangling))


def references(event: Event) -> Iterator[tuple[str, str, str]]:
    """(field, kind it names, id) of every id that an event holds."""
    for name, kind in REFERENCES.get(event.row.kind, {}).items():
        for key in _values(event.payload, name.split(".")):
            yield name, kind, key


def _values(value: Any, path: list[str]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _values(item, path)
    elif not path:
        if value is not None and value != "":  # a plan with its own rules follows no version
            yield value
    elif isinstance(value, dict):
        yield from _values(value.get(path[0]), path[1:])
