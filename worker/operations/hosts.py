"""The host that a request names: one that is not ours may be a page that rebinds a name (DNS rebinding)."""

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::([0-9]{1,5}))?")


def host_of(request: Request) -> str:
    """The host that a request names, without its port.

    Raises:
        HTTPException: it names none.
    """
    match = _HOST.fullmatch(request.headers.get("host", ""))
    if match is None or int(match[2] or 0) > 65_535:
        raise HTTPException(400, "the Host field is missing or is no host")
    return match[1].strip("[]").lower().removesuffix(".")
