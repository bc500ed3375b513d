"""`thinktwice playbooks`: versions of a run's playbooks, where they came from, as files, and the way back."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError, nearest
from services.high_level.report_lines import interval_text
from services.model_calls.quoting import count_noun
from worker.cli import wiring
from worker.cli.console import complain, print_document, print_line, print_lines, print_table, time_option
from worker.cli.open_runs import open_to_write, queue_request, takes_requests, told_request
from worker.cli.options import (
    LATEST,
    AtOption,
    DataOption,
    DbOption,
    JsonOption,
    RunArgument,
    RunOption,
    argument,
    open_for_run,
    option,
)
from worker.cli.rebuilt import rebuilt_run
from worker.cli.replan import WriteOption, change_lines, transition_lines, version_lines, written_lines
from worker.cli.run_options import OPTIONS, ConfigArgument
from worker.pages.figures import DASH, r_multiple, shown_time
from worker.pages.tables import made_table
from worker.runs.replay import SettingsOfAnotherVersion, stored_settings
from worker.settings import load_settings

if TYPE_CHECKING:
    from schemas.playbook import PlaybookDefinition, PlaybookVersion
    from schemas.settings import Settings
    from services.evidence_tools.playbook_history import PlaybookHistory
    from services.store import RunRecord, Store
    from worker.runs.replay import Rebuilt

EMBEDDED = "embedded"
FolderArgument = Annotated[
    Path, argument(metavar="DIR", help="Folder that is new, empty, or was written so before.")
]
SourceOption = Annotated[
    str | None, option("--run", metavar="RUN", help="Those of this run. [of CONFIG, else the embedded]")
]


async def export(
    folder: FolderArgument,
    config: ConfigArgument = None,
    run: SourceOption = None,
    at: AtOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Write the playbooks in force, embedded, of settings or of a run, as files to change and trade."""
    from services.playbooks.writing import demand_writable

    if str(folder) == LATEST:
        raise ConfigError("'latest' is a run, not where to: `thinktwice playbooks export DIR --run latest`")
    demand_writable(folder, "the folder")
    if run is not None and config is not None:
        raise ConfigError("CONFIG and --run both say whose playbooks: give one of them")
    if run is not None:
        names = await _of_run(run, folder, None if at is None else time_option(at, "--at"), db)
    elif at is not None:
        raise ConfigError(f"--at {at!r} goes with a run: name it with --run")
    else:
        names = _of_definitions(config, folder)
    source = run or (EMBEDDED if config is None else str(config))
    print_document({"source": source, "folder": str(folder), "files": list(names)}, json, _render_export)


def _render_export(found: dict[str, Any]) -> None:
    source, folder = found["source"], found["folder"]
    playbooks = count_noun(sum("/" not in name for name in found["files"]) - 1, "playbook")
    whose = "the embedded strategy" if source == EMBEDDED else source
    print_line(f"wrote {playbooks} of {whose} into {folder}")
    print_line(f'Next: runtime.playbooks = "{folder}" in the settings, and they are traded.')


def _of_definitions(config: Path | None, folder: Path) -> tuple[str, ...]:
    from services.playbooks.loader import load_playbooks
    from services.playbooks.writing import write_playbooks

    definitions: tuple[PlaybookDefinition, ...] = (
        load_playbooks() if config is None else wiring.playbooks(load_settings(config).settings)
    )
    manifest: dict[str, Any] = {"reason": f"export of {config or EMBEDDED}"}
    return write_playbooks(folder, definitions, (), manifest)


async def _of_run(run: str, folder: Path, at: int | None, db: str | None) -> tuple[str, ...]:
    from schemas.vocabulary import VersionState
    from worker.review.playbook_files import versions_at, write_in_force

    async with open_for_run(db, run) as (store, record):
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


app = typer.Typer(
    no_args_is_help=True, help="Versions of playbooks: list them, their history, as files, the way back."
)
app.command("export")(export)
NameArgument = Annotated[str, argument(metavar="NAME", help="Id of a playbook.")]


@app.command("list")
async def list_playbooks(
    run: RunArgument = LATEST,
    playbooks: Annotated[str | None, OPTIONS["playbooks"]] = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """List every version of every playbook of a run, or what lies in files, and their mistakes."""
    if playbooks is None:
        print_document(await _history(run, None, db), json, _render_list)
    elif run != LATEST or db is not None:
        raise ConfigError("RUN and --playbooks both say whose playbooks: give one of them, without --db")
    else:
        print_document(_of_files(playbooks), json, _render_files)


def _of_files(source: str) -> dict[str, Any]:
    """Playbooks before a run, with what no market can make right in them at the default settings."""
    from schemas.settings import Settings
    from services.playbooks.loader import load_playbooks
    from services.policy_checks.static_checks import list_mistakes

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
    mistakes = [asdict(mistake) for mistake in list_mistakes(found, Settings())]
    return {"source": source, "playbooks": shown, "mistakes": mistakes}


@app.command("history")
async def history(
    name: NameArgument, run: RunOption = LATEST, db: DbOption = None, json: JsonOption = False
) -> None:
    """Show every version of a playbook: how it came, what it changed, evidence and counter-evidence."""
    print_document(await _history(run, name, db), json, _render_history)


@app.command("rollback")
async def rollback(
    name: NameArgument,
    run: RunOption = LATEST,
    write: WriteOption = None,
    data: DataOption = None,
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Return a playbook to the last version that traded differently; a run that trades is asked to."""
    if write is not None:
        from services.playbooks.writing import demand_writable

        demand_writable(write)
    async with open_to_write(db, run) as (store, record):
        _demand_known(name, (await _read(store, record, None)).names(), record.run_id)
        trades = takes_requests(record)
        if trades and write is not None:
            raise ConfigError(f"run {record.run_id} trades: its playbooks change in it; leave out --write")
        if trades:
            found = await queue_request(store, record, "rollback", {"playbook_id": name})
        else:
            found = _take_back(await rebuilt_run(store, record, data), name, write)
    print_document(found, json, _render_rollback)


async def _history(run: str, name: str | None, db: str | None) -> dict[str, Any]:
    async with open_for_run(db, run) as (store, record):
        settings = _settings(record)
        found = await _read(store, record, settings)
    if name is not None:
        _demand_known(name, found.names(), record.run_id)
    named = {} if name is None else {"playbook_id": name}
    versions = [found.document_with_means(version) for version in found.of(name)]
    mistakes = _mistakes(found, name, settings)
    return {"run_id": record.run_id, **named, "versions": versions, "mistakes": mistakes}


def _mistakes(
    found: "PlaybookHistory", name: str | None, settings: "Settings | None"
) -> list[dict[str, str]]:
    """What no market can make right in the playbooks that are in force, under the settings of the run."""
    from services.policy_checks.static_checks import list_mistakes

    active = [version.definition for version in found.of(name) if version.latest.state == "active"]
    return [] if settings is None else [asdict(mistake) for mistake in list_mistakes(active, settings)]


def _settings(record: "RunRecord") -> "Settings | None":
    """Those of the run; None, with a word on stderr, where this version does not know them."""
    try:
        return stored_settings(record)
    except SettingsOfAnotherVersion as error:
        complain(f"what trades have shown is left out: {error}")
        return None


async def _read(store: "Store", record: "RunRecord", settings: "Settings | None") -> "PlaybookHistory":
    from services.evidence_tools.playbook_history import KINDS, PlaybookHistory

    found = PlaybookHistory(settings)
    await found.read(store.journal.rows(record.run_id, kinds=KINDS))
    return found


def _demand_known(name: str, known: list[str], run_id: str) -> None:
    if name not in known:
        listing = ", ".join(known) or "none"
        raise ConfigError(f"run {run_id} has no playbook {name!r} (it has {listing}).{nearest(name, known)}")


def _take_back(rebuilt: "Rebuilt", name: str, write: Path | None) -> dict[str, Any]:
    """Roll back in the rebuilt lifecycle; the run keeps its own."""
    from worker.review.playbook_files import shown_version, write_in_force

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
        "transitions": [_tell_move(version, before) for version in moved],
        "active": [shown_version(version) for version in versions if version.state == "active"],
        "written": files,
    }


def _tell_move(one: "PlaybookVersion", before: "PlaybookVersion") -> dict[str, Any]:
    """A transition of a rollback; what becomes active is told against what was."""
    from services.playbooks.version_diff import changes
    from worker.review.playbook_files import shown_version

    active = one.state == "active"
    differs = changes(before.definition, one.definition) if active else ()
    return {
        **shown_version(one),
        "from_version": before.definition.version if active else one.definition.version,
        "changes": [change.payload() for change in differs],
    }


def _render_files(found: dict[str, Any]) -> None:
    rows = (
        (
            shown["playbook_id"],
            ", ".join(shown["directions"]),
            ", ".join(shown["timeframes"]) or "any",
            str(shown["horizon_bars"]),
        )
        for shown in found["playbooks"]
    )
    print_table(made_table(("playbook", "directions", "bars", "horizon"), rows))
    _print_mistakes(found)


def _print_mistakes(found: dict[str, Any]) -> None:
    print_lines(f"{told['playbook_id']}, {told['field']}: {told['message']}" for told in found["mistakes"])


def _render_list(found: dict[str, Any]) -> None:
    heads = ("playbook", "version", "state", "since", "trial", "trades", "mean", "paper", "mean")
    rows = (
        (
            version["playbook_id"],
            str(version["version"]),
            version["state"],
            shown_time(version["since"]),
            version["trial"] or DASH,
            *_tell_counts(version["account"]),
            *_tell_counts(version["paper"]),
        )
        for version in found["versions"]
    )
    print_table(made_table(heads, rows))
    _print_mistakes(found)


def _render_history(found: dict[str, Any]) -> None:
    for version in found["versions"]:
        print_lines(_version_lines(version))


def _tell_counts(shown: dict[str, Any] | None) -> tuple[str, str]:
    return (DASH, DASH) if shown is None else (str(shown["n"]), r_multiple(shown["mean_all_r"]))


def _render_rollback(found: dict[str, Any]) -> None:
    if "request" in found:
        print_line(told_request(found))
        return
    lines = [
        f"playbook {found['playbook_id']} of {found['run_id']} at {shown_time(found['known_at'])}",
        *transition_lines(found["transitions"]),
        *version_lines("active", found["active"]),
        *written_lines(found["written"]),
    ]
    if found["written"] is None:
        lines.append("Next: --write DIR keeps the playbooks as files to trade with; the run stays as it is.")
    print_lines(lines)


def _version_lines(one: dict[str, Any]) -> Iterator[str]:
    parent = "from a file" if one["parent"] is None else f"from version {one['parent']}"
    trial = "" if one["trial"] is None else f", tried as {one['trial']}"
    yield f"{one['playbook_id']} version {one['version']} ({one['version_hash'][:16]}), {parent}{trial}"
    yield from (f"  {line}" for line in change_lines(one["changes"]))
    ids = [
        f"{name.removesuffix('_id')} {one[name][:16]}"
        for name in ("report_id", "verdict_id", "action_id")
        if one[name]
    ]
    if ids:
        yield f"  by {', '.join(ids)}"
    for step in sorted([*one["transitions"], *one["renewals"]], key=lambda step: step["known_at"]):
        yield f"  {shown_time(step['known_at'])}  {_step(step)}"
    for title, shown in (
        ("evidence", one["evidence"]),
        ("counter-evidence", one["counter_evidence"]),
        ("on paper", one["paper"]),
        ("on the account", one["account"]),
    ):
        if shown:
            yield from (f"  {title}{part}" for part in _parts(shown))
    for cell, shown in one["banned_cells"].items():
        yield f"  on paper in banned {cell}: {_evidence(shown)}"


def _step(step: dict[str, Any]) -> str:
    """A transition, or a measure that was renewed."""
    if "measure" in step:
        shown = _evidence(step["shown"]) or "no trade yet"
        return f"renewed until {shown_time(step['until'])}: {step['measure']}; since it was taken {shown}"
    ends = "" if step["expires_at"] is None else f", {_ends(step['state'])} {shown_time(step['expires_at'])}"
    reason = step["reason"].partition(":")[0] if step["state"] == "shadow" else step["reason"]
    return f"{step['state']}{ends}: {reason}"


def _ends(state: str) -> str:
    """A trial ends; the measures of what is active are weighed again."""
    return "weighed again" if state == "active" else "ends"


def _parts(shown: dict[str, Any]) -> Iterator[str]:
    """What was shown; `blocks` and `e_value` of what is paired with an incumbent are of the difference."""
    if "incumbent_n" not in shown:
        yield f": {_evidence(shown)}"
        return
    difference = shown.get("difference_r")
    made = "no block yet" if difference is None else f"{r_multiple(difference)} a block"
    trades = f"n {_figure(shown.get('n', 0))} against {_figure(shown['incumbent_n'])}"
    paired = {name: shown.get(name) for name in ("blocks", "e_value")}
    yield f", difference from the incumbent: {', '.join(filter(None, (made, trades, _evidence(paired))))}"
    own = {name: value for name, value in shown.items() if name not in paired}
    yield f", its own trades: {_evidence(own)}"


def _evidence(shown: dict[str, Any]) -> str:
    named = {"n": "n", "blocks": "blocks", "e_value": "E above", "e_value_below": "E below"}
    parts = [
        f"{title} {_figure(shown[name])}" for name, title in named.items() if shown.get(name) is not None
    ]
    if shown.get("mean_r") is not None:
        sizes = sum(shown.get(name) is not None for name in ("n", "blocks"))
        mean = f"{r_multiple(shown['mean_r'])} against {r_multiple(shown['reference_r'])}"
        parts.insert(sizes, f"mean of complete blocks {mean}")
    if "mean_all_r" in shown:
        parts.insert(1, f"mean {r_multiple(shown['mean_all_r'])}")
    if "lower_r" in shown:
        parts.append(f"interval {interval_text(shown['lower_r'], shown['upper_r'], shown['interval_kind'])}")
    return ", ".join(parts)


def _figure(value: float) -> str:
    return f"{value:,d}" if isinstance(value, int) else f"{value:,.4g}"
