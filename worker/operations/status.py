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
    """A process as it stands. Times are ns since 1970, UTC; what does not apply is None or empty.

    Attributes:
        run_id: of the run it works on.
        mode: for example `paper`.
        role: `trading`, `slow_loop` or `both`; `guard` checks orders of others.
        owner: name of the process in leases and claims.
        started: when the process started.
        state: safe mode blocks entries; exits run on.
        reason: why it is not simply running.
        bar_seconds: length of a bar, where bars are expected.
        last_bars: label of the last bar of each symbol.
        last_bar_at: when the last bar of any symbol arrived; None before the first.
        bars_validated: bars that went through the engine.
        store_ok: whether the last attempt to reach the store worked.
        store_away_since: since when it does not.
        buffered_rows: journal rows that wait for the store.
        feed_ok: whether bars can come; None without a feed.
        feed: name of the feed and what is wrong with it, for a reader.
        stale_symbols: symbols without bars for too long.
        blocked: symbols that may not enter now, stale ones among them, with the reason.
        evaluations: policy evaluations by outcome.
        skips: policy events that started no evaluation, by reason.
        in_flight: evaluations that wait for an answer.
        errors: contained failures.
        open_positions: quantity by symbol, negative when short.
        equity: of the account, in quote currency.
        kill_switch: whether the operator has pulled it.
        states: policy state of each symbol.
        limits: those that can block entries, how far each is used, its bound, and whether it blocks now.
        playbooks: active version of each playbook.
        plans_waiting: ids of change plans that wait for a decision.
        model_spend: in US dollars, of this run.
        model_calls: calls of models by outcome.
        models_failing: calls in a row without a usable reply, by model and prompt; rules decide instead.
        model_silence: how many questions a model answered and why no more; None where it answered most.
        slow_loop_last: slot that was last decided.
        slow_loop_next: slot that is due next.
        tick_latency_ms: quantiles of the time that one row takes, for example `{"p99": 0.8}`.
        notifications: counts by what became of them.
    """

    run_id: str
    mode: str
    role: Literal["trading", "slow_loop", "both", "guard"]
    owner: str
    started: int
    state: State = "running"
    reason: str | None = None
    bar_seconds: int | None = None
    last_bars: Mapping[str, int] = field(default_factory=dict)
    last_bar_at: int | None = None
    bars_validated: int = 0
    store_ok: bool = True
    store_away_since: int | None = None
    buffered_rows: int = 0
    feed_ok: bool | None = None
    feed: str | None = None
    stale_symbols: tuple[str, ...] = ()
    blocked: Mapping[str, str] = field(default_factory=dict)
    evaluations: Mapping[str, int] = field(default_factory=dict)
    skips: Mapping[str, int] = field(default_factory=dict)
    in_flight: int = 0
    errors: int = 0
    open_positions: Mapping[str, float] = field(default_factory=dict)
    equity: float | None = None
    kill_switch: bool = False
    states: Mapping[str, str] = field(default_factory=dict)
    limits: tuple[Mapping[str, Any], ...] = ()
    playbooks: Mapping[str, int] = field(default_factory=dict)
    plans_waiting: tuple[str, ...] = ()
    model_spend: float = 0.0
    model_calls: Mapping[str, int] = field(default_factory=dict)
    models_failing: Mapping[str, int] = field(default_factory=dict)
    model_silence: str | None = None
    slow_loop_last: int | None = None
    slow_loop_next: int | None = None
    tick_latency_ms: Mapping[str, float | None] = field(default_factory=dict)
    notifications: Mapping[str, int] = field(default_factory=dict)

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
        ...


def not_ready(status: ProcessStatus, now: int, lag_bars: int) -> tuple[str, ...]:
    """Why a process cannot do its work now; empty when it can.

    Args:
        status: of the process.
        now: ns.
        lag_bars: bars that may pass without a new one.
    """
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
