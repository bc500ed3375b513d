"""Families of volume: means, ratios, volume-weighted price, on-balance volume."""

from trading_core.features import nodes as f
from trading_core.features.families.family import NOT_NEGATIVE, FeatureFamily
from trading_core.features.formulas import typical_price
from trading_core.features.nodes import CLOSE, VOLUME, Node


def _vwap(n: int) -> Node:
    return f.divide(f.mean(f.multiply(typical_price(), VOLUME), n), f.mean(VOLUME, n))


def _volume_zscore(n: int) -> Node:
    return f.divide(f.subtract(VOLUME, f.mean(VOLUME, n)), f.stdev(VOLUME, n))


def _obv() -> Node:
    change = f.change(CLOSE)
    sign = f.subtract(f.above_zero(change), f.above_zero(f.scale(-1.0, change)))
    return f.total(f.multiply(sign, VOLUME))


FAMILIES = (
    FeatureFamily(
        "volume_sma_N",
        lambda n: f.mean(VOLUME, n),
        "shares",
        "Simple mean of volume.",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "volume_ratio_N",
        lambda n: f.divide(VOLUME, f.mean(VOLUME, n)),
        "ratio",
        "Volume over its mean of the last N bars.",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "volume_zscore_N",
        _volume_zscore,
        "ratio",
        "Volume less its mean of the last N bars, in population deviations; unknown on a constant volume.",
        (20,),
        2,
    ),
    FeatureFamily(
        "vwap_N",
        _vwap,
        "price",
        "Volume-weighted mean of the typical price of the last N bars; unknown without volume.",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "obv",
        _obv,
        "shares",
        "On-balance volume, from zero at the first bar: compare it with itself, not with a level.",
    ),
)
