"""Regime labels and their fingerprint: rolling ranks, never absolute constants."""

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from schemas.contract import Contract
from schemas.vocabulary import Structure, Trend, VolatilityBand

if TYPE_CHECKING:
    pass

FINGERPRINT = ("trend_rank", "volatility_rank", "bandwidth_rank", "volume_rank", "range_rank")
UNKNOWN = "unknown"  # regime and structure of what was decided before they were known
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
