"""Settings of an exchange's public data: where it is reached, and how patiently."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from schemas.contract import Contract

MOST_SECONDS = 3_600.0


def _plain_address(value: str | None, schemes: tuple[str, ...]) -> str | None:
    if value is None:
        return None
    if re.search(r"[@?#]", value):
        # Not repeated here: what stands before the @ or behind the ? may be a secret.
        raise ValueError(
            "an address with a user, a password or a query is refused, since only public data is read: write "
            f"it like {schemes[-1]}://127.0.0.1:8080"
        )
    if not re.fullmatch(rf"({'|'.join(schemes)})://[^/\s]+(/\S*)?", value):
        raise ValueError(f"{value!r} is not an address: write it like {schemes[-1]}://127.0.0.1:8080")
    return value.rstrip("/")


def _rest_address(value: str | None) -> str | None:
    return _plain_address(value, ("https", "http"))


def _socket_address(value: str | None) -> str | None:
    return _plain_address(value, ("wss", "ws"))


class ExchangeSettings(Contract):
    """How the public data of an exchange is read."""

    rest_url: Annotated[str | None, AfterValidator(_rest_address)] = Field(
        default=None,
        description="gateway in place of the hosts of the exchange, whose paths follow it",
    )
    ws_url: Annotated[str | None, AfterValidator(_socket_address)] = Field(
        default=None, description="the same for its websocket"
    )
    websocket: bool = Field(default=True, description="false asks by REST after every bar instead")
    markets: tuple[str, ...] = Field(
        default=(),
        description="kinds of markets to load, for example ['spot'], where an exchange has several; "
        "empty: all that it has",
    )
    request_timeout_s: float = Field(
        default=10.0, gt=0.0, le=MOST_SECONDS, description="whole time of one request, however it drips"
    )
    request_interval_ms: float | None = Field(
        default=None, ge=0.0, le=60_000.0, description="least time between requests; None: the exchange's own"
    )
    silence_s: float = Field(
        default=120.0,
        gt=0.0,
        le=MOST_SECONDS,
        description="no message of any symbol for so long: the connection is renewed",
    )
    settle_s: float = Field(
        default=1.0, ge=0.0, le=60.0, description="after its close a bar may still be corrected for so long"
    )
    backoff_max_s: float = Field(
        default=60.0, gt=0.0, le=MOST_SECONDS, description="longest wait between two attempts to reconnect"
    )
