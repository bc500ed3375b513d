"""Families that are ranks with a name of their own, made for the regime; any other name takes `_rank`."""

from trading_core.features import nodes as f
from trading_core.features.families.family import UNIT_INTERVAL, FeatureFamily
from trading_core.features.formulas import range_ratio, realized_volatility, trend_strength

FAMILIES = (
    FeatureFamily(
        "trend_rank",
        lambda: f.rank(f.absolute(trend_strength(20, 50))),
        "rank",
        "Rank of |trend_strength_20_50|.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "double_trend_rank",
        lambda: f.rank(f.absolute(trend_strength(20, 50)), factor=2.0),
        "rank",
        "Rank of twice |trend_strength_20_50|: below one half means, below half of its rolling median.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "reduced_vol_rank",
        lambda: f.rank(realized_volatility(20), factor=2 / 3),
        "rank",
        "Rank of two thirds of realized_vol_20: above one half means, above 1.5 times its rolling median.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "range_rank",
        lambda: f.rank(range_ratio(14)),
        "rank",
        "Rank of range_ratio_14.",
        bounds=UNIT_INTERVAL,
    ),
)
