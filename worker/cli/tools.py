"""`thinktwice tools`: which tools there are for evidence, and what of them is accepted."""

import os
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import ConfigError, nearest
from worker.cli.console import print_document, print_table
from worker.cli.mcp import demand_extra
from worker.cli.options import DbOption, JsonOption, open_for_writing, open_to_read, option
from worker.cli.run_options import ConfigArgument
from worker.pages.tables import made_table
from worker.settings import load_settings

if TYPE_CHECKING:
    from schemas.settings import Settings
    from schemas.settings.planner import ToolServer
    from schemas.tool import ToolDefinition
    from services.ports import PinBook

SHOWN_HASH = 16
CUT = 100
app = typer.Typer(no_args_is_help=True, help="Tools of evidence: list them, accept their definitions.")
ServerOption = Annotated[
    list[str] | None, option("--server", metavar="NAME", help="A server of [planner.servers]. [all]")
]


@app.command("list")
async def list_tools(
    config: ConfigArgument = None, server: ServerOption = None, db: DbOption = None, json: JsonOption = False
) -> None:
    """List our own tools and those of the configured servers, with what was pinned of them."""
    await _tell(config, server, db, json=json, accepts=False)


@app.command("pin")
async def pin(
    config: ConfigArgument = None, server: ServerOption = None, db: DbOption = None, json: JsonOption = False
) -> None:
    """Accept the definitions of the configured servers' tools as they are now, and that they only read."""
    await _tell(config, server, db, json=json, accepts=True)


async def _tell(config: Any, names: list[str] | None, db: str | None, *, json: bool, accepts: bool) -> None:
    settings = load_settings(config, flags={"runtime.db": ("--db", db)}).settings
    servers = servers_named(settings, names)
    if accepts and not servers:
        raise ConfigError("no server is configured: write [planner.servers.NAME] with command or url")
    if servers:
        demand_extra()
    own = [] if accepts or names else _own()
    found = own + await _list_offered(settings, servers, accepts=accepts)
    print_document({"tools": found}, json, _render)


def servers_named(settings: "Settings", names: list[str] | None) -> "dict[str, ToolServer]":
    """The configured servers of these names, or all of them.

    Raises:
        ConfigError: one is not configured.
    """
    known = settings.planner.servers
    for name in names or ():
        if name not in known:
            listing = ", ".join(sorted(known)) or "none"
            where = f"[planner.servers] has {listing}"
            raise ConfigError(f"--server {name!r} is not configured ({where}).{nearest(name, known)}")
    return {name: known[name] for name in sorted(known) if not names or name in names}


def _own() -> list[dict[str, Any]]:
    """Our own tools need no pin: they change with this program."""
    from schemas.settings.planner import OWN
    from services.evidence.tools import TOOLS

    return [_row(OWN, tool.definition, tool.definition.content_hash, None) for tool in TOOLS.values()]


async def _list_offered(
    settings: "Settings", servers: "dict[str, ToolServer]", *, accepts: bool
) -> list[dict[str, Any]]:
    if not servers:
        return []
    from agents.tool_hosts.mcp import McpTools, target_of

    targets = {name: target_of(server, os.environ) for name, server in servers.items()}
    found = []
    async with AsyncExitStack() as stack:
        pins = await _pins(stack, settings.runtime.db, writes=accepts)
        for name, target in targets.items():
            async with McpTools(name, target, pins) as host:
                offered = await (host.accept() if accepts else host.list_offered())
            found += [_row(name, tool.definition, tool.pinned, tool.left_out) for tool in offered]
    return found


async def _pins(stack: AsyncExitStack, address: str, *, writes: bool) -> "PinBook":
    """The pins of the store; listing makes none."""
    from agents.tool_hosts.kept_definitions import NoPins
    from services.store import StoreMissing

    try:
        opened = open_for_writing(address) if writes else open_to_read(address, read_only=True)
        return (await stack.enter_async_context(await opened)).tool_pins
    except StoreMissing:
        return NoPins()


def _row(client: str, tool: "ToolDefinition", pinned: str | None, left_out: str | None) -> dict[str, Any]:
    return {
        "client": client,
        "name": tool.name,
        "description": " ".join(tool.description.split())[:CUT],
        "hash": tool.content_hash,
        "pinned": pinned,
        "changed": pinned is not None and pinned != tool.content_hash,
        "not_offered": left_out,
    }


def _render(document: dict[str, Any]) -> None:
    rows = (
        (
            row["client"],
            row["name"],
            row["hash"][:SHOWN_HASH],
            "no" if row["pinned"] is None else "CHANGED" if row["changed"] else "yes",
            row["description"] if row["not_offered"] is None else f"not offered: {row['not_offered']}",
        )
        for row in document["tools"]
    )
    print_table(made_table(("client", "tool", "hash", "pinned", "description"), rows))
