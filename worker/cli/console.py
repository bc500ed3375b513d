"""`thinktwice console`: see what a run thought and approve what it wants, in a browser."""

import getpass
import os
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from schemas.errors import ConfigError
from worker.cli import options
from worker.cli.options import CONSOLE_PORT, OnceCommand, require_console, visible_name
from worker.cli.printing import complain, print_document, print_line
from worker.cli.stores import open_for_writing, open_to_read, store_address
from worker.pages.text_parts import rows_table
from worker.runs.interrupts import RunInterrupted, run_async
from worker.settings import load_settings

if TYPE_CHECKING:
    from signal import Signals

    from schemas.settings import Settings
    from worker.console.guards import Address

COLUMNS = {"name": "name", "role": "role"}
app = typer.Typer(help="Serve pages that show runs and take decisions, until Ctrl-C.")
user_app = typer.Typer(help="Who may log in to the console of a store.", no_args_is_help=True)
app.add_typer(user_app, name="user")


@app.callback(invoke_without_command=True)
def console(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(metavar="H", help="Where it listens; other than loopback needs a secret and users.")
    ] = "127.0.0.1",
    port: options.Port = CONSOLE_PORT,
    allow_host: options.AllowHost = None,
    config: options.ModelConfig = None,
    db: options.Db = None,
) -> None:
    """Serve pages that show runs and take decisions, until Ctrl-C."""
    if context.invoked_subcommand is not None:
        return
    require_console()
    from worker.console.guards import Address
    from worker.operations.endpoint_access import guard, is_loopback
    from worker.operations.logs import configure_logging
    from worker.secrets.secrets import CONSOLE_SECRET

    secret = guard(CONSOLE_SECRET, "--host", host, os.environ)
    settings = load_settings(config, flags={"runtime.db": ("--db", db)}).settings
    address = Address(host, tuple(allow_host or ()), bool(allow_host) or not is_loopback(host), secret)
    with configure_logging(settings):
        stopped_by = run_async(_serve(settings, address, port))
    if stopped_by is not None:
        raise RunInterrupted(stopped_by)


async def _serve(settings: "Settings", address: "Address", port: int) -> "Signals | None":
    from worker.console.app import console_app
    from worker.runs.http_serving import serve_http

    async with await open_for_writing(settings.runtime.db) as store:
        if address.secure and not await store.console.all():
            raise ConfigError("nobody could log in: add a user by `thinktwice console user add NAME`")
        async with console_app(store, settings, address, os.environ) as served:
            return await serve_http(
                served,
                address.host,
                port,
                lambda url: complain(f"console at {url} until Ctrl-C"),
                served.state.desk.end,
            )


@user_app.command("add", cls=OnceCommand)
async def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name to log in by.", show_default=False)],
    role: Annotated[
        Literal["reader", "operator"], typer.Option(help="A reader looks, an operator decides.")
    ] = "reader",
    db: options.Db = None,
) -> None:
    """Add a user, or give one another password and role; the password is asked for, or read from stdin."""
    require_console()
    from services.store.console_users import ConsoleUser
    from worker.console.people import hash_password

    user = ConsoleUser(visible_name(name, "NAME"), role, hash_password(_password()))
    async with await open_for_writing(store_address(db)) as store:
        await store.console.put(user)
    print_line(f"{user.name} may log in as {role}")


def _password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass.getpass("password (at least 12 characters): ")
    if getpass.getpass("once more: ") != password:
        raise ConfigError("the two passwords differ: nothing was stored")
    return password


@user_app.command("list")
async def list_users(db: options.Db = None, json: options.Json = False) -> None:
    """List who may log in."""
    async with await open_to_read(store_address(db)) as store:
        users = await store.console.all()
    found = [{"name": user.name, "role": user.role} for user in users]
    print_document(found, json, lambda shown: [rows_table(shown, COLUMNS)])


@user_app.command("remove", cls=OnceCommand)
async def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who may log in no more.", show_default=False)],
    db: options.Db = None,
) -> None:
    """Remove a user; open sessions of theirs end."""
    async with await open_for_writing(store_address(db)) as store:
        await store.console.remove(name)
    print_line(f"{name} may log in no more")
