"""What desktop clients and editors are told to start or to reach the server."""

import sys
from collections.abc import Sequence
from typing import Any

from schemas.errors import InvariantViolation
from services.store.urls import parse_url

NAME = PROGRAM = "thinktwice"


def stdio_config(arguments: Sequence[str]) -> dict[str, Any]:
    """A client starts the server itself, with this interpreter and no module of the client's folder."""
    command = {"command": sys.executable, "args": ["-P", "-m", PROGRAM, "mcp", *arguments]}
    return {"mcpServers": {NAME: command}}


def http_config(url: str, *, guarded: bool) -> dict[str, Any]:
    """A client reaches a server that runs; the token stays in the client's environment."""
    headers = {"headers": {"Authorization": "Bearer ${THINKTWICE_MCP_TOKEN}"}} if guarded else {}
    return {"mcpServers": {NAME: {"type": "http", "url": url, **headers}}}


def without_password(address: str) -> tuple[str, bool]:
    """The address of a store as any folder reaches it, and whether a password was cut out of it."""
    url = parse_url(address)
    if url.path is not None:
        return f"sqlite:///{url.path.resolve()}", False
    server = url.server
    if server is None:
        raise InvariantViolation(f"store {url.text} has neither a server nor a file")
    kept = server._replace(drivername="postgresql", password=None).difference_update_query(["password"])
    cut = server.password is not None or "password" in server.query
    return kept.render_as_string(), cut
