"""The playbooks of a run at a moment as files: active ones to trade with, candidates beside, and their ends.

From a rebuilt session, or from the journal for a moment that the run itself has decided.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas.canonical import ns_to_datetime
from schemas.playbook import PlaybookVersion
from schemas.vocabulary import VersionState
from services.playbooks.measures import revise_fields
from services.playbooks.writing import MANIFEST, named_files, write_playbooks

OPEN = (VersionState.CANDIDATE, VersionState.SHADOW)


def in_force(history: Iterable[PlaybookVersion]) -> tuple[PlaybookVersion, ...]:
    """The latest state of every version, from transitions in order."""
    latest = {version.definition.content_hash: version for version in history}
    return tuple(latest.values())


def renewed(history: Sequence[PlaybookVersion], payload: dict[str, Any]) -> PlaybookVersion:
    """The version as it stands once one of its measures goes on."""
    found = (
        version for version in reversed(history) if version.definition.content_hash == payload["version_hash"]
    )
    return revise_fields(next(found), expires_at=payload["expires_at"])


def write_in_force(
    folder: Path,
    versions: Sequence[PlaybookVersion],
    *,
    run_id: str,
    known_at: int,
    reason: str,
    plan: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Write the versions that are active or on trial; names of the files.

    `plan` is what the manifest says of the change plan that was carried out with it.

    Raises:
        ConfigError: the folder holds something else, or cannot be written; then nothing has changed.
    """
    active, tried = _parted(versions)
    manifest = {
        "run_id": run_id,
        "known_at": ns_to_datetime(known_at).isoformat(),
        "reason": reason,
        "active": [shown_version(version) for version in active],
        "candidates": [shown_version(version) for version in tried],
        **({} if plan is None else {"plan": dict(plan)}),
    }
    return write_playbooks(
        folder,
        [version.definition for version in active],
        [version.definition for version in tried],
        manifest,
    )


def file_names(versions: Sequence[PlaybookVersion]) -> tuple[str, ...]:
    """Names of the files that `write_in_force` writes."""
    active, tried = ([version.definition for version in part] for part in _parted(versions))
    return (*named_files(active, tried), MANIFEST)


def _parted(versions: Sequence[PlaybookVersion]) -> tuple[list[PlaybookVersion], list[PlaybookVersion]]:
    active = [version for version in versions if version.state is VersionState.ACTIVE]
    return active, [version for version in versions if version.state in OPEN]


def shown_version(one: PlaybookVersion) -> dict[str, Any]:
    """A version for a list; `ends` is when its trial ends, or its first measure is weighed again."""
    return {
        "playbook_id": one.definition.id,
        "version": one.definition.version,
        "version_hash": one.definition.content_hash,
        "state": str(one.state),
        "reason": one.reason,
        "ends": None if one.expires_at is None else ns_to_datetime(one.expires_at).isoformat(),
    }
