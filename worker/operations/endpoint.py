"""The endpoint of a running process: `/metrics`, `/health`, `/ready` and `/status`, to be read only.

That of a guard takes orders at `/check`, too.

It listens on loopback unless a strong secret guards it; then every request has to carry it. A request has a
few seconds and a few kilobytes, and one connection serves one request. Where all places are taken the oldest
connection gives way: whoever asks at once is answered, however many connect and say nothing. A Host that is
not ours is refused, so that a page in a browser on this machine cannot read it under a name of its own (DNS
rebinding). uvicorn reads and writes HTTP; its server, which takes signals and logs, is not used.
"""

import asyncio
import hmac
import json
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from schemas.guard import MOST_BODY
from schemas.settings.live import OperationsSettings
from worker.operations import metrics
from worker.operations.endpoint_access import listening, most_connections
from worker.operations.hosts import own_hosts, require_own_host
from worker.operations.status import ProcessStatus, VitalSource, not_ready
from worker.secrets.redaction import Redactor

DEADLINE_S = 5.0
CHECK_S = 8.0  # to check an order: longer than a store waits for its lock
LONGEST_HEAD = 8_192
MOST_FIELDS = 64
CHECK = "/check"
ALWAYS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Connection": "close"}
_Places = dict["_Connection", asyncio.TimerHandle]  # the oldest first


class OrderDoor(Protocol):
    """Checks the orders that are posted."""

    async def answer(self, body: bytes) -> Response:
        """The verdict on the order of a body."""

    async def refresh(self) -> None:
        """Look at what other processes wrote, so that the status tells it."""


class Endpoint:
    """Serves the status of one process, as an ASGI application."""

    def __init__(
        self,
        source: VitalSource,
        settings: OperationsSettings,
        token: str | None,
        redactor: Redactor,
        *,
        now: Callable[[], int] = time.time_ns,
        deadline_s: float = DEADLINE_S,
        check: OrderDoor | None = None,
    ) -> None:
        self._source = source
        self._check = check
        self._settings = settings
        self._token = None if token is None else token.encode()
        self._redactor = redactor
        self._now = now
        self._deadline_s = deadline_s if check is None else deadline_s + CHECK_S  # none is cut off unanswered
        self._hosts = own_hosts(settings.host, settings.hosts)
        self._server: asyncio.Server | None = None
        self._places: _Places = {}
        self.port = 0  # where it listens, once it is open

    async def open(self) -> None:
        """Listen.

        Raises:
            ConfigError: the address cannot be had.
        """
        config = Config(
            self,
            http=H11Protocol,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",  # a probe is no alarm
            access_log=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=LONGEST_HEAD,
        )
        most = most_connections()
        self._server = await listening(
            self._settings, lambda: _Connection(config, self._places, most, self._deadline_s)
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Listen no more; what is being answered is broken off."""
        if self._server is not None:
            self._server.close()
            for connection in self._places:
                connection.transport.abort()
            await self._server.wait_closed()

    async def __aenter__(self) -> "Endpoint":
        await self.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        response = await self.response_to(Request(scope, receive))
        await response(scope, receive, send)

    async def response_to(self, request: Request) -> Response:
        """The answer to one request; a source that fails is an answer too."""
        door = self._check if (request.method, request.scope["path"]) == ("POST", CHECK) else None
        try:
            if door is not None:
                response = await self._check_order(door, await self._body_of(request), request.receive)
            else:
                if self._check is not None:
                    await self._check.refresh()
                response = self.answer(request)
        except HTTPException as refused:
            response = PlainTextResponse(f"{refused.detail}\n", refused.status_code, refused.headers)
            if door is not None:
                response = JSONResponse({"error": refused.detail}, refused.status_code, refused.headers)
        except Exception as error:  # noqa: BLE001 - a source that fails must not end the endpoint
            response = PlainTextResponse(f"{type(error).__name__}\n", 500)
        response.headers.update(ALWAYS)
        return response

    async def _check_order(self, door: OrderDoor, body: bytes, receive: Receive) -> Response:
        """The answer of the guard; where nobody waits for it any more, the check is given up."""
        answering = asyncio.ensure_future(door.answer(body))
        leaving = asyncio.ensure_future(receive())
        await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not answering.done():
            answering.cancel()
            raise HTTPException(499, "the client left")
        return await answering

    async def _body_of(self, request: Request) -> bytes:
        _demand_plain(request)
        self._admit(request)
        length, fields = request.headers.get("content-length", ""), request.headers
        if fields.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            raise HTTPException(415, "an order is checked as application/json")
        if not (length.isascii() and length.isdigit() and len(length) < 9) or "transfer-encoding" in fields:
            raise HTTPException(411, "give the length of the body")
        if int(length) > MOST_BODY:
            raise HTTPException(413, f"a body has at most {MOST_BODY} bytes")
        return await request.body()

    def answer(self, request: Request) -> Response:
        """What one request gets.

        Raises:
            HTTPException: it is not a plain reading, or not of ours.
        """
        _demand_plain(request)
        _demand_reading(request)
        self._admit(request)
        answers = {
            "/metrics": self._metrics,
            "/health": self._health,
            "/ready": self._ready,
            "/status": self._document,
        }
        if request.scope["path"] not in answers:
            raise HTTPException(404, f"there are {', '.join(answers)}")
        return answers[request.scope["path"]]()

    def _admit(self, request: Request) -> None:
        place, guarded = "see runtime.operations.hosts", self._token is not None
        require_own_host(request, self._hosts, by_address=guarded, place=place)
        if "origin" in request.headers:
            raise HTTPException(403, "pages of other origins may not read this")
        if self._token is not None:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode("latin-1"), self._token):
                raise HTTPException(401, "a bearer token is needed", {"WWW-Authenticate": "Bearer"})

    def _health(self) -> Response:
        status = self._redact()
        return PlainTextResponse(f"alive: {status.run_id} {status.state}\n")

    def _ready(self) -> Response:
        reasons = self._reasons()
        text = "".join(f"{reason}\n" for reason in reasons)
        return PlainTextResponse(text or "ready\n", 503 if reasons else 200)

    def _document(self) -> Response:
        document = {**self._redact().document(self._now()), "not_ready": self._reasons()}
        text = json.dumps(self._redactor.value(document), allow_nan=False) + "\n"
        return Response(text, media_type="application/json")

    def _metrics(self) -> Response:
        text = metrics.exposition(self._redact(), self._now(), ready=not self._reasons())
        return Response(text, media_type=metrics.CONTENT_TYPE)

    def _reasons(self) -> tuple[str, ...]:
        return not_ready(self._redact(), self._now(), self._settings.ready_lag_bars)

    def _redact(self) -> ProcessStatus:
        """The status, with the texts that others had a hand in redacted; the rest are names and numbers."""
        status, clean = self._source.status(), self._redactor.text
        return replace(
            status,
            owner=clean(status.owner),
            reason=None if status.reason is None else clean(status.reason),
            feed=None if status.feed is None else clean(status.feed),
        )


class _Connection(H11Protocol):
    """A connection that ends at its deadline, or when a newer one needs its place."""

    def __init__(self, config: Config, places: _Places, most: int, deadline_s: float) -> None:
        super().__init__(config, ServerState(), {})
        self._places, self._most, self._deadline_s = places, most, deadline_s

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        while len(self._places) >= self._most:
            oldest = next(iter(self._places))
            self._places.pop(oldest).cancel()
            oldest.transport.abort()
        self._places[self] = self.loop.call_later(self._deadline_s, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self in self._places:
            self._places.pop(self).cancel()


def _demand_reading(request: Request) -> None:
    if request.method not in ("GET", "HEAD"):
        raise HTTPException(405, "this endpoint can only be read: use GET", {"Allow": "GET, HEAD"})
    if request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers:
        raise HTTPException(413, "a request has no body here")


def _demand_plain(request: Request) -> None:
    """Refuse what uvicorn lets pass and is no plain request of a path: RFC 9112, and stricter."""
    scope, fields = request.scope, request.headers
    if scope["http_version"] not in ("1.0", "1.1") or not scope["raw_path"].startswith(b"/"):
        raise HTTPException(400, "only a path can be asked for, by HTTP/1.0 or 1.1")
    size = len(scope["raw_path"]) + len(scope["query_string"])
    if len(fields) > MOST_FIELDS or size + sum(len(n) + len(v) for n, v in fields.raw) > LONGEST_HEAD:
        raise HTTPException(431, "the head of the request is too large")
    for name in ("host", "authorization"):
        if len(fields.getlist(name)) > 1:
            raise HTTPException(400, f"the field {name} is given twice")
