"""Who proposes, which events start an evaluation, and what a regime is."""

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from schemas.contract import Contract
from schemas.settings.bounds import MAX_COUNT
from schemas.timeframes import TIMEFRAME_SECONDS
from schemas.vocabulary import PolicyEventKind

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

HEARTBEAT_BARS = {"1m": 15, "2m": 12, "1d": 5}  # from each of these timeframes on


class RegimeSettings(Contract):
    """Ranks that bound the labels, and how long a change must last; lengths in own bars.

    A trend is weak below half of its own rolling median strength, not in its lowest third: of a steady
    trend a third of the bars would be weak by definition. Sideways takes longer to confirm than a
    direction, because on its way from up to down a trend is weak for a while. A market that turns twice
    within `chop_bars` is sideways too, but for its strongest swings: against its own history a range
    looks like one swing after another. In the same way a twentieth of all bars is extreme by rank; a
    shock is above 1.5 times the rolling median as well.
    """

    weak_trend: float = Field(
        default=1 / 3, gt=0, lt=1, description="rank of |trend strength| below which it is weak"
    )
    strong_trend: float = Field(
        default=2 / 3, gt=0, lt=1, description="rank from which chop is a trend after all"
    )
    fast_change: float = Field(
        default=0.25, gt=0, lt=0.5, description="tail of trend changes that counts as fast"
    )
    chop_bars: int = Field(default=100, ge=2, description="two turns of the trend within them are chop")
    low_volatility: float = Field(
        default=0.25, gt=0, lt=1, description="rank of volatility below which its band is low"
    )
    high_volatility: float = Field(default=0.75, gt=0, lt=1, description="rank from which it is high")
    extreme_volatility: float = Field(default=0.95, gt=0, lt=1, description="rank from which it is extreme")
    shock: float = Field(default=0.5, gt=0, lt=1, description="rank of two thirds of volatility above it")
    compression: float = Field(default=0.2, gt=0, lt=1, description="rank of bandwidth below it")
    expansion: float = Field(default=0.8, gt=0, lt=1, description="rank of range over ATR above it")
    stretched: float = Field(
        default=0.2, gt=0, lt=0.5, description="tail of z-scores that counts as stretched"
    )
    confirm: int = Field(
        default=3, ge=1, le=60, description="closes that must agree on a direction or a band"
    )
    confirm_of: int = Field(
        default=5, ge=1, le=60, description="last closes among which `confirm` must agree"
    )
    sideways_confirm: int = Field(default=8, ge=1, le=60, description="closes that must agree on sideways")
    sideways_confirm_of: int = Field(
        default=12, ge=1, le=60, description="last closes among which they must agree"
    )
    dwell: int = Field(default=10, ge=0, le=1_000, description="bars between two changes of a label")

    @model_validator(mode="after")
    def _bounds_ascend(self) -> Self:
        for lower, upper in _ASCENDING:
            low, high = getattr(self, lower), getattr(self, upper)
            if low > high:
                raise ValueError(f"{lower} {low!r} lies above {upper} {high!r}: lower it or raise the other")
        return self

    def values(self) -> "npt.NDArray[np.float64]":
        """float64 (16,) in the order of the fields."""
        import numpy as np  # on use: reading the settings loads no numerics

        return np.array([float(getattr(self, name)) for name in type(self).model_fields])


_ASCENDING = (
    ("weak_trend", "strong_trend"),
    ("low_volatility", "high_volatility"),
    ("high_volatility", "extreme_volatility"),
    ("compression", "expansion"),
    ("confirm", "confirm_of"),
    ("sideways_confirm", "sideways_confirm_of"),
)


class PolicyLoopSettings(Contract):
    """Who proposes, which events start an evaluation, and how often."""

    strategist: Literal["rules", "model"] = Field(
        default="rules",
        description="who proposes: `rules`, or `model`: that of the strategist (`llm.model`), whose failures "
        "the rules answer",
    )
    events: tuple[PolicyEventKind, ...] = Field(
        default=(
            PolicyEventKind.REGIME_CHANGE,
            PolicyEventKind.POSITION_OPENED,
            PolicyEventKind.POSITION_CLOSED,
            PolicyEventKind.VOLATILITY_BAND_SHIFT,
            PolicyEventKind.HEARTBEAT,
            PolicyEventKind.REPLAN,
        ),
        description="what may start an evaluation; an event left out is skipped as `event_disabled`",
    )
    heartbeat_s: int | None = Field(
        default=None, le=MAX_COUNT, ge=1, description="None: the table of the timeframe"
    )
    minimum_interval_s: int = Field(
        default=900, le=MAX_COUNT, ge=0, description="least time between evaluations of a symbol"
    )
    minimum_interval_bars: int = Field(
        default=3,
        le=MAX_COUNT,
        ge=0,
        description="least own bars between evaluations; the larger of the two holds",
    )
    max_revisions: int = Field(
        default=2, ge=0, le=2, description="revision rounds of one evaluation, shared by reflection and judge"
    )
    max_answer_bars: int = Field(
        default=1, le=MAX_COUNT, ge=0, description="bars of a live feed; an answer after more is stale"
    )
    explore: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="share of evaluations in which the rules prefer a playbook that may be as good as the "
        "best, of each such playbook",
    )
    regime: RegimeSettings = RegimeSettings()

    def heartbeat_bars(self, timeframe: str) -> int:
        """Own bars between heartbeats, at least one."""
        if self.heartbeat_s is None:
            bar_s = TIMEFRAME_SECONDS[timeframe]
            return [bars for name, bars in HEARTBEAT_BARS.items() if TIMEFRAME_SECONDS[name] <= bar_s][-1]
        return max(1, -(-self.heartbeat_s // TIMEFRAME_SECONDS[timeframe]))

    def minimum_bars(self, timeframe: str) -> int:
        """Own bars between evaluations: the larger of the time and the bar setting."""
        return max(self.minimum_interval_bars, -(-self.minimum_interval_s // TIMEFRAME_SECONDS[timeframe]))
