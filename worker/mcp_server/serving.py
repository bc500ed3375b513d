"""How the server is reached: standard streams, or streamable HTTP with its guard."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

from worker.operations.endpoint import LOOPBACK_NAMES
from worker.operations.endpoint_access import most_connections

PATH = "/mcp"
MOST_BODY = 65_536


@dataclass(frozen=True)
class HttpAddress:
    """Where HTTP is spoken, and who may speak it.

    Attributes:
        host: name or address to listen on.
        port: 0 takes any.
        token: that every request carries; None on loopback alone.
        hosts: further names in Host that are ours.
        origins: pages that may ask.
    """

    host: str
    port: int
    token: str | None
    hosts: Sequence[str] = ()
    origins: Sequence[str] = ()


class TokenGuard:
    """Knows one token."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who carries it; None for any other token."""
        if not hmac.compare_digest(token.encode(), self._token):
            return None
        return AccessToken(token=token, client_id="operator", scopes=[])


async def serve_stdio(server: "Server[Any]") -> None:
    """Serve whoever started this process, until standard input ends."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def http_app(server: "Server[Any]", address: HttpAddress) -> Starlette:
    """The server as an application: Host and Origin are checked, and the token where there is one."""
    names = [_bracketed(name) for name in sorted({*LOOPBACK_NAMES, address.host, *address.hosts})]
    own = [f"http://{name}{port}" for name in map(_bracketed, sorted(LOOPBACK_NAMES)) for port in ("", ":*")]
    guarded: dict[str, Any] = {}
    if address.token is not None:
        issuer = AnyHttpUrl(f"http://{_bracketed(address.host)}")
        guarded = {
            "auth": AuthSettings(issuer_url=issuer, resource_server_url=None),
            "token_verifier": TokenGuard(address.token),
        }
    return server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=MOST_BODY,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[f"{name}{port}" for name in names for port in ("", ":*")],
            allowed_origins=[*own, *address.origins],
        ),
        **guarded,
    )


async def serve_http(server: "Server[Any]", address: HttpAddress) -> None:
    """Serve HTTP until a signal ends it."""
    config = uvicorn.Config(
        http_app(server, address),
        host=address.host,
        port=address.port,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=most_connections(),
    )
    await uvicorn.Server(config).serve()


def _bracketed(name: str) -> str:
    """As a name stands in a Host field."""
    return f"[{name}]" if ":" in name else name
