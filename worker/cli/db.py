"""`thinktwice db`: bring a store's tables up to date, look after it, copy it and get it back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from worker.cli.console import print_document, print_json, say
from worker.cli.options import DbOption, JsonOption, argument, store_address

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
async def upgrade(db: DbOption = None, json: JsonOption = False) -> None:
    """Make the tables of a store, or bring them to the present revision; running it again changes nothing."""
    from services.store import migrate
    from services.store.opening import alone
    from services.store.urls import parse_url

    url = parse_url(store_address(db))
    async with alone(url, create=True, writes=True) as connection:
        done = await connection.run_sync(migrate.upgrade, url)
    if json:
        print_json(
            {
                "store": url.text,
                "state": done.state,
                "before": done.before,
                "revision": done.after,
                "applied": list(done.applied),
            }
        )
        return
    for title in done.applied:
        say("applied", title)
    say("store", f"{url.text} is at revision {done.after}")


@app.command("check")
async def check(db: DbOption = None, full: FullOption = False, json: JsonOption = False) -> None:
    """Check revision, file and heads of a store: exit 1 when it is behind or something is broken."""
    from services.store.examination import examine

    found = await examine(store_address(db), full=full)
    print_document({"ok": found.ok, **vars(found)}, json, _render)
    if not found.ok:
        raise typer.Exit(1)


@app.command("backup")
async def backup(
    file: Annotated[Path, argument(metavar="FILE", help="New SQLite file.")],
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Copy a store, also one in use, into a file that every command reads: exit 1 when a chain is broken."""
    from services.store.backup import back_up

    _tell(await back_up(store_address(db), file), f"sqlite:///{file}", json)


@app.command("restore")
async def restore(
    file: Annotated[Path, argument(metavar="FILE", help="A backup.")],
    db: DbOption = None,
    json: JsonOption = False,
) -> None:
    """Copy a backup into a new file or an empty database: exit 1 when a chain is broken."""
    from services.store import mask_password
    from services.store.backup import restore

    address = store_address(db)
    _tell(await restore(file, address), mask_password(address), json)


def _tell(copy: "Copy", target: str, json: bool) -> None:
    result = {"ok": not copy.problems, "store": target, **vars(copy)}
    if json:
        print_json(result)
    else:
        say("store", f"{target} holds what the source held, at revision {copy.revision}")
        _rows(result)
    if copy.problems:
        raise typer.Exit(1)


def _render(result: dict[str, Any]) -> None:
    say("store", result["store"])
    say("revision", f"{result['revision'] or 'none'} ({result['state']})")
    for title in result["pending"]:
        say("pending", f"{title}: run `thinktwice db upgrade`")
    _rows(result)
    if result["ok"]:
        say("checked", "nothing is broken")


def _rows(result: dict[str, Any]) -> None:
    say("rows", ", ".join(f"{name} {count:,}" for name, count in result["rows"].items()))
    for problem in result["problems"]:
        say("BROKEN", problem)
    if result["problems"]:
        from services.store.failures import MEND

        say("next", MEND)
