"""Tools of evidence, ours and those of configured servers, with what was accepted of their definitions."""

import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError, nearest
from schemas.settings import Settings
from schemas.settings.planner import OWN, ToolServer
from schemas.tool import ToolDefinition
from services.evidence.tools import TOOLS

if TYPE_CHECKING:
    from services.ports import PinBook

INSTALL = "pip install 'thinktwice[mcp]'"
CUT = 100


async def list_tools(
    settings: Settings, names: Sequence[str] | None, *, accepts: bool
) -> list[dict[str, Any]]:
    """Our own tools and those of the named servers, or of all; with `accepts` the servers' are pinned.

    Raises:
        ConfigError: a server is not configured, or the SDK is not installed.
    """
    servers = servers_named(settings, names)
    if accepts and not servers:
        raise ConfigError("no server is configured: write [planner.servers.NAME] with command or url")
    if servers:
        require_extra()
    own = [] if accepts or names else _own()
    return own + await _list_offered(settings, servers, accepts=accepts)


def servers_named(settings: Settings, names: Sequence[str] | None) -> dict[str, ToolServer]:
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


def require_extra() -> None:
    """Refuse what needs the SDK where it is not installed.

    Raises:
        ConfigError: it is not.
    """
    from importlib.util import find_spec

    if find_spec("mcp") is None:
        raise ConfigError(f"MCP needs the package mcp: {INSTALL}")


def _own() -> list[dict[str, Any]]:
    """Our own tools need no pin: they change with this program."""
    return [_row(OWN, tool.definition, tool.definition.content_hash, None) for tool in TOOLS.values()]


async def _list_offered(
    settings: Settings, servers: Mapping[str, ToolServer], *, accepts: bool
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
    from agents.tool_hosts.kept_definitions import NoPins
    from services.store import StoreMissing, open_store

    try:
        opened = (
            open_store(address, create=True) if writes else open_store(address, create=False, read_only=True)
        )
        return (await stack.enter_async_context(await opened)).tool_pins
    except StoreMissing:
        return NoPins()


def _row(client: str, tool: ToolDefinition, pinned: str | None, left_out: str | None) -> dict[str, Any]:
    return {
        "client": client,
        "name": tool.name,
        "description": " ".join(tool.description.split())[:CUT],
        "hash": tool.content_hash,
        "pinned": pinned,
        "changed": pinned is not None and pinned != tool.content_hash,
        "not_offered": left_out,
    }
