"""The reflections, fast and slow, and the memory behind them."""

from typing import Literal

from pydantic import Field

from schemas.contract import Contract
from schemas.settings.bounds import LARGEST_QUOTA, MAX_COUNT
from schemas.timeframes import DAY_S, TIMEFRAME_SECONDS, Timeframe
from schemas.vocabulary import PolicyEventKind

HOUR_S, MIDDLE_BAR_S = 3_600, 900
SLOW_BAR_DEADLINE_MS, MIDDLE_BAR_DEADLINE_MS = 5_000.0, 2_000.0


class ReflectionSettings(Contract):
    """The fast reflection. `off` is the only way to trade without one, and the summary says so first."""

    mode: Literal["off", "deterministic", "full"] = Field(
        default="deterministic",
        description="`off`, `deterministic` (rules only), or `full` (rules and a model)",
    )
    budget_event_ms: float = Field(
        default=250.0, gt=0, description="time budget after regime, volatility and position events"
    )
    budget_heartbeat_ms: float = Field(default=500.0, gt=0, description="time budget after a heartbeat")
    model_deadline_ms: float | None = Field(
        default=None,
        gt=0,
        description="how long a reflection waits for its second reader, from its start; None: by timeframe, "
        "the budget below 15m, at least 2 s below 1h, at least 5 s from 1h on and where the market waits "
        "(a backtest)",
    )
    min_reward_to_risk: float = Field(
        default=0.8, gt=0, description="least reward to risk after the costs of both sides"
    )
    max_staleness_bars: int = Field(
        default=2, le=MAX_COUNT, ge=0, description="oldest last bar of a symbol, in bars of the portfolio"
    )
    conviction_tolerance: float = Field(default=0.25, ge=0, le=1, description="conviction above the hit rate")

    def budget_ms(self, source: str) -> float:
        """The time budget of a reflection by what opened its boundary: a heartbeat, or another event."""
        return self.budget_heartbeat_ms if source == PolicyEventKind.HEARTBEAT else self.budget_event_ms

    def deadline_ms(self, source: str, timeframe: Timeframe, *, market_waits: bool) -> float:
        """How long a reflection may wait for its second reader, from its start."""
        if self.model_deadline_ms is not None:
            return self.model_deadline_ms
        budget_ms, bar_s = self.budget_ms(source), TIMEFRAME_SECONDS[timeframe]
        if market_waits or bar_s >= HOUR_S:
            return max(budget_ms, SLOW_BAR_DEADLINE_MS)
        return max(budget_ms, MIDDLE_BAR_DEADLINE_MS) if bar_s >= MIDDLE_BAR_S else budget_ms


class MemorySettings(Contract):
    """Contrastive retrieval: quotas of nearest winners, losers and failure patterns."""

    winners: int = Field(
        default=3, ge=1, le=LARGEST_QUOTA, description="nearest winners in a retrieved bundle"
    )
    losers: int = Field(default=3, ge=1, le=LARGEST_QUOTA, description="nearest losers in a retrieved bundle")
    failures: int = Field(
        default=2,
        ge=1,
        le=LARGEST_QUOTA,
        description="nearest losers with a known failure mode in a retrieved bundle",
    )
    budget_ms: float = Field(
        default=150.0,
        gt=0,
        description="a slower read is counted; live, a retrieval then falls back to base rates",
    )


class HighLevelSettings(Contract):
    """Cadence and gates of the slow loop. `interval` None: daily on intraday bars, else weekly."""

    enabled: bool = Field(default=True, description="whether the slow loop runs at all")
    interval: Literal["daily", "weekly"] | None = Field(
        default=None,
        description="cadence of the slow loop; unset: daily on intraday bars, weekly from daily bars on",
    )
    minimum_episodes: int = Field(
        default=20, le=MAX_COUNT, ge=20, description="resolved trades since the last run that a run needs"
    )
    structural_interval_days: int = Field(
        default=7,
        le=MAX_COUNT,
        ge=7,
        description="least days between runs that may recommend structural changes",
    )
    window_bars: int | None = Field(default=None, le=MAX_COUNT, ge=1, description="None: everything known")
    surprise_limit_r: float = Field(
        default=40.0, gt=0, description="sum of |R - reference| of new episodes that asks for an early look"
    )

    def interval_for(self, timeframe: str) -> Literal["daily", "weekly"]:
        """The interval in force for a timeframe."""
        return self.interval or ("weekly" if TIMEFRAME_SECONDS[timeframe] >= DAY_S else "daily")
