"""Regime detector: trend, volatility band and structure of each symbol, from rolling ranks of its own bars.

No constant has a price, a volatility or a time in it, so scaling prices or changing the timeframe of a path
changes no label. Labels have hysteresis: a change needs k of the last n closes and a minimum dwell. Called by
the engine and the snapshot; events say that something changed, reasons say of every bar why or why not.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from pydantic import Field

from schemas.contract import Contract
from schemas.regime import FINGERPRINT
from trading_core.bars import BarSeries, FloatArray
from trading_core.features.columns import FeatureColumns

CodeArray = npt.NDArray[np.int8]
FlagArray = npt.NDArray[np.uint8]
LABELS, CODES = 3, 7
FEATURES_READ = (
    "trend_rank",
    "realized_vol_20_rank",
    "bandwidth_20_rank",
    "volume_rank",
    "range_rank",
    "trend_change_20_50_10_rank",
    "double_trend_rank",
    "reduced_vol_rank",
    "trend_strength_20_50",
    "trend_change_20_50_10",
    "realized_vol_20",
    "zscore_20_rank",
    "close",
    "highest_20",
    "lowest_20",
)


class RegimeReason(StrEnum):
    """Why an evaluation of the regime fired or did not; the codes are the positions of the members."""

    ABSENT = "absent"
    WARMING_UP = "warming_up"
    INITIAL = "initial"
    UNCHANGED = "unchanged"
    UNKNOWN_INPUT = "unknown_input"
    UNCONFIRMED = "unconfirmed"
    DWELLING = "dwelling"
    BAND_SHIFTED = "band_shifted"
    TREND_CHANGED = "trend_changed"
    SHOCK = "shock"


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

    def values(self) -> FloatArray:
        """float64 (16,) in the order of the fields."""
        return np.array([float(getattr(self, name)) for name in type(self).model_fields])


@dataclass(frozen=True, eq=False)
class RegimeColumns:
    """Regime of every symbol at every bar; on an absent bar the labels in force are carried, events are zero.

    Attributes:
        trend, volatility, structure: int8 (T, S), positions of the members of the enums; -1 while warming up.
        fingerprint: float64 (T, S, 5) in the order of `FINGERPRINT`; NaN while warming up; a rank that
            becomes unknown keeps its last value.
        trend_change: uint8 (T, S), the confirmed trend changed.
        band_shift: uint8 (T, S), the confirmed volatility band changed.
        shock: uint8 (T, S), volatility entered the extreme band; again only after it had left it for good.
        reason: int8 (T, S), position in `RegimeReason`.
    """

    trend: CodeArray
    volatility: CodeArray
    structure: CodeArray
    fingerprint: FloatArray
    trend_change: FlagArray
    band_shift: FlagArray
    shock: FlagArray
    reason: CodeArray


def regime_columns(
    bars: BarSeries, settings: RegimeSettings | None = None, features: FeatureColumns | None = None
) -> RegimeColumns:
    """Regime of every symbol at every bar.

    Args:
        bars: the series.
        settings: None: the defaults.
        features: feature columns to share; None computes them.
    """
    # Imported on use, so that reading the names of reasons never loads the compiler.
    from trading_core.regime_recurrence import STATE_SIZE, run

    columns, values = features or FeatureColumns(bars), (settings or RegimeSettings()).values()
    codes = np.zeros((*bars.shape, CODES), dtype=np.int8)
    ranks = np.full((*bars.shape, len(FINGERPRINT)), np.nan)
    for s in range(bars.shape[1]):
        columns.load(FEATURES_READ, [s])
        inputs = np.column_stack([columns.own(name, s) for name in FEATURES_READ])
        own_codes = np.empty((inputs.shape[0], CODES), dtype=np.int8)
        own_ranks = np.empty((inputs.shape[0], len(FINGERPRINT)))
        run(inputs, values, np.zeros(STATE_SIZE), own_codes, own_ranks)
        codes[:, s], ranks[:, s] = _carried(bars.present[:, s], own_codes, own_ranks)
    parts = [np.ascontiguousarray(codes[:, :, k]) for k in range(CODES)]
    trend, volatility, structure = parts[:LABELS]
    trend_change, band_shift, shock = (part.view(np.uint8) for part in parts[LABELS : LABELS + 3])
    return RegimeColumns(trend, volatility, structure, ranks, trend_change, band_shift, shock, parts[-1])


def _carried(
    present: npt.NDArray[np.bool_], codes: CodeArray, ranks: FloatArray
) -> tuple[CodeArray, FloatArray]:
    """Own bars on the full axis: labels in force and ranks are carried over absent bars, events are not."""
    last = np.cumsum(present) - 1
    before_first = np.zeros((1, CODES), dtype=np.int8)
    before_first[0, :LABELS] = -1
    full = np.concatenate([codes, before_first])[last]
    full[~present, LABELS:] = 0  # no event, and RegimeReason.ABSENT
    return full, np.concatenate([ranks, np.full((1, ranks.shape[1]), np.nan)])[last]
