"""Settings of a live run: its feed, and how it is operated. Parts of `runtime`, never hashed."""

import re
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field

from schemas.contract import Contract

NotificationKind = Literal[
    "envelope_breach",
    "plan_blocked",
    "approval_waits",
    "feed_stale",
    "entries_blocked",
    "safe_mode",
    "store_away",
    "error",
    "recovered",
]


MOST_SECONDS = 3_600.0


def _rest_address(value: str | None) -> str | None:
    if value is None:
        return None
    if re.search(r"[@?#]", value):
        # Not repeated here: what stands before the @ or behind the ? may be a secret.
        raise ValueError(
            "an address with a user, a password or a query is refused, since only public data is read: write "
            "it like http://127.0.0.1:8080"
        )
    if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", value):
        raise ValueError(f"{value!r} is not an address: write it like http://127.0.0.1:8080")
    return value.rstrip("/")


class ExchangeSettings(Contract):
    """How the public data of an exchange is read."""

    rest_url: Annotated[str | None, AfterValidator(_rest_address)] = Field(
        default=None,
        description="gateway in place of the hosts of the exchange, whose paths follow it",
    )
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
    settle_s: float = Field(
        default=1.0, ge=0.0, le=60.0, description="after its close a bar may still be corrected for so long"
    )
    backoff_max_s: float = Field(
        default=60.0, gt=0.0, le=MOST_SECONDS, description="longest wait between two requests for the same"
    )


class FeedSettings(Contract):
    """How bars are taken from a live source, and what blocks entries."""

    grace_s: float = Field(
        default=5.0,
        ge=0,
        le=3_600,
        description="time after the close of a bar in which every symbol is waited for; then the row goes "
        "without those that are missing",
    )
    quarantine_bars: int = Field(
        default=20,
        ge=0,
        le=100_000,
        description="clean bars without entries after two bars of one label and symbol disagreed",
    )
    stale_after_bars: int = Field(
        default=3, ge=1, le=100_000, description="bars without a bar of a symbol that make it stale"
    )
    max_row_age_bars: float = Field(
        default=1.0,
        gt=0,
        le=1_000,
        description="bars after its close up to which a row may still open positions; later ones only close",
    )
    history_bars: int = Field(
        default=300,
        ge=0,
        le=100_000,
        description="rows from before the start that warm up features; nothing is decided on them",
    )
    continuous: bool | None = Field(
        default=None,
        description="whether the market trades round the clock, so that a label without any bar is a gap; "
        "unset: an exchange of ccxt does, a file does not",
    )
    poll_s: float = Field(default=1.0, gt=0, le=3_600, description="time between two looks at a growing file")
    gone_s: float = Field(
        default=60.0,
        ge=0,
        le=86_400,
        description="time that a file may be away or unreadable, as while it is replaced; then the feed ends",
    )
    clock_jump_s: float = Field(
        default=2.0,
        gt=0,
        le=3_600,
        description="difference between our clocks, or to the source's, from which on entries wait",
    )
    exchange: ExchangeSettings = ExchangeSettings()


def _page_address(value: str | None) -> str | None:
    if value is None:
        return None
    if not re.fullmatch(r"https?://[^/\s@?#]+(/[^\s?#]*)?", value):
        raise ValueError(f"{value!r} is not an address: write it like https://console.example")
    return value.rstrip("/")


class ConsoleSettings(Contract):
    """The console: where people find it, and which bars it offers."""

    url: Annotated[str | None, AfterValidator(_page_address)] = Field(
        default=None,
        description="address at which people reach the console; messages about a waiting plan link there",
    )
    folder: str | None = Field(
        default=None, min_length=1, description="folder whose bar files a backtest may be started with"
    )


class OperationsSettings(Contract):
    """Logs, metrics, health and notifications of a running process. Secrets never stand here."""

    log_format: Literal["console", "json"] = Field(
        default="console", description="`console` for a reader, `json` for a program: one object a line"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least level that is logged"
    )
    log_file: str | None = Field(
        default=None, description="file that gets every record, reopened when it is rotated; None: stderr"
    )
    host: str = Field(
        default="127.0.0.1",
        description="address of the endpoint; one that others reach demands THINKTWICE_OPERATIONS_TOKEN",
    )
    port: int | None = Field(
        default=None, ge=0, le=65_535, description="port of the endpoint; 0: any free one. None: no endpoint"
    )
    hosts: tuple[str, ...] = Field(
        default=(), description="names besides its address by which the endpoint may be called"
    )
    ready_lag_bars: int = Field(
        default=3, ge=1, le=1_000, description="bars without a new bar after which a process is not ready"
    )
    notify: tuple[NotificationKind, ...] = Field(
        default=get_args(NotificationKind),
        description="what is sent to THINKTWICE_WEBHOOK_URL",
    )
    notify_window_s: float = Field(
        default=300.0,
        ge=0,
        le=86_400,
        description="the same news is sent once within it, repeats count",
    )
    start_limit: int = Field(
        default=5,
        ge=1,
        le=1_000,
        description="crashes within `start_window_s` that end in safe mode",
    )
    start_window_s: int = Field(default=600, ge=1, le=86_400, description="time in which crashes are counted")
