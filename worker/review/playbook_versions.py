"""Versions of playbooks as plain data: of files, of a run with what they have shown, and rolled back."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError, nearest
from schemas.playbook import PlaybookDefinition, PlaybookVersion
from schemas.settings import Settings
from schemas.vocabulary import VersionState
from services.evidence_tools.playbook_history import KINDS, PlaybookHistory
from services.playbooks.loader import load_playbooks
from services.playbooks.version_diff import changes
from services.playbooks.writing import write_playbooks
from services.policy_checks.static_checks import list_mistakes
from worker.review.playbook_files import shown_version, versions_at, write_in_force
from worker.runs import run_inputs
from worker.runs.replay import Rebuilt
from worker.runs.stored_settings import SettingsOfAnotherVersion, stored_settings
from worker.settings import load_settings

if TYPE_CHECKING:
    from services.store import RunRecord, Store

EMBEDDED = "embedded"


def export_definitions(folder: Path, config: Path | None) -> tuple[str, ...]:
    """Write the embedded playbooks, or those of settings; names of the files."""
    definitions: tuple[PlaybookDefinition, ...] = (
        load_playbooks() if config is None else run_inputs.playbooks(load_settings(config).settings)
    )
    manifest: dict[str, Any] = {"reason": f"export of {config or EMBEDDED}"}
    return write_playbooks(folder, definitions, (), manifest)


async def export_in_force(store: "Store", run_id: str, folder: Path, at: int | None) -> tuple[str, ...]:
    """Write the playbooks in force in a run at a time, ns, or at its end; names of the files.

    Raises:
        ConfigError: none was in force then.
    """
    versions = await versions_at(store, run_id, at)
    active = [version for version in versions if version.state is VersionState.ACTIVE]
    if not active:
        when = "" if at is None else f" at {ns_to_datetime(at).isoformat()}"
        raise ConfigError(
            f"run {run_id} had no playbook in force{when}: `thinktwice playbooks list {run_id}` has times"
        )
    moment = max(version.since for version in active) if at is None else at
    reason = f"export of {run_id}"
    return write_in_force(folder, versions, run_id=run_id, known_at=moment, reason=reason)


def document_of_files(source: str) -> dict[str, Any]:
    """Playbooks before a run, with what no market can make right in them at the default settings."""
    found = load_playbooks(Path(source))
    shown = [
        {
            "playbook_id": definition.id,
            "version_hash": definition.content_hash,
            "directions": list(definition.rules),
            "timeframes": list(definition.timeframes),
            "horizon_bars": definition.horizon_bars,
        }
        for definition in found
    ]
    mistakes = _mistakes(found, Settings())
    return {"source": source, "playbooks": shown, "mistakes": mistakes}


async def document_of_run(
    store: "Store", record: "RunRecord", name: str | None, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Every version of a playbook of a run, or of all, and what no market can make right in those in force.

    Where this version does not know the settings of the run, that is told, and what trades have shown is
    left out.

    Raises:
        ConfigError: the run has no such playbook.
    """
    settings = None
    try:
        settings = stored_settings(record)
    except SettingsOfAnotherVersion as error:
        tell(f"what trades have shown is left out: {error}")
    found = await read_history(store, record, settings)
    if name is not None:
        require_known(name, found.names(), record.run_id)
    active = [version.definition for version in found.of(name) if version.latest.state == "active"]
    return {
        "run_id": record.run_id,
        **({} if name is None else {"playbook_id": name}),
        "versions": [found.document_with_means(version) for version in found.of(name)],
        "mistakes": [] if settings is None else _mistakes(active, settings),
    }


def _mistakes(books: Sequence[PlaybookDefinition], settings: Settings) -> list[dict[str, str]]:
    return [asdict(mistake) for mistake in list_mistakes(books, settings)]


async def read_history(store: "Store", record: "RunRecord", settings: Settings | None) -> PlaybookHistory:
    """The history of the playbooks of a run; without its settings, not what trades have shown."""
    found = PlaybookHistory(settings)
    await found.read(store.journal.rows(record.run_id, kinds=KINDS))
    return found


def require_known(name: str, known: list[str], run_id: str) -> None:
    """Refuse a name that no playbook of a run has.

    Raises:
        ConfigError: it names the nearest.
    """
    if name not in known:
        listing = ", ".join(known) or "none"
        raise ConfigError(f"run {run_id} has no playbook {name!r} (it has {listing}).{nearest(name, known)}")


def roll_back_version(rebuilt: Rebuilt, name: str, write: Path | None) -> dict[str, Any]:
    """Roll back in the rebuilt lifecycle; the run keeps its own."""
    session, at = rebuilt.session, rebuilt.known_at
    before = session.books.reader.get(name)
    moved = session.books.lifecycle.rollback(name, at, "rolled back by the operator")
    versions = session.books.registry.latest()
    files = None
    if write is not None:
        reason = f"rollback of {name}"
        names = write_in_force(write, versions, run_id=rebuilt.run_id, known_at=at, reason=reason)
        files = {"folder": str(write), "files": list(names)}
    return {
        "run_id": rebuilt.run_id,
        "playbook_id": name,
        "known_at": at,
        "transitions": [_describe_move(version, before) for version in moved],
        "active": [shown_version(version) for version in versions if version.state == "active"],
        "written": files,
    }


def _describe_move(version: PlaybookVersion, before: PlaybookVersion) -> dict[str, Any]:
    """A transition of a rollback; what becomes active is told against what was."""
    active = version.state == "active"
    differs = changes(before.definition, version.definition) if active else ()
    return {
        **shown_version(version),
        "from_version": before.definition.version if active else version.definition.version,
        "changes": [change.payload() for change in differs],
    }
