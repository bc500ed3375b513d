"""Families of volatility: standard deviations, average true ranges, and their expansion."""

from trading_core.features import nodes as f
from trading_core.features.families.family import NOT_NEGATIVE, FeatureFamily
from trading_core.features.formulas import range_ratio, realized_volatility
from trading_core.features.nodes import CLOSE

FAMILIES = (
    FeatureFamily(
        "stdev_N",
        lambda n: f.stdev(CLOSE, n),
        "price",
        "Population standard deviation.",
        (20,),
        2,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "realized_vol_N",
        realized_volatility,
        "fraction",
        "Population standard deviation of the last N log returns, per bar, not annualised.",
        (20,),
        2,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "vol_ratio_F_S",
        lambda fast, slow: f.divide(realized_volatility(fast), realized_volatility(slow)),
        "ratio",
        "realized_vol_F over realized_vol_S.",
        (10, 60),
        2,
        NOT_NEGATIVE,
        ascending=True,
    ),
    FeatureFamily("atr_N", f.atr, "price", "Average true range, Wilder's mean.", (14,), 1, NOT_NEGATIVE),
    FeatureFamily(
        "natr_N",
        lambda n: f.scale(100.0, f.divide(f.atr(n), CLOSE)),
        "percent",
        "ATR in percent of the close.",
        (14,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "atr_ratio_F_S",
        lambda fast, slow: f.divide(f.atr(fast), f.atr(slow)),
        "ratio",
        "atr_F over atr_S.",
        (10, 60),
        1,
        NOT_NEGATIVE,
        ascending=True,
    ),
    FeatureFamily(
        "range_ratio_N",
        range_ratio,
        "ratio",
        "True range over atr_N: range expansion.",
        (14,),
        1,
        NOT_NEGATIVE,
    ),
)
