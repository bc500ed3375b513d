"""How the server is reached: standard streams, or streamable HTTP with its guard."""

import hmac
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anyio import create_memory_object_stream, create_task_group
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import RequestBodyLimitMiddleware, TransportSecuritySettings
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from schemas.guard import MOST_BODY
from worker.operations.hosts import LOOPBACK_NAMES
from worker.runs.http_serving import bracket
from worker.runs.interrupts import nothing_to_lose

LOG = logging.getLogger("thinktwice.mcp")
PATH = "/mcp"


class RequestGate:
    """Passes on each POST once its body is whole; a stateless server has no stream to give to a GET.

    Of an upload that breaks off the SDK and uvicorn would write a traceback.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._bounded = RequestBodyLimitMiddleware(self._pass_on, MOST_BODY)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] == PATH and scope["method"] != "POST":
            await Response("POST each request\n", 405, {"Allow": "POST"})(scope, receive, send)
        else:
            await self._bounded(scope, receive, send)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await receive()
        if body["type"] != "http.request" or body.get("more_body", False):
            LOG.warning("mcp_upload_broken_off", extra={"client": (scope["client"] or ("",))[0]})
            return
        parts = [body]

        async def receive_again() -> Message:
            return parts.pop() if parts else await receive()

        await self._app(scope, receive_again, send)


UNREADABLE = JSONRPCError(
    jsonrpc="2.0",
    id=None,
    error=ErrorData(code=PARSE_ERROR, message="a line is no JSON-RPC message: send one object on each"),
)


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
    """Serve whoever started this process, until standard input ends; Ctrl-C leaves at once."""
    # The thread that waits for a line of standard input hears of no other end.
    with nothing_to_lose():
        async with stdio_server() as (reading, writing), create_task_group() as group:
            passed_on, understood = create_memory_object_stream[SessionMessage | Exception](0)
            group.start_soon(pass_messages, reading, passed_on, writing)
            await server.run(understood, writing, server.create_initialization_options())
            group.cancel_scope.cancel()


async def pass_messages(reading: Any, passed_on: Any, writing: Any) -> None:
    """Pass on what is a message; a line that is none is answered, as JSON-RPC demands, without an id."""
    async with passed_on:
        async for item in reading:
            if isinstance(item, Exception):
                await writing.send(SessionMessage(UNREADABLE))
            else:
                await passed_on.send(item)


def http_app(server: "Server[Any]", address: HttpAddress) -> Starlette:
    """The server as an application: Host and Origin are checked, and the token where there is one."""
    names = [bracket(name) for name in sorted({*LOOPBACK_NAMES, address.host, *address.hosts})]
    own = [f"http://{name}{port}" for name in map(bracket, sorted(LOOPBACK_NAMES)) for port in ("", ":*")]
    guarded: dict[str, Any] = {}
    if address.token is not None:
        issuer = AnyHttpUrl(f"http://{bracket(address.host)}")
        guarded = {
            "auth": AuthSettings(issuer_url=issuer, resource_server_url=None),
            "token_verifier": TokenGuard(address.token),
        }
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        transport_security=TransportSecuritySettings(
            allowed_hosts=[f"{name}{port}" for name in names for port in ("", ":*")],
            allowed_origins=[*own, *address.origins],
        ),
        **guarded,
    )
    app.add_middleware(RequestGate)
    return app
