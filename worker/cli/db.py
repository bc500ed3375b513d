"""`thinktwice db`: bring a store's tables up to date, look after it, copy it and get it back."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from services.model_calls.quoting import count_noun
from worker.cli import options
from worker.cli.options import LATEST, argument, option
from worker.cli.printing import print_document, time_option
from worker.cli.stores import open_for_run, store_address
from worker.pages.text_parts import Part

if TYPE_CHECKING:
    from services.store.backup import Copy

FullOption = Annotated[
    bool, typer.Option("--full", help="Recompute every hash of every run, and compare orders.")
]

app = typer.Typer(help="Upgrade, check, back up, restore and prune a store.", rich_markup_mode=None)


@app.callback()
def db() -> None:
    """Upgrade, check, back up, restore and prune a store."""


@app.command("upgrade")
async def upgrade(db: options.Db = None, json: options.Json = False) -> None:
    """Make the tables of a store, or bring them to the present revision; running it again changes nothing."""
    from services.store import migrate
    from services.store.engine import alone
    from services.store.urls import parse_url

    url = parse_url(store_address(db))
    async with alone(url, create=True, writes=True) as connection:
        done = await connection.run_sync(migrate.upgrade, url)
    document = {
        "store": url.text,
        "state": done.state,
        "before": done.before,
        "revision": done.after,
        "applied": list(done.applied),
    }
    print_document(
        document,
        json,
        lambda payload: [
            *(("applied", title) for title in payload["applied"]),
            ("store", f"{payload['store']} is at revision {payload['revision']}"),
        ],
    )


@app.command("check")
async def check(db: options.Db = None, full: FullOption = False, json: options.Json = False) -> None:
    """Check revision, file and heads of a store: exit 1 when it is behind or something is broken."""
    from services.store.integrity import examine

    found = await examine(store_address(db), full=full)
    print_document({"ok": found.ok, **vars(found)}, json, _describe)
    if not found.ok:
        raise typer.Exit(1)


@app.command("backup")
async def backup(
    file: Annotated[Path, argument(metavar="FILE", help="New SQLite file.")],
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Copy a store, also one in use, into a file that every command reads: exit 1 when a chain is broken."""
    from services.store.backup import back_up

    _print_copy(await back_up(store_address(db), file), f"sqlite:///{file}", json)


@app.command("restore")
async def restore(
    file: Annotated[Path, argument(metavar="FILE", help="A backup.")],
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Copy a backup into a new file or an empty database: exit 1 when a chain is broken."""
    from services.store import mask_password
    from services.store.backup import restore

    address = store_address(db)
    _print_copy(await restore(file, address), mask_password(address), json)


@app.command("prune")
async def prune(
    before: Annotated[
        str, option(metavar="TIME", help="Rows that were known before TIME (ISO, UTC) lose their text.")
    ],
    run: options.RunArgument = LATEST,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Take the long texts of old rows from a run's journal, also while it trades; their hashes stay.

    Snapshots, proposals, reflections, verdicts and evaluations lose their text: verify makes it again from
    the bars and compares its hash, why names it as pruned. All else stays. The file does not shrink: the
    room is used again.
    """
    limit = time_option(before, "--before")
    async with open_for_run(db, run) as (store, record):
        done = await store.retention.prune(record.run_id, limit)
    print_document({"run_id": record.run_id, **vars(done)}, json, _describe_pruning)


def _describe_pruning(done: dict[str, Any]) -> Iterator[Part]:
    yield "run", done["run_id"]
    yield "pruned", count_noun(done["rows"], "row")
    behind = "no row is that old" if done["checkpoint"] is None else f"row {done['checkpoint']:,}"
    yield "checkpoint", behind


def _print_copy(copy: "Copy", target: str, json: bool) -> None:
    document = {"ok": not copy.problems, "store": target, **vars(copy)}
    held = f"{target} holds what the source held, at revision {copy.revision}"
    print_document(document, json, lambda shown: [("store", held), *_describe_rows(shown)])
    if copy.problems:
        raise typer.Exit(1)


def _describe(result: dict[str, Any]) -> Iterator[Part]:
    yield "store", result["store"]
    yield "revision", f"{result['revision'] or 'none'} ({result['state']})"
    yield from (("pending", f"{title}: run `thinktwice db upgrade`") for title in result["pending"])
    yield from _describe_rows(result)
    if result["ok"]:
        yield "checked", "nothing is broken"


def _describe_rows(result: dict[str, Any]) -> Iterator[Part]:
    from services.store.failures import MEND

    yield "rows", ", ".join(f"{name} {count:,}" for name, count in result["rows"].items())
    yield from (("BROKEN", problem) for problem in result["problems"])
    if result["problems"]:
        yield "next", MEND
