"""The endpoint of a running process: `/metrics`, `/health`, `/ready` and `/status`, to be read only.

It listens on loopback unless a strong secret guards it; then every request has to carry it. A request has a
few seconds and a few kilobytes, and one connection serves one request. Where all places are taken the oldest
connection gives way: whoever asks at once is answered, however many connect and say nothing. A Host that is
not ours is refused, so that a page in a browser on this machine cannot read it under a name of its own (DNS
rebinding).
"""

import asyncio
import hmac
import ipaddress
import json
import resource
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from types import TracebackType
from typing import Any

from schemas.errors import ConfigError
from schemas.settings.live import OperationsSettings
from worker.operations import metrics
from worker.operations.http_request import LONGEST_HEAD, Refused, Request, parse_head
from worker.operations.status import ProcessStatus, VitalSource, not_ready
from worker.secrets.redaction import Redactor
from worker.secrets.secrets import FILE, LEAST_BYTES, OPERATIONS_TOKEN, secret, strong

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
DEADLINE_S = 5.0
MOST_CONNECTIONS = 128
HANDLES_SHARE = 8  # one open file in so many may be a connection: the store needs its own
Answer = tuple[int, str, bytes]
TEXT, JSON = "text/plain; charset=utf-8", "application/json"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; of names, localhost alone is taken to."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def guard_of(settings: OperationsSettings, environment: Mapping[str, str]) -> str | None:
    """The token that requests have to carry; None on loopback without one.

    Raises:
        ConfigError: others reach the address and no strong secret guards it, or a given one is weak.
    """
    token = secret(OPERATIONS_TOKEN, environment)
    if token is None and not is_loopback(settings.host):
        raise ConfigError(
            f"runtime.operations.host {settings.host!r} is reached by others: set {OPERATIONS_TOKEN} or "
            f"{OPERATIONS_TOKEN}{FILE} to {LEAST_BYTES} random bytes (`openssl rand -hex {LEAST_BYTES}`), "
            "or use 127.0.0.1"
        )
    if token is not None and not strong(token):
        raise ConfigError(
            f"{OPERATIONS_TOKEN} is too weak: at least {LEAST_BYTES} bytes, as `openssl rand -hex "
            f"{LEAST_BYTES}` makes them"
        )
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(f"{OPERATIONS_TOKEN} holds a blank or a character that no header carries")
    return token


class Endpoint:
    """Serves the signs of one process.

    Attributes:
        port: where it listens, once it is open.
    """

    def __init__(
        self,
        source: VitalSource,
        settings: OperationsSettings,
        token: str | None,
        redactor: Redactor,
        *,
        now: Callable[[], int] = time.time_ns,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._source = source
        self._settings = settings
        self._token = None if token is None else token.encode()
        self._redactor = redactor
        self._now = now
        self._deadline_s = deadline_s
        self._hosts = LOOPBACK_NAMES | {settings.host.lower(), *(name.lower() for name in settings.hosts)}
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[None], None] = {}  # the oldest first
        self._most = most_connections()
        self.port = 0

    async def open(self) -> None:
        """Listen.

        Raises:
            ConfigError: the address cannot be had.
        """
        self._server = await _listening(self._settings, self._connected)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Listen no more; what is being answered is broken off."""
        if self._server is not None:
            self._server.close()
            for task in self._serving:
                task.cancel()
            await asyncio.gather(*self._serving, return_exceptions=True)
            await self._server.wait_closed()

    async def __aenter__(self) -> "Endpoint":
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def answer(self, request: Request) -> Answer:
        """Status, content type and body for one request.

        Raises:
            Refused: it may not be answered.
        """
        self._admit(request)
        answers = {
            "/metrics": self._metrics,
            "/health": self._health,
            "/ready": self._ready,
            "/status": self._status,
        }
        if request.path not in answers:
            raise Refused(404, f"there are {', '.join(answers)}")
        return answers[request.path]()

    def _admit(self, request: Request) -> None:
        host = request.host
        if host not in self._hosts and not (self._token is not None and _is_address(host)):
            raise Refused(421, "this is not the host that was asked for: see runtime.operations.hosts")
        if "origin" in request.fields:
            raise Refused(403, "pages of other origins may not read this")
        if self._token is not None:
            scheme, _, given = request.fields.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode("latin-1"), self._token):
                raise Refused(401, "a bearer token is needed")

    def _health(self) -> Answer:
        signs = self._signs()
        return 200, TEXT, f"alive: {signs.run_id} {signs.state}\n".encode()

    def _ready(self) -> Answer:
        reasons = self._reasons()
        said = "".join(f"{reason}\n" for reason in reasons)
        return (503, TEXT, said.encode()) if reasons else (200, TEXT, b"ready\n")

    def _status(self) -> Answer:
        now = self._now()
        document = {**self._signs().document(now), "not_ready": self._reasons()}
        return 200, JSON, (json.dumps(self._redactor.value(document), allow_nan=False) + "\n").encode()

    def _metrics(self) -> Answer:
        text = metrics.exposition(self._signs(), self._now(), ready=not self._reasons())
        return 200, metrics.CONTENT_TYPE, text

    def _reasons(self) -> tuple[str, ...]:
        return not_ready(self._signs(), self._now(), self._settings.ready_lag_bars)

    def _signs(self) -> ProcessStatus:
        """The signs, with the texts that others had a hand in redacted; the rest are names and numbers."""
        signs, clean = self._source.signs(), self._redactor.text
        return replace(
            signs,
            owner=clean(signs.owner),
            reason=None if signs.reason is None else clean(signs.reason),
            feed=None if signs.feed is None else clean(signs.feed),
        )

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        while len(self._serving) >= self._most:
            oldest = next(iter(self._serving))
            del self._serving[oldest]
            oldest.cancel()
        self._serving[task] = None
        try:
            async with asyncio.timeout(self._deadline_s):
                writer.write(await self._response(reader))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (TimeoutError, OSError):
            pass
        except asyncio.CancelledError:
            pass  # its place is needed, or the process ends: Python 3.11 logs a handler that ends cancelled
        finally:
            writer.transport.abort()  # nothing happens where it is closed already
            self._serving.pop(task, None)

    async def _response(self, reader: asyncio.StreamReader) -> bytes:
        method = "GET"
        try:
            request = parse_head(await _head(reader))
            method = request.method
            status, kind, body = self.answer(request)
        except Refused as refused:
            status, kind, body = refused.status, TEXT, f"{refused.reason}\n".encode()
        except Exception as error:  # noqa: BLE001 - a source that fails must not end the endpoint
            status, kind, body = 500, TEXT, f"{type(error).__name__}\n".encode()
        return _rendered(status, kind, body, with_body=method != "HEAD")


def most_connections() -> int:
    """Connections at a time: fewer where the process may open few files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST_CONNECTIONS
    return max(2, min(MOST_CONNECTIONS, soft // HANDLES_SHARE))


async def demand_address(settings: OperationsSettings) -> None:
    """Refuse an address that cannot be had now, before anything is made.

    Raises:
        ConfigError: the port is in use, or the host is not known here.
    """
    if settings.port is not None:
        server = await _listening(settings, lambda reader, writer: writer.close())
        server.close()
        await server.wait_closed()


async def _listening(
    settings: OperationsSettings, connected: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]
) -> asyncio.Server:
    host, port = settings.host, settings.port or 0
    try:
        # Fewer are taken up at once than have a place, so that none of them gives way before it was read.
        backlog = max(1, most_connections() * 3 // 4)
        return await asyncio.start_server(connected, host, port, limit=LONGEST_HEAD, backlog=backlog)
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"runtime.operations: cannot listen on {host!r} port {port}: "
            f"{getattr(error, 'strerror', None) or error}; name another port, or 0 for any"
        ) from error


def _is_address(host: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(host))
    return False


async def _head(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n\r\n"))[:-4]
    except asyncio.LimitOverrunError as error:
        raise Refused(431, "the head of the request is too large") from error
    except asyncio.IncompleteReadError as error:
        raise Refused(400, "the request ended early") from error


def _rendered(status: int, kind: str, body: bytes, *, with_body: bool) -> bytes:
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        f"Content-Type: {kind}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
    ]
    if status == 401:
        lines.append("WWW-Authenticate: Bearer")
    if status == 405:
        lines.append("Allow: GET, HEAD")
    return "\r\n".join([*lines, "", ""]).encode() + (body if with_body else b"")
