"""How the server is reached: standard streams, or streamable HTTP with its guard."""

import asyncio
import errno
import hmac
import logging
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import uvicorn
from anyio import create_memory_object_stream, create_task_group
from h11 import IDLE, SEND_RESPONSE
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
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from schemas.errors import ConfigError
from schemas.guard import MOST_BODY
from worker.operations.endpoint import LOOPBACK_NAMES
from worker.operations.endpoint_access import most_connections
from worker.runs.interrupts import hear_stops, nothing_to_lose

LOG = logging.getLogger("thinktwice.mcp")
PATH = "/mcp"
DEADLINE_S = 5.0
ANSWER_S = 300.0  # a rule is tried for two minutes, and may have waited for another


class HttpConnection(H11Protocol):
    """Ends when nothing is asked for a few seconds, and when an answer takes minutes.

    Where places run out, the oldest that asks nothing gives way, else the one that has waited longest.
    uvicorn waits for the rest of a request for ever, and refuses everybody while all places are taken.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place."""
        super().connection_made(transport)
        self._seen: RequestResponseCycle | None = None
        self._since = self.loop.time()
        self.loop.call_later(DEADLINE_S, self._examine)
        there = [cast("HttpConnection", other) for other in self.connections]
        held = [other for other in there if other is not self and not other.transport.is_closing()]
        waiting = [other for other in held if self._since - other._since >= DEADLINE_S]
        yielding = [other for other in held if other.silent] or waiting
        if yielding and len(held) + 1 >= cast("int", self.limit_concurrency):
            min(yielding, key=lambda other: other._since).transport.abort()

    @property
    def silent(self) -> bool:
        """Whether no whole request waits for its answer, or the answer is not read."""
        cycle: Any = self.cycle
        asks = cycle is not None and not cycle.response_complete and not cycle.more_body
        return not asks or self.transport.get_write_buffer_size() > 0

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP where that can still be answered; else, or after it, uvicorn would raise."""
        if self.conn.our_state in (IDLE, SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.abort()
        if self.cycle is not None:
            self.cycle.disconnected = True

    def _examine(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is not self._seen:
            self._seen, self._since = self.cycle, self.loop.time()
        elif self.silent or self.loop.time() - self._since >= ANSWER_S:
            self.transport.abort()  # a close would wait until what was written is read
            return
        self.loop.call_later(DEADLINE_S, self._examine)


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
    names = [_bracket(name) for name in sorted({*LOOPBACK_NAMES, address.host, *address.hosts})]
    own = [f"http://{name}{port}" for name in map(_bracket, sorted(LOOPBACK_NAMES)) for port in ("", ":*")]
    guarded: dict[str, Any] = {}
    if address.token is not None:
        issuer = AnyHttpUrl(f"http://{_bracket(address.host)}")
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


class HttpServer(uvicorn.Server):
    """Ends at the signals that its command hears, and tells where it listens."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell_started = started
        self.stopped_by: signal.Signals | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell so."""
        await super().startup(sockets)
        self._tell_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear signals here: raised again by the library, they would break off what is being closed."""
        hear_stops(self._stop)
        yield

    def _stop(self, signum: signal.Signals) -> None:
        self.force_exit, self.should_exit, self.stopped_by = self.should_exit, True, signum


async def serve_http(
    server: "Server[Any]", address: HttpAddress, tell: Callable[[str], None]
) -> signal.Signals | None:
    """Serve HTTP until a signal ends it.

    Args:
        server: what is served.
        address: where, and to whom.
        tell: is told where it listens.

    Raises:
        ConfigError: the address cannot be had.
    """
    config = uvicorn.Config(
        http_app(server, address),
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        http=HttpConnection,
        ws="none",
        limit_concurrency=most_connections(),
    )
    with _listening(address) as listening:
        url = f"http://{_bracket(address.host)}:{listening.getsockname()[1]}{PATH}"
        http = HttpServer(config, lambda: tell(f"serving {url} until Ctrl-C"))
        await http.serve(sockets=[listening])
    return http.stopped_by


def _listening(address: HttpAddress) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=most_connections())
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if isinstance(number, int) and number in errno.errorcode else error
        where = f"{address.host!r} port {address.port}"
        raise ConfigError(f"cannot listen on {where}: {reason}; name another --port, or 0") from error


def _bracket(name: str) -> str:
    """As a name stands in a Host field."""
    return f"[{name}]" if ":" in name else name
