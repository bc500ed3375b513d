"""Versions of playbooks in lines: what moved, what changed, what is active, and where it was written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from worker.pages.figures import shown_cell


def transition_lines(transitions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """One line for each transition, and one for each field that a new version changes."""
    for moved in transitions:
        came = f" from version {moved['from_version']}" if moved["from_version"] != moved["version"] else ""
        ends = "" if moved["ends"] is None else f", ends {moved['ends'][:16].replace('T', ' ')}"
        yield f"{moved['playbook_id']} version {moved['version']}{came}: {moved['state']}{ends}"
        yield from (f"  {line}" for line in change_lines(moved["changes"]))


def change_lines(changes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """`risk_fraction 0.005 -> 0.0025`."""
    for change in changes:
        yield f"{change['field']} {shown_cell(change['from'])} -> {shown_cell(change['to'])}"


def version_lines(title: str, versions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Versions with when they end."""
    if versions:
        yield f"{title}:"
    for version in versions:
        ends = "" if version["ends"] is None else f"  until {version['ends'][:16].replace('T', ' ')}"
        yield f"  {version['playbook_id']} version {version['version']}{ends}"


def written_lines(written: Mapping[str, Any] | None) -> Iterator[str]:
    """Where the files are, and what to do with them."""
    if written is not None:
        plan = f", as plan {written['plan_id']}" if written.get("plan_id") else ""
        yield f"wrote {len(written['files'])} files to {written['folder']}{plan}"
        yield f'Next: set runtime.playbooks = "{written["folder"]}" to trade with them.'
