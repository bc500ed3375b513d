"""`thinktwice db`: bring a store's tables up to date, look after it, copy it and get it back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli.console import print_json, stdout_console
from worker.cli.options import DbOption, JsonOption, argument, store_address
from worker.runs.interrupts import run_async

if TYPE_CHECKING:
    from services.store.backup import Copy

FullOption = Annotated[
    bool, typer.Option("--full", help="Recompute every hash of every run, and compare orders.")
]

app = typer.Typer(help="Upgrade, check, back up and restore a store.", rich_markup_mode=None)


@app.callback()
def db() -> None:
    """Upgrade, check, back up and restore a store."""


@app.command("upgrade")
def upgrade(db: DbOption = None, json: JsonOption = False) -> None:
    """Make the tables of a store, or bring them to the present revision; running it again changes nothing."""
    result = run_async(_upgraded(store_address(db)))
    if json:
        print_json(result)
        return
    for title in result["applied"]:
        _say("applied", title)
    _say("store", f"{result['store']} is at revision {result['revision']}")


@app.command("check")
def check(db: DbOption = None, full: FullOption = False, json: JsonOption = False) -> None:
    """Check revision, file and heads of a store: exit 1 when it is behind or something is broken."""
    from services.store.examination import examine

    found = run_async(examine(store_address(db), full=full))
    result = {"ok": found.ok, **vars(found)}
    if json:
        print_json(result)
    else:
        _render(result)
    if not found.ok:
        raise typer.Exit(1)


@app.command("backup")
def backup(
    file: Annotated[Path, argument(metavar="FILE", help="New SQLite file.")],
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Copy a store, also one in use, into a file that every command reads: exit 1 when a chain is broken."""
    from services.store.backup import back_up

    _tell(run_async(back_up(store_address(db), file)), f"sqlite:///{file}", json)


@app.command("restore")
def restore(
    file: Annotated[Path, argument(metavar="FILE", help="A backup.")],
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Copy a backup into a new file or an empty database: exit 1 when a chain is broken."""
    from services.store import mask_password
    from services.store.backup import restore

    address = store_address(db)
    _tell(run_async(restore(file, address)), mask_password(address), json)


async def _upgraded(address: str) -> dict[str, Any]:
    from services.store import migrate
    from services.store.opening import alone
    from services.store.urls import parse_url

    url = parse_url(address)
    async with alone(url, create=True, writes=True) as connection:
        done = await connection.run_sync(migrate.upgrade, url)
    return {
        "store": url.text,
        "state": done.state,
        "before": done.before,
        "revision": done.after,
        "applied": list(done.applied),
    }


def _tell(copy: "Copy", target: str, json: bool) -> None:
    result = {"ok": not copy.problems, "store": target, **vars(copy)}
    if json:
        print_json(result)
    else:
        _say("store", f"{target} holds what the source held, at revision {copy.revision or 'unmarked'}")
        _rows(result)
    if copy.problems:
        raise typer.Exit(1)


def _render(result: dict[str, Any]) -> None:
    _say("store", result["store"])
    _say("revision", f"{result['revision'] or 'none'} ({result['state']})")
    for title in result["pending"]:
        _say("pending", f"{title}: run `thinktwice db upgrade`")
    _rows(result)
    if result["uncovered"]:
        from services.store.seals import UNSEALED

        _say("not covered", f"{', '.join(result['uncovered'])}: {UNSEALED}")
    if result["ok"]:
        _say("checked", "nothing is broken")


def _rows(result: dict[str, Any]) -> None:
    _say("rows", ", ".join(f"{name} {count:,}" for name, count in result["rows"].items()))
    for problem in result["problems"]:
        _say("BROKEN", problem)
    if result["problems"]:
        from services.store.failures import MEND

        _say("next", MEND)


def _say(label: str, text: str) -> None:
    stdout_console().print(f"{label:<9} {text}", soft_wrap=True)
