"""Versions of playbooks as tables: what moved and changed, what is active, and where it was written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from worker.pages.figures import shown_cell
from worker.pages.text_parts import Part, rows_table

TRANSITIONS = {
    "moved": "playbook_id",
    "version": "version",
    "from": "from_version",
    "state": "state",
    "ends": "ends",
    "changes": lambda moved: changes_text(moved["changes"]),
}
VERSIONS = {"playbook": "playbook_id", "version": "version", "state": "state", "until": "ends"}


def changes_text(changes: Sequence[Mapping[str, Any]]) -> str:
    """`risk_fraction 0.005 -> 0.0025`, each field that a new version changes."""
    return "; ".join(f"{c['field']} {shown_cell(c['from'])} -> {shown_cell(c['to'])}" for c in changes)


def outcome_parts(found: Mapping[str, Any], transitions: Sequence[Mapping[str, Any]]) -> Iterator[Part]:
    """What moved, what stands after it, where the files are, and what to do with them."""
    yield rows_table(transitions, TRANSITIONS)
    yield rows_table([*found["active"], *found.get("on_trial", ())], VERSIONS)
    if (written := found["written"]) is not None:
        plan = f", as plan {written['plan_id']}" if written.get("plan_id") else ""
        yield f"wrote {len(written['files'])} files to {written['folder']}{plan}"
        yield f'Next: set runtime.playbooks = "{written["folder"]}" to trade with them.'
