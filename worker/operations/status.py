"""What a running process says of itself: read by the endpoint, written by whoever runs.

A `VitalSource` is asked often and must not wait for anything: it hands over what it knows. Whether a process
is ready is decided here, from its status and the present, and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

State = Literal["running", "safe_mode", "stopping"]
SECOND = 10**9


@dataclass(frozen=True)
class ProcessStatus:
    """A process as it stands. Times are ns since 1970, UTC; what does not apply is None or empty."""

    run_id: str  # of the run it works on
    mode: str  # for example `paper`
    # `trading`, `slow_loop` or `both`; `guard` checks orders of others
    role: Literal["trading", "slow_loop", "both", "guard"]
    owner: str  # name of the process in leases and claims
    started: int  # when the process started
    state: State = "running"  # safe mode blocks entries; exits run on
    reason: str | None = None  # why it is not simply running
    bar_seconds: int | None = None  # length of a bar, where bars are expected
    last_bars: Mapping[str, int] = field(default_factory=dict)  # label of the last bar of each symbol
    last_bar_at: int | None = None  # when the last bar of any symbol arrived; None before the first
    bars_validated: int = 0  # bars that went through the engine
    store_ok: bool = True  # whether the last attempt to reach the store worked
    store_away_since: int | None = None  # since when it does not
    buffered_rows: int = 0  # journal rows that wait for the store
    feed_ok: bool | None = None  # whether bars can come; None without a feed
    feed: str | None = None  # name of the feed and what is wrong with it, for a reader
    stale_symbols: tuple[str, ...] = ()  # symbols without bars for too long
    # symbols that may not enter now, stale ones among them, with the reason
    blocked: Mapping[str, str] = field(default_factory=dict)
    evaluations: Mapping[str, int] = field(default_factory=dict)  # policy evaluations by outcome
    # policy events that started no evaluation, by reason
    skips: Mapping[str, int] = field(default_factory=dict)
    in_flight: int = 0  # evaluations that wait for an answer
    errors: int = 0  # contained failures
    # quantity by symbol, negative when short
    open_positions: Mapping[str, float] = field(default_factory=dict)
    equity: float | None = None  # of the account, in quote currency
    kill_switch: bool = False  # whether the operator has pulled it
    states: Mapping[str, str] = field(default_factory=dict)  # policy state of each symbol
    # those that can block entries, how far each is used, its bound, and whether it blocks now
    limits: tuple[Mapping[str, Any], ...] = ()
    playbooks: Mapping[str, int] = field(default_factory=dict)  # active version of each playbook
    plans_waiting: tuple[str, ...] = ()  # ids of change plans that wait for a decision
    model_spend: float = 0.0  # in US dollars, of this run
    model_calls: Mapping[str, int] = field(default_factory=dict)  # calls of models by outcome
    # calls in a row without a usable reply, by model and prompt; rules decide instead
    models_failing: Mapping[str, int] = field(default_factory=dict)
    # how many questions a model answered and why no more; None where it answered most
    model_silence: str | None = None
    slow_loop_last: int | None = None  # slot that was last decided
    slow_loop_next: int | None = None  # slot that is due next
    # quantiles of the time that one row takes, for example `{"p99": 0.8}`
    tick_latency_ms: Mapping[str, float | None] = field(default_factory=dict)
    notifications: Mapping[str, int] = field(default_factory=dict)  # counts by what became of them

    def bar_lag_s(self, now: int) -> float | None:
        """Seconds since the last bar arrived; None before the first."""
        return None if self.last_bar_at is None else max(0, now - self.last_bar_at) / SECOND

    def document(self, now: int) -> dict[str, Any]:
        """Everything as plain data, with the lag at `now`."""
        return {**asdict(self), "bar_lag_s": self.bar_lag_s(now), "at": now}


class VitalSource(Protocol):
    """Whoever can say how a process is."""

    def status(self) -> ProcessStatus:
        """The present status, at once."""


def not_ready(status: ProcessStatus, now: int, lag_bars: int) -> tuple[str, ...]:
    """Why a process cannot do its work `now`; empty when it can. `lag_bars` may pass without a new one."""
    reasons = []
    if status.state != "running":
        reasons.append(f"{status.state}: {status.reason or 'no reason given'}")
    if not status.store_ok:
        reasons.append(f"store is away, {status.buffered_rows} rows wait for it")
    if status.role in ("trading", "both"):
        reasons += _without_bars(status, now, lag_bars)
    return tuple(reasons)


def _without_bars(status: ProcessStatus, now: int, lag_bars: int) -> list[str]:
    if status.feed_ok is False:
        return [f"feed {status.feed or ''} is away".replace("  ", " ")]
    lag = status.bar_lag_s(now)
    if lag is None:
        return ["no bar has come yet"]
    if status.bar_seconds is not None and lag > lag_bars * status.bar_seconds:
        return [f"no bar for {lag:.0f} s, {lag_bars} bars of {status.bar_seconds} s are allowed"]
    if status.last_bars and set(status.stale_symbols) >= set(status.last_bars):
        return ["every symbol is stale"]
    if status.state == "running" and status.last_bars and set(status.blocked) >= set(status.last_bars):
        return [f"no symbol may enter: {', '.join(sorted(set(status.blocked.values())))}"]
    return []
