"""`thinktwice playbooks`: versions of a run's playbooks, where they came from, as files, and the way back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from schemas.errors import ConfigError
from services.high_level.report_lines import interval_text
from services.model_calls.quoting import count_noun
from worker.cli.options import (
    LATEST,
    OPTIONS,
    AtOption,
    ConfigArgument,
    DataOption,
    DbOption,
    JsonOption,
    RunArgument,
    RunOption,
    WriteOption,
    argument,
    open_for_run,
    open_to_write,
    option,
)
from worker.cli.printing import Part, complain, print_document, rows_table, time_option
from worker.cli.version_text import change_lines, transition_lines, version_lines, written_lines
from worker.pages.figures import r_multiple, shown_time

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
FolderArgument = Annotated[
    Path, argument(metavar="DIR", help="Folder that is new, empty, or was written so before.")
]
SourceOption = Annotated[
    str | None, option("--run", metavar="RUN", help="Those of this run. [of CONFIG, else the embedded]")
]


@app.command("export")
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
    run: RunArgument = LATEST,
    playbooks: Annotated[str | None, OPTIONS["playbooks"]] = None,
    db: DbOption = None,
    json: JsonOption = False,
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
    name: NameArgument, run: RunOption = LATEST, db: DbOption = None, json: JsonOption = False
) -> None:
    """Show every version of a playbook: how it came, what it changed, evidence and counter-evidence."""
    from worker.review.playbook_versions import document_of_run

    async with open_for_run(db, run) as (store, record):
        found = await document_of_run(store, record, name, complain)
    print_document(
        found,
        json,
        lambda payload: [line for version in payload["versions"] for line in version_history(version)],
    )


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
    yield from transition_lines(found["transitions"])
    yield from version_lines("active", found["active"])
    yield from written_lines(found["written"])
    if found["written"] is None:
        yield "Next: --write DIR keeps the playbooks as files to trade with; the run stays as it is."


def version_history(version: dict[str, Any]) -> Iterator[str]:
    """A version: how it came, what it changed, and what speaks for it and against it."""
    parent = "from a file" if version["parent"] is None else f"from version {version['parent']}"
    trial = "" if version["trial"] is None else f", tried as {version['trial']}"
    named = f"{version['playbook_id']} version {version['version']}"
    yield f"{named} ({version['version_hash'][:16]}), {parent}{trial}"
    yield from (f"  {line}" for line in change_lines(version["changes"]))
    ids = [
        f"{name.removesuffix('_id')} {version[name][:16]}"
        for name in ("report_id", "verdict_id", "action_id")
        if version[name]
    ]
    if ids:
        yield f"  by {', '.join(ids)}"
    for step in sorted([*version["transitions"], *version["renewals"]], key=lambda step: step["known_at"]):
        yield f"  {shown_time(step['known_at'])}  {_step(step)}"
    for title, shown in (
        ("evidence", version["evidence"]),
        ("counter-evidence", version["counter_evidence"]),
        ("on paper", version["paper"]),
        ("on the account", version["account"]),
    ):
        if shown:
            yield from (f"  {title}{part}" for part in _parts(shown))
    for cell, shown in version["banned_cells"].items():
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
    if "difference_r" not in shown:
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
