"""Families of moving averages of the close, and how steeply they rise."""

import math

from trading_core.features import nodes as f
from trading_core.features.families.family import ANY, NOT_NEGATIVE, FeatureFamily
from trading_core.features.formulas import efficiency
from trading_core.features.nodes import CLOSE, Node


def _dema(n: int) -> Node:
    once = f.ema(CLOSE, n)
    return f.subtract(f.scale(2.0, once), f.ema(once, n))


def _tema(n: int) -> Node:
    once = f.ema(CLOSE, n)
    twice = f.ema(once, n)
    return f.add(f.scale(3.0, f.subtract(once, twice)), f.ema(twice, n))


def _hma(n: int) -> Node:
    faster = f.scale(2.0, f.weighted_mean(CLOSE, n // 2))
    return f.weighted_mean(f.subtract(faster, f.weighted_mean(CLOSE, n)), math.isqrt(n))


def _linreg_slope(n: int) -> Node:
    # The least-squares slope over equal steps is 6 (weighted mean - mean) / (n - 1).
    return f.scale(6.0 / (n - 1), f.subtract(f.weighted_mean(CLOSE, n), f.mean(CLOSE, n)))


FAMILIES = (
    FeatureFamily(
        "sma_N", lambda n: f.mean(CLOSE, n), "price", "Simple moving average.", (20,), 1, NOT_NEGATIVE
    ),
    FeatureFamily(
        "ema_N",
        lambda n: f.ema(CLOSE, n),
        "price",
        "Exponential moving average, factor 2/(N+1), seeded by the simple one.",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "wma_N",
        lambda n: f.weighted_mean(CLOSE, n),
        "price",
        "Linearly weighted moving average, the newest close with weight N.",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "rma_N",
        lambda n: f.wilder(CLOSE, n),
        "price",
        "Wilder's moving average, factor 1/N, seeded by the simple one.",
        (14,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "dema_N", _dema, "price", "Double exponential moving average: 2 ema_N less its own EMA.", (20,), 1
    ),
    FeatureFamily(
        "tema_N",
        _tema,
        "price",
        "Triple exponential moving average: 3 ema_N less 3 of its EMA plus the EMA of that.",
        (20,),
        1,
    ),
    FeatureFamily(
        "kama_N",
        lambda n: f.adaptive_mean(CLOSE, efficiency(n)),
        "price",
        "Kaufman's adaptive moving average with his 2 and 30 bars; unknown while efficiency_N is.",
        (10,),
        2,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "hma_N",
        _hma,
        "price",
        "Hull's moving average: over sqrt N bars the WMA of 2 wma_N/2 less wma_N, both rounded down.",
        (20,),
        4,
    ),
    FeatureFamily(
        "linreg_slope_N",
        _linreg_slope,
        "price",
        "Slope of the least-squares line through N closes, per bar.",
        (20,),
        2,
        ANY,
    ),
)
