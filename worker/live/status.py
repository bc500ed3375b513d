"""The status of a process that trades: what it knows, handed over at once."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from schemas.timeframes import TIMEFRAME_SECONDS
from schemas.vocabulary import PolicyState
from services.feeds.port import BlockReason, FeedAnomaly, FeedAnomalyKind, MarketFeed
from services.statistics.quantiles import quantiles
from worker.live.commit_loop import CommitLoop
from worker.live.committer import BarCommitter
from worker.live.entry_limits import entry_limits
from worker.live.safe_mode import EntryGuard
from worker.live.stepper import LiveStepper
from worker.operations.status import ProcessStatus, State
from worker.runs.model_silence import model_silence

MEASURED_ROWS = 1_000
STATES = tuple(PolicyState)


class FeedLinks:
    """The connection of one feed: up, or lost after so many rows."""

    def __init__(self) -> None:
        self._lost_after: int | None = None
        self._is_requested = False

    def note_anomaly(self, anomaly: FeedAnomaly, rows: int) -> None:
        """The connection of the whole feed went, or came back; of a single symbol its staleness tells."""
        if anomaly.symbol is None and anomaly.kind in LINK_KINDS:
            lost = anomaly.kind is FeedAnomalyKind.DISCONNECTED
            self._lost_after = rows if lost else None
            self._is_requested = anomaly.detail.get("channel") == REST

    def ok(self, rows: int) -> bool:
        """Whether bars can come, when so many rows have come.

        An exchange is asked for each symbol, and one request may fail alone: a row since then is the proof.
        """
        return self._lost_after is None or (self._is_requested and rows > self._lost_after)


@dataclass(eq=False)
class TradingStatus:
    """Reads a stepper and what surrounds it; `stopping` says why the process is about to end, if it is.

    Attributes:
        last_bar_at: wall ns of the last row; None before the first.
        latencies_ms: how long the last rows took.
    """

    run_id: str
    owner: str
    feed: MarketFeed
    stepper: LiveStepper
    committer: BarCommitter
    committing: CommitLoop
    guard: EntryGuard
    stopping: Callable[[], str | None]
    _started: int = field(default_factory=time.time_ns, init=False)
    _links: FeedLinks = field(default_factory=FeedLinks, init=False)
    last_bar_at: int | None = field(default=None, init=False)
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=MEASURED_ROWS), init=False)

    def note_anomaly(self, anomaly: FeedAnomaly) -> None:
        """The feed told of something; only its connections matter here."""
        self._links.note_anomaly(anomaly, self.stepper.rows)

    def status(self) -> ProcessStatus:
        """The present status."""
        away_s, stopping, unsafe = self.committing.away_since, self.stopping(), self.guard.summary
        blocked = self.guard.in_force(self.stepper.blocked)
        state: State = "safe_mode" if unsafe else "running"
        return ProcessStatus(
            self.run_id,
            "paper",
            "trading",
            self.owner,
            self._started,
            state="stopping" if stopping else state,
            reason=stopping or unsafe,
            bar_seconds=TIMEFRAME_SECONDS[self.feed.timeframe],
            last_bars=self.feed.last_labels(),
            last_bar_at=self.last_bar_at,
            store_ok=away_s is None,
            store_away_since=None if away_s is None else time.time_ns() - _since(away_s),
            buffered_rows=self.stepper.journal.waiting + self.committer.waiting,
            feed_ok=self._links.ok(self.stepper.rows),
            feed=self.feed.name,
            stale_symbols=tuple(symbol for symbol, why in blocked.items() if why == BlockReason.STALE),
            blocked=blocked,
            tick_latency_ms=quantiles(list(self.latencies_ms)),
            **self._of_session(),
        )

    def _of_session(self) -> dict[str, Any]:
        if not self.stepper.begun:
            return {}
        session = self.stepper.session
        policy, portfolio = session.policy_loop.counters, session.engine.portfolio[0]
        failing = session.models.account.failing()
        return {
            "bars_validated": session.bars_validated,
            "evaluations": {str(kind): count for kind, count in sorted(policy.outcomes.items())},
            "skips": {str(reason): count for reason, count in sorted(policy.skips.items())},
            "in_flight": session.policy_loop.in_flight,
            "errors": policy.errors + session.slow_loop.counters.errors,
            "open_positions": {
                position["symbol"]: position["quantity"]
                if position["direction"] == "long"
                else -position["quantity"]
                for position in session.open_positions()
            },
            "equity": float(portfolio["equity"]),
            "kill_switch": bool(portfolio["kill"] == 1),
            "states": {
                symbol: str(STATES[code])
                for symbol, code in zip(
                    session.bars.symbols, session.engine.state["state"].tolist(), strict=True
                )
            },
            "limits": entry_limits(session.engine, session.settings.envelope),
            "playbooks": {
                version.definition.id: version.definition.version for version in session.books.reader.active()
            },
            "plans_waiting": tuple(session.slow_loop.plans.waiting),
            "model_spend": session.models.account.ledger.run.usd,
            "model_calls": dict(sorted(session.models.account.outcomes.items())),
            "models_failing": {name: known.failures for name, known in failing.items()},
            "model_silence": model_silence(
                {"model": session.models.account.document(), "strategist": policy.strategist()}
                | {"policy_loop": {"reader": policy.second_reader()}}
            ),
        }


def _since(monotonic_s: float) -> int:
    return round((time.monotonic() - monotonic_s) * 1e9)


LINK_KINDS = (FeedAnomalyKind.DISCONNECTED, FeedAnomalyKind.RECONNECTED)
REST = "rest"  # the channel of an exchange; a file has none
