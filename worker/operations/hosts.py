"""The host that a request names: one that is not ours may be a page that rebinds a name (DNS rebinding)."""

import re
from collections.abc import Iterable

from starlette.exceptions import HTTPException
from starlette.requests import Request

from worker.operations.endpoint_access import is_address

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


def own_hosts(host: str, names: Iterable[str]) -> frozenset[str]:
    """Hosts that are ours: of loopback, where we listen, and further names."""
    return LOOPBACK_NAMES | {host.lower(), *(name.lower() for name in names)}


def require_own_host(request: Request, hosts: frozenset[str], *, by_address: bool, place: str) -> None:
    """Refuse a request to a host that is none of ours; `place` is where a further name is given.

    Any IP address is taken `by_address`, as where a secret guards it.

    Raises:
        HTTPException: it is none of ours.
    """
    host = host_of(request)
    if host not in hosts and not (by_address and is_address(host)):
        raise HTTPException(421, f"this is not the host that was asked for: {place}")
