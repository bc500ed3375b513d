"""What every request to the console passes before it is answered: host, origin, size, who asks, and a token.

A page of another origin reaches nothing: its writes name their origin, and a browser's writes carry the token
of their session. Programs send no cookie and log in with each request (HTTP Basic), or are local.
"""

import base64
import binascii
from dataclasses import dataclass

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from worker.console.people import People, Person, TooManyTries, has_token
from worker.operations.hosts import own_hosts, require_own_host

MOST_BODY = 1_000_000
COOKIE, TOKEN = "thinktwice_session", "x-csrf-token"
OPEN = frozenset({"/login", "/style.css", "/chart.js", "/health", "/metrics", "/ready", "/status"})
READS = frozenset({"GET", "HEAD", "OPTIONS"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
ALWAYS = {
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


@dataclass(frozen=True)
class Address:
    """Where the console is reached.

    Attributes:
        host: on which it listens.
        hosts: further names in Host that are ours.
        secure: whether browsers come over TLS, by a proxy: then cookies are theirs alone.
        secret: that signs sessions; None: one of this process, with which they end.
    """

    host: str
    hosts: tuple[str, ...] = ()
    secure: bool = False
    secret: str | None = None


class ConsoleGuard:
    """Passes on what may be asked, with who asks as `request.state.person`."""

    def __init__(self, app: ASGIApp, people: People, address: Address) -> None:
        self._app, self._people, self._address = app, people, address
        self._hosts = own_hosts(address.host, address.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope, receive)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in ALWAYS.items():
                    headers.setdefault(name, value)
                headers.setdefault("content-security-policy", POLICY)
            await send(message)

        try:
            self._demand_ours(request)
            scope.setdefault("state", {})["person"] = await self._demand_person(request)
        except HTTPException as refused:
            await _refusal(request, refused)(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _demand_ours(self, request: Request) -> None:
        """Refuse what was sent to another host, by a page of another origin, or at too great a length."""
        fields, secure = request.headers, self._address.secure
        require_own_host(request, self._hosts, by_address=secure, place="give --allow-host")
        own = f"{'https' if secure else 'http'}://{fields['host']}"
        if fields.get("origin", own) not in (own, f"http://{fields['host']}"):
            raise HTTPException(403, "pages of other origins may not ask this")
        if (
            fields.get("sec-fetch-site", "none") not in ("none", "same-origin")
            and request.method not in READS
        ):
            raise HTTPException(403, "pages of other sites may not ask this")
        length = fields.get("content-length", "0")
        if not length.isdecimal() or int(length) > MOST_BODY or "transfer-encoding" in fields:
            raise HTTPException(413, f"a body has a length, of at most {MOST_BODY} bytes")

    async def _demand_person(self, request: Request) -> Person | None:
        """Who asks; None on the few pages that everybody sees."""
        path, cookie = request.url.path, request.cookies.get(COOKIE)
        person = None if cookie is None else await self._people.of_session(cookie)
        if person is not None:
            if request.method not in READS and not has_token(person, request.headers.get(TOKEN, "")):
                raise HTTPException(403, "the page is out of date: load it again (its token does not fit)")
            return person
        person = await self._of_program(request) or await self._people.local_person()
        if person is None and path not in OPEN and not path.startswith("/static/"):
            raise HTTPException(401, "log in first")
        if (
            person is not None
            and "origin" in request.headers
            and request.method not in READS
            and path not in OPEN
        ):
            raise HTTPException(403, "load the page again: it has no session")
        return person

    async def _of_program(self, request: Request) -> Person | None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            name, _, password = base64.b64decode(given, validate=True).decode().partition(":")
        except (binascii.Error, ValueError):
            raise HTTPException(401, "the name and password cannot be read") from None
        try:
            person = await self._people.check(name, password, address_of(request))
        except TooManyTries as error:
            raise HTTPException(429, str(error), {"retry-after": str(int(error.wait_s) + 1)}) from error
        if person is None:
            raise HTTPException(401, "this name and password do not fit")
        return person


def address_of(request: Request) -> str:
    """Where a request comes from."""
    return request.client.host if request.client else ""


def demand_operator(request: Request) -> Person:
    """Who decides.

    Raises:
        HTTPException: a reader asks.
    """
    person: Person = request.state.person
    if person.role != "operator":
        raise HTTPException(403, f"{person.name} is a reader: an operator decides")
    return person


def wants_page(request: Request) -> bool:
    """Whether a browser asks for a page."""
    return not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


def _refusal(request: Request, refused: HTTPException) -> Response:
    if refused.status_code == 401 and wants_page(request) and request.method in READS:
        return RedirectResponse("/login", 303)
    return JSONResponse({"error": refused.detail}, refused.status_code, refused.headers)
