"""`thinktwice mcp`: the evidence tools for desktop clients, editors and programs; nothing is written.

`thinktwice tools`: which tools there are for evidence, and what of them is accepted.
"""

import os
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from schemas.errors import ConfigError
from worker.cli import options
from worker.cli.guard import LimitsOption, ModeOption, open_desk, path_beside
from worker.cli.options import option
from worker.cli.printing import complain, print_document, print_json, time_option
from worker.cli.stores import open_to_read, store_address
from worker.pages.text_parts import rows_table
from worker.runs.interrupts import RunInterrupted, run_async
from worker.settings import load_settings

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from signal import Signals

    from services.guard.desk import GuardDesk
    from services.ports import ToolHost
    from worker.mcp_server.serving import HttpAddress

PORT = 8_765
SHOWN_HASH = 16
app = typer.Typer(help="Serve the evidence tools over MCP: read-only, over stdio or HTTP.")
TransportOption = Annotated[
    Literal["stdio", "http"], typer.Option(help="Standard streams, or streamable HTTP.")
]
HostOption = Annotated[
    str,
    typer.Option(metavar="H", help="Where HTTP is heard; other than loopback needs THINKTWICE_MCP_TOKEN."),
]
RunOption = Annotated[
    str | None, option("--run", metavar="RUN", help="Answer for this run alone. [every run]")
]
AllowOriginOption = Annotated[
    list[str] | None,
    option("--allow-origin", metavar="URL", help="A page that may ask, such as https://desk.example."),
]


@app.callback(invoke_without_command=True)
def mcp(
    context: typer.Context,
    transport: TransportOption = "stdio",
    host: HostOption = "127.0.0.1",
    port: options.Port = PORT,
    run: RunOption = None,
    at: options.Clock = None,
    allow_host: options.AllowHost = None,
    allow_origin: AllowOriginOption = None,
    limits: LimitsOption = None,
    mode: ModeOption = "shadow",
    db: options.Db = None,
) -> None:
    """Serve the evidence tools over MCP: read-only, over stdio or HTTP, until the client leaves."""
    if context.invoked_subcommand is not None:
        if given := _find_given(context, context.params):  # the command behind would not read it
            raise ConfigError(f"{given} stands before {context.invoked_subcommand}: give it behind it")
        return
    moment = None if at is None else time_option(at, "--at")
    from worker.review.tool_listing import require_extra

    require_extra()
    from worker.mcp_server.serving import HttpAddress
    from worker.operations.endpoint_access import guard
    from worker.operations.logs import configure_logging
    from worker.secrets.secrets import MCP_TOKEN

    address = None
    of_http = _find_given(context, ("host", "port", "allow_host", "allow_origin"))
    if transport == "stdio" and of_http is not None:
        raise ConfigError(f"{of_http} is of HTTP: give --transport http, too")
    if transport == "http":
        token = guard(MCP_TOKEN, "--host", host, os.environ)
        address = HttpAddress(host, port, token, allow_host or (), allow_origin or ())
    settings = load_settings(flags={"runtime.db": ("--db", db)}).settings
    with configure_logging(settings):
        checking = None if limits is None else open_desk(limits, settings.runtime.db, mode)
        stopped_by = run_async(_serve(settings.runtime.db, run, moment, address, checking))
    if stopped_by is not None:
        raise RunInterrupted(stopped_by)


@app.command("config")
def config(
    transport: TransportOption = "stdio",
    host: HostOption = "127.0.0.1",
    port: options.Port = PORT,
    run: RunOption = None,
    at: options.Clock = None,
    db: options.Db = None,
) -> None:
    """Print the JSON that desktop clients and editors take to start the server, or to reach it."""
    from worker.mcp_server.client_config import http_config, stdio_config, without_password
    from worker.operations.endpoint_access import is_loopback

    if transport == "http":
        name = f"[{host}]" if ":" in host else host
        print_json(http_config(f"http://{name}:{port}/mcp", guarded=not is_loopback(host)))
        return
    if at is not None:
        time_option(at, "--at")
    address, cut = without_password(store_address(db))
    if cut:
        complain("the password of the store is left out: give THINKTWICE_DB_PASSWORD to the client")
    given = [*(("--run", run) if run else ()), *(("--at", at) if at else ())]
    print_json(stdio_config(["--db", address, *given]))


def _find_given(context: typer.Context, names: Iterable[str]) -> str | None:
    """The first option of these that stands on the command line, as it is typed."""
    for name in names:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            return f"--{name.replace('_', '-')}"
    return None


async def _serve(
    address: str,
    run: str | None,
    at: int | None,
    http: "HttpAddress | None",
    checking: "AbstractAsyncContextManager[GuardDesk] | None",
) -> "Signals | None":
    from worker.mcp_server.order_tool import WithOrderChecks
    from worker.mcp_server.server import build_server
    from worker.mcp_server.serving import PATH, http_app, serve_stdio
    from worker.operations.order_checks import OrderChecks, warm_up
    from worker.review import run_views
    from worker.review.evidence import store_tools
    from worker.review.rule_trial import trial_noting
    from worker.runs.http_serving import serve_http
    from worker.runs.readiness import ready_once

    async with (
        checking or nullcontext() as desk,
        path_beside(None if desk is None else warm_up(desk, ready_once)),
        await open_to_read(address, read_only=True) as store,
    ):
        host: ToolHost = store_tools(await run_views.open_views(store, run, at), trial_noting(address))
        if desk is not None:
            host = WithOrderChecks(host, OrderChecks(desk))
        server = build_server(host)
        if http is not None:
            return await serve_http(
                http_app(server, http),
                http.host,
                http.port,
                lambda url: complain(f"serving {url}{PATH} until Ctrl-C"),
            )
        await serve_stdio(server)
        return None


tools_app = typer.Typer(no_args_is_help=True, help="Tools of evidence: list them, accept their definitions.")
ServerOption = Annotated[
    list[str] | None, option("--server", metavar="NAME", help="A server of [planner.servers]. [all]")
]
COLUMNS = {
    "client": "client",
    "tool": "name",
    "hash": lambda tool: tool["hash"][:SHOWN_HASH],
    "pinned": lambda tool: "no" if tool["pinned"] is None else "CHANGED" if tool["changed"] else "yes",
    "description": lambda tool: (
        tool["description"] if tool["not_offered"] is None else f"not offered: {tool['not_offered']}"
    ),
}


@tools_app.command("list")
async def list_tools(
    config: options.Config = None,
    server: ServerOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """List our own tools and those of the configured servers, with what was pinned of them."""
    await _print_tools(config, server, db, json=json, accepts=False)


@tools_app.command("pin")
async def pin(
    config: options.Config = None,
    server: ServerOption = None,
    db: options.Db = None,
    json: options.Json = False,
) -> None:
    """Accept the definitions of the configured servers' tools as they are now, and that they only read."""
    await _print_tools(config, server, db, json=json, accepts=True)


async def _print_tools(
    config: Path | None, names: list[str] | None, db: str | None, *, json: bool, accepts: bool
) -> None:
    from worker.review import tool_listing

    settings = load_settings(config, flags={"runtime.db": ("--db", db)}).settings
    found = await tool_listing.list_tools(settings, names, accepts=accepts)
    print_document({"tools": found}, json, lambda payload: [rows_table(payload["tools"], COLUMNS)])
