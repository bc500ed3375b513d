"""`thinktwice playbooks`: versions of a run's playbooks, where they came from, as files, and the way back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from schemas.errors import ConfigError
from services.model_calls.quoting import count_noun
from worker.cli import options
from worker.cli.options import LATEST, OPTIONS, argument, option
from worker.cli.printing import complain, print_document, time_option
from worker.cli.stores import open_for_run, open_to_write
from worker.cli.version_text import changes_text, outcome_parts
from worker.pages.figures import plain_fields, r_multiple, shown_time
from worker.pages.text_parts import Part, rows_table

app = typer.Typer(
    no_args_is_help=True, help="Versions of playbooks: list them, their history, as files, the way back."
)
NameArgument = Annotated[str, argument(metavar="NAME", help="Id of a playbook.")]
COLUMNS = {
    "playbook": "playbook_id",
    "version": "version",
    "state": "state",
    "since": lambda version: shown_time(version["since"]),
    "trial": "trial",
    "trades": lambda version: _figure_of(version["account"], "n"),
    "mean": lambda version: _figure_of(version["account"], "mean_all_r"),
    "paper": lambda version: _figure_of(version["paper"], "n"),
    "mean on paper": lambda version: _figure_of(version["paper"], "mean_all_r"),
}
FILE_COLUMNS = {
    "playbook": "playbook_id",
    "directions": "directions",
    "bars": lambda shown: shown["timeframes"] or "any",
    "horizon": "horizon_bars",
}
SOURCES = ("report_id", "verdict_id", "action_id")
SHOWN = ("evidence", "counter_evidence", "paper", "account", "banned_cells")
STEPS = {
    "at": "known_at",
    "state": lambda step: step.get("state", "renewed"),
    "until": lambda step: step.get("expires_at", step.get("until")),
    "shown since": lambda step: step.get("shown"),
    "because": lambda step: step.get("reason", step.get("measure")),
}
FolderArgument = Annotated[
    Path, argument(metavar="DIR", help="Folder that is new, empty, or was written so before.")
]
SourceOption = Annotated[
    str | None, option("--run", metavar="RUN", help="Those of this run. [of CONFIG, else the embedded]")
]


@app.command("export")
async def export(
    folder: FolderArgument,
    config: options.Config = None,
    run: SourceOption = None,
    at: options.At = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Write the playbooks in force, embedded, of settings or of a run, as files to change and trade."""
    from services.playbooks.writing import demand_writable
    from worker.review.playbook_versions import EMBEDDED, export_definitions, export_in_force

    if str(folder) == LATEST:
        raise ConfigError("'latest' is a run, not where to: `thinktwice playbooks export DIR --run latest`")
    demand_writable(folder, "the folder")
    if run is not None and config is not None:
        raise ConfigError("CONFIG and --run both say whose playbooks: give one of them")
    if run is not None:
        moment = None if at is None else time_option(at, "--at")
        async with open_for_run(db, run) as (store, record):
            names = await export_in_force(store, record.run_id, folder, moment)
    elif at is not None:
        raise ConfigError(f"--at {at!r} goes with a run: name it with --run")
    else:
        names = export_definitions(folder, config)
    source = run or (EMBEDDED if config is None else str(config))
    document = {"source": source, "folder": str(folder), "files": list(names)}
    print_document(document, json, _describe_export)


def _describe_export(found: dict[str, Any]) -> list[Part]:
    from worker.review.playbook_versions import EMBEDDED

    playbooks = count_noun(sum("/" not in name for name in found["files"]) - 1, "playbook")
    whose = "the embedded strategy" if found["source"] == EMBEDDED else found["source"]
    return [
        f"wrote {playbooks} of {whose} into {found['folder']}",
        f'Next: runtime.playbooks = "{found["folder"]}" in the settings, and they are traded.',
    ]


@app.command("list")
async def list_playbooks(
    run: options.RunArgument = LATEST,
    playbooks: Annotated[str | None, OPTIONS["playbooks"]] = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """List every version of every playbook of a run, or what lies in files, and their mistakes."""
    from worker.review.playbook_versions import document_of_files, document_of_run

    if playbooks is None:
        async with open_for_run(db, run) as (store, record):
            found = await document_of_run(store, record, None, complain)
    elif run != LATEST or db is not None:
        raise ConfigError("RUN and --playbooks both say whose playbooks: give one of them, without --db")
    else:
        found = document_of_files(playbooks)
    print_document(found, json, _describe_list)


def _describe_list(found: dict[str, Any]) -> Iterator[Part]:
    of_run = "versions" in found
    yield rows_table(found["versions"], COLUMNS) if of_run else rows_table(found["playbooks"], FILE_COLUMNS)
    for mistake in found["mistakes"]:
        yield f"{mistake['playbook_id']}, {mistake['field']}: {mistake['message']}"


def _figure_of(shown: dict[str, Any] | None, name: str) -> str | int | None:
    if shown is None:
        return None
    return int(shown[name]) if name == "n" else r_multiple(shown[name])


@app.command("history")
async def history(
    name: NameArgument, run: options.RunOption = LATEST, db: options.Db = None, json: options.Json = False
) -> None:
    """Show every version of a playbook: how it came, what it changed, evidence and counter-evidence."""
    from worker.review.playbook_versions import document_of_run

    async with open_for_run(db, run) as (store, record):
        found = await document_of_run(store, record, name, complain)
    print_document(
        found,
        json,
        lambda payload: [part for version in payload["versions"] for part in version_history(version)],
    )


@app.command("rollback")
async def rollback(
    name: NameArgument,
    run: options.RunOption = LATEST,
    write: options.Write = None,
    data: options.Data = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Return a playbook to the last version that traded differently; a run that trades is asked to."""
    from services.playbooks.writing import demand_writable
    from worker.review.playbook_versions import read_history, require_known, roll_back_version
    from worker.review.rebuilt import rebuilt_run
    from worker.review.run_requests import queue_request, takes_requests

    if write is not None:
        demand_writable(write)
    async with open_to_write(db, run) as (store, record):
        require_known(name, (await read_history(store, record, None)).names(), record.run_id)
        trades = takes_requests(record)
        if trades and write is not None:
            raise ConfigError(f"run {record.run_id} trades: its playbooks change in it; leave out --write")
        if trades:
            found = await queue_request(store, record, "rollback", {"playbook_id": name})
        else:
            found = roll_back_version(await rebuilt_run(store, record, data), name, write)
    print_document(found, json, _describe_rollback)


def _describe_rollback(found: dict[str, Any]) -> Iterator[Part]:
    from worker.review.run_requests import describe_request

    if "request" in found:
        yield describe_request(found)
        return
    yield f"playbook {found['playbook_id']} of {found['run_id']} at {shown_time(found['known_at'])}"
    yield from outcome_parts(found, found["transitions"])
    if found["written"] is None:
        yield "Next: --write DIR keeps the playbooks as files to trade with; the run stays as it is."


def version_history(version: dict[str, Any]) -> Iterator[Part]:
    """A version: how it came, what it changed, and what speaks for it and against it."""
    yield f"{version['playbook_id']} version {version['version']}"
    ids = {name: version[name] for name in ("version_hash", "parent", "trial", *SOURCES)}
    yield from ((name, text[:16]) for name, text in plain_fields(ids))
    yield "changes", changes_text(version["changes"]) or "none"
    steps = [*version["transitions"], *version["renewals"]]
    yield rows_table(sorted(steps, key=lambda step: step["known_at"]), STEPS)
    shown = {name: version[name] for name in SHOWN if version[name]}
    yield rows_table(plain_fields(shown), {"shown": lambda pair: pair[0], "": lambda pair: pair[1]})
    yield ""
