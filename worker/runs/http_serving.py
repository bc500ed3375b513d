"""HTTP of a server that runs until a signal: bounded connections, each with a deadline, and its address."""

import asyncio
import errno
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import uvicorn
from h11 import IDLE, SEND_RESPONSE
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from schemas.errors import ConfigError
from worker.operations.endpoint_access import most_connections
from worker.runs.interrupts import hear_stops

Hear = Callable[[Callable[[signal.Signals], None]], None]
DEADLINE_S = 5.0
ANSWER_S = 300.0  # a rule is tried for two minutes, and may have waited for another; a stream begins again


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


class HttpServer(uvicorn.Server):
    """Ends at the signals that its command hears, and tells where it listens."""

    def __init__(
        self, config: uvicorn.Config, started: Callable[[], None], hear: Hear, ending: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._tell_started, self._hear, self._tell_ending = started, hear, ending
        self.stopped_by: signal.Signals | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and tell so."""
        await super().startup(sockets)
        self._tell_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell those who stream, and wait for what is being answered."""
        self._tell_ending()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Hear signals here: raised again by the library, they would break off what is being closed."""
        self._hear(self._stop)
        yield

    def _stop(self, signum: signal.Signals) -> None:
        self.force_exit, self.should_exit, self.stopped_by = self.should_exit, True, signum


async def serve_http(
    app: ASGIApp, host: str, port: int, tell: Callable[[str], None], ending: Callable[[], None] = lambda: None
) -> signal.Signals | None:
    """Serve HTTP until a signal ends it, which comes back; port 0 takes any.

    `tell` is given the address, without a path; `ending` is called before open answers are waited for.

    Raises:
        ConfigError: the address cannot be had.
    """
    with listening(host, port) as place:
        http = http_server(app, lambda: tell(url_of(host, place)), hear_stops, ending)
        await http.serve(sockets=[place])
    return http.stopped_by


def http_server(
    app: ASGIApp, started: Callable[[], None], hear: Hear, ending: Callable[[], None] = lambda: None
) -> HttpServer:
    """A server of an application; `hear` is given what ends it at a signal."""
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        http=HttpConnection,
        ws="none",
        limit_concurrency=most_connections(),
    )
    return HttpServer(config, started, hear, ending)


def url_of(host: str, place: socket.socket) -> str:
    """The address, without a path, of a host that listens."""
    return f"http://{bracket(host)}:{place.getsockname()[1]}"


def listening(host: str, port: int, option: str = "--port") -> socket.socket:
    """A place to listen at; port 0 takes any.

    Raises:
        ConfigError: it cannot be had; `option` is where another port is named.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=most_connections())
    except (OSError, UnicodeError) as error:
        number = getattr(error, "errno", None)
        reason = os.strerror(number) if isinstance(number, int) and number in errno.errorcode else error
        where = f"{host!r} port {port}"
        raise ConfigError(f"cannot listen on {where}: {reason}; name another {option}, or 0") from error


def bracket(name: str) -> str:
    """A host as it stands in an address or a Host field."""
    return f"[{name}]" if ":" in name else name
