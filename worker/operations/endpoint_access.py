"""Where the endpoint listens and who may read it, decided before anything is served."""

import asyncio
import ipaddress
import resource
from collections.abc import Callable, Mapping

from schemas.errors import ConfigError
from schemas.settings.live import OperationsSettings
from worker.secrets.secrets import FILE, LEAST_BYTES, OPERATIONS_TOKEN, secret, strong

MOST_CONNECTIONS = 128
HANDLES_SHARE = 8  # one open file in so many may be a connection: the store needs its own


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address; of names, localhost alone is taken to."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def is_address(host: str) -> bool:
    """Whether a host is an IP address."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def guard_of(settings: OperationsSettings, environment: Mapping[str, str]) -> str | None:
    """The token that requests to the endpoint have to carry; None on loopback without one.

    Raises:
        ConfigError: others reach the address and no strong secret guards it, or a given one is weak.
    """
    return guard(OPERATIONS_TOKEN, "runtime.operations.host", settings.host, environment)


def guard(variable: str, place: str, host: str, environment: Mapping[str, str]) -> str | None:
    """The token, of a variable, that requests to a host have to carry; None on loopback without one.

    Raises:
        ConfigError: others reach the host and no strong secret guards it, or a given one is weak.
    """
    token = secret(variable, environment)
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"{place} {host!r} is reached by others: set {variable} or "
            f"{variable}{FILE} to {LEAST_BYTES} random bytes (`openssl rand -hex {LEAST_BYTES}`), "
            "or use 127.0.0.1"
        )
    if token is not None and not strong(token):
        raise ConfigError(
            f"{variable} is too weak: at least {LEAST_BYTES} bytes, as `openssl rand -hex "
            f"{LEAST_BYTES}` makes them"
        )
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise ConfigError(f"{variable} holds a blank or a character that no header carries")
    return token


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
        server = await listening(settings, asyncio.Protocol)
        server.close()
        await server.wait_closed()


async def listening(settings: OperationsSettings, protocol: Callable[[], asyncio.Protocol]) -> asyncio.Server:
    """A server of `protocol` at the address of the settings.

    Raises:
        ConfigError: the port is in use, or the host is not known here.
    """
    host, port = settings.host, settings.port or 0
    try:
        # Fewer are taken up at once than have a place, so that none of them gives way before it was read.
        backlog = max(1, most_connections() * 3 // 4)
        return await asyncio.get_running_loop().create_server(protocol, host, port, backlog=backlog)
    except (OSError, UnicodeError) as error:
        raise ConfigError(
            f"runtime.operations: cannot listen on {host!r} port {port} "
            f"({getattr(error, 'strerror', None) or error}): name another port, or 0 for any"
        ) from error
