"""Regime labels and their fingerprint: rolling ranks, never absolute constants."""

from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from schemas.contract import Contract
from schemas.vocabulary import Structure, Trend, VolatilityBand

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FINGERPRINT = ("trend_rank", "volatility_rank", "bandwidth_rank", "volume_rank", "range_rank")
Rank = Annotated[float, Field(ge=0, le=1)]


class RegimeLabels(Contract):
    """Confirmed labels of one symbol at one bar close, after hysteresis."""

    trend: Trend
    volatility: VolatilityBand
    structure: Structure

    @property
    def key(self) -> str:
        """`trend/volatility`, the cluster key of the slow loop."""
        return f"{self.trend}/{self.volatility}"


class RegimeView(Contract):
    """Labels and the five ranks in [0, 1] behind them, in the order of `FINGERPRINT`."""

    labels: RegimeLabels
    fingerprint: tuple[Rank, ...] = Field(min_length=len(FINGERPRINT), max_length=len(FINGERPRINT))


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
    low_volatility: float = Field(default=0.25, gt=0, lt=1)
    high_volatility: float = Field(default=0.75, gt=0, lt=1)
    extreme_volatility: float = Field(default=0.95, gt=0, lt=1)
    shock: float = Field(default=0.5, gt=0, lt=1, description="rank of two thirds of volatility above it")
    compression: float = Field(default=0.2, gt=0, lt=1, description="rank of bandwidth below it")
    expansion: float = Field(default=0.8, gt=0, lt=1, description="rank of range over ATR above it")
    stretched: float = Field(
        default=0.2, gt=0, lt=0.5, description="tail of z-scores that counts as stretched"
    )
    confirm: int = Field(
        default=3, ge=1, le=60, description="closes that must agree on a direction or a band"
    )
    confirm_of: int = Field(default=5, ge=1, le=60)
    sideways_confirm: int = Field(default=8, ge=1, le=60)
    sideways_confirm_of: int = Field(default=12, ge=1, le=60)
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
