"""`thinktwice playbooks export`: the playbooks in force as files, to read, to change and to trade with."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError
from services.model_calls.quoting import counted
from worker.cli import wiring
from worker.cli.console import print_json, print_line, time_option
from worker.cli.options import AtOption, DbOption, JsonOption, argument, open_for_run
from worker.runs.interrupts import run_async
from worker.settings import load_settings

if TYPE_CHECKING:
    from schemas.playbook import PlaybookDefinition

EMBEDDED, LATEST, SETTINGS = "embedded", "latest", ".toml"
SourceArgument = Annotated[
    str,
    argument(
        metavar="SOURCE",
        help="'embedded', a TOML file of settings, a run id, a unique prefix of one, or 'latest'. [embedded]",
    ),
]
FolderArgument = Annotated[
    Path | None, argument(metavar="DIR", help="Folder that is new, empty, or was written so before.")
]


def export(
    source: SourceArgument = "",
    folder: FolderArgument = None,
    at: AtOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Write the playbooks in force, embedded, of settings or of a run, as files to change and trade."""
    from services.playbooks.writing import demand_writable

    if folder is None:
        source, folder = EMBEDDED, _lone(source)
    demand_writable(folder, "the folder")
    names = _written(source, folder, at, db)
    found = {"source": source, "folder": str(folder), "files": list(names)}
    if json:
        print_json(found)
        return
    playbooks = counted(sum("/" not in name for name in names) - 1, "playbook")
    whose = "the embedded strategy" if source == EMBEDDED else source
    print_line(f"wrote {playbooks} of {whose} into {folder}")
    print_line(f'Next: runtime.playbooks = "{folder}" in the settings, and they are traded.')


def _lone(word: str) -> Path:
    if not word:
        raise ConfigError("name a folder to write into: `thinktwice playbooks export DIR`")
    if word in (EMBEDDED, LATEST) or word.endswith(SETTINGS):
        raise ConfigError(f"{word!r} says whose playbooks, not where to: name a folder after it")
    return Path(word)


def _written(source: str, folder: Path, at: str | None, db: str | None) -> tuple[str, ...]:
    if source != EMBEDDED and not source.endswith(SETTINGS):
        return run_async(_of_run(source, folder, None if at is None else time_option(at, "--at"), db))
    if at is not None:
        raise ConfigError(f"--at {at!r} goes with a run: {source!r} has no time")
    return _of_definitions(source, folder)


def _of_definitions(source: str, folder: Path) -> tuple[str, ...]:
    from services.playbooks.loader import load_playbooks
    from services.playbooks.writing import write_playbooks

    definitions: tuple[PlaybookDefinition, ...] = (
        load_playbooks() if source == EMBEDDED else wiring.playbooks(load_settings(Path(source)).settings)
    )
    manifest: dict[str, Any] = {"reason": f"export of {source}"}
    return write_playbooks(folder, definitions, (), manifest)


async def _of_run(run: str, folder: Path, at: int | None, db: str | None) -> tuple[str, ...]:
    from schemas.vocabulary import VersionState
    from worker.review.plan_folder import versions_at
    from worker.review.playbook_files import write_in_force

    store, record = await open_for_run(db, run)
    async with store:
        versions = await versions_at(store, record.run_id, at)
    active = [version for version in versions if version.state is VersionState.ACTIVE]
    if not active:
        when = "" if at is None else f" at {ns_to_datetime(at).isoformat()}"
        raise ConfigError(
            f"run {record.run_id} had no playbook in force{when}: `thinktwice playbooks list {run}` has times"
        )
    moment = max(version.since for version in active) if at is None else at
    reason = f"export of {record.run_id}"
    return write_in_force(folder, versions, run_id=record.run_id, known_at=moment, reason=reason)
