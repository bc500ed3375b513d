"""Families of bands and channels: Bollinger, Keltner, Donchian.

Bollinger bands lie two population deviations, Keltner bands two ATR from their middle, or as many as the call
form says: `bollinger_upper(20, 2.5)`.
"""

from trading_core.features import nodes as f
from trading_core.features.families.family import NOT_NEGATIVE, FeatureFamily
from trading_core.features.nodes import CLOSE, HIGH, LOW, Node

WIDTH = 2.0


def _bollinger(n: int, width: float) -> Node:
    return f.add(f.mean(CLOSE, n), f.scale(width, f.stdev(CLOSE, n)))


def _keltner(n: int, width: float) -> Node:
    return f.add(f.ema(CLOSE, n), f.scale(width, f.atr(n)))


def _percent_b(n: int, width: float) -> Node:
    above_lower = f.subtract(CLOSE, _bollinger(n, -width))
    return f.divide(above_lower, f.scale(2 * width, f.stdev(CLOSE, n)))


def _donchian(n: int) -> tuple[Node, Node]:
    return f.highest(HIGH, n, before=False), f.lowest(LOW, n, before=False)


def _donchian_middle(n: int) -> Node:
    high, low = _donchian(n)
    return f.scale(0.5, f.add(high, low))


def _donchian_width(n: int) -> Node:
    high, low = _donchian(n)
    return f.divide(f.subtract(high, low), CLOSE)


FAMILIES = (
    FeatureFamily(
        "bollinger_upper_N",
        _bollinger,
        "price",
        "sma_N + 2 stdev_N.",
        (20,),
        2,
        NOT_NEGATIVE,
        width=WIDTH,
    ),
    FeatureFamily(
        "bollinger_lower_N",
        lambda n, width: _bollinger(n, -width),
        "price",
        "sma_N - 2 stdev_N.",
        (20,),
        2,
        width=WIDTH,
    ),
    FeatureFamily(
        "percent_b_N",
        _percent_b,
        "ratio",
        "Close within the Bollinger bands: 0 at the lower, 1 at the upper; unknown on a flat price.",
        (20,),
        2,
        width=WIDTH,
    ),
    FeatureFamily(
        "bandwidth_N",
        lambda n, width: f.divide(f.scale(2 * width, f.stdev(CLOSE, n)), f.mean(CLOSE, n)),
        "ratio",
        "Bollinger bandwidth with two deviations a side: 4 stdev_N / sma_N.",
        (20,),
        2,
        NOT_NEGATIVE,
        width=WIDTH,
    ),
    FeatureFamily(
        "zscore_N",
        lambda n: f.divide(f.subtract(CLOSE, f.mean(CLOSE, n)), f.stdev(CLOSE, n)),
        "ratio",
        "(close - sma_N) / stdev_N.",
        (20,),
        2,
    ),
    FeatureFamily(
        "keltner_upper_N", _keltner, "price", "ema_N + 2 atr_N.", (20,), 1, NOT_NEGATIVE, width=WIDTH
    ),
    FeatureFamily(
        "keltner_lower_N",
        lambda n, width: _keltner(n, -width),
        "price",
        "ema_N - 2 atr_N.",
        (20,),
        1,
        width=WIDTH,
    ),
    FeatureFamily(
        "keltner_width_N",
        lambda n, width: f.divide(f.scale(2 * width, f.atr(n)), f.ema(CLOSE, n)),
        "ratio",
        "Keltner bandwidth with two ATR a side: 4 atr_N / ema_N.",
        (20,),
        1,
        NOT_NEGATIVE,
        width=WIDTH,
    ),
    FeatureFamily(
        "donchian_upper_N",
        lambda n: _donchian(n)[0],
        "price",
        "Highest high of the last N bars, this one included.",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "donchian_lower_N",
        lambda n: _donchian(n)[1],
        "price",
        "Lowest low of the last N bars, this one included.",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "donchian_middle_N",
        _donchian_middle,
        "price",
        "Middle of the highest high and the lowest low of the last N bars, this one included.",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "donchian_width_N",
        _donchian_width,
        "ratio",
        "Range of the last N bars, this one included, over the close.",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "highest_N",
        lambda n: f.highest(HIGH, n, before=True),
        "price",
        "Highest high of the N bars before this one (previous Donchian channel).",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "lowest_N",
        lambda n: f.lowest(LOW, n, before=True),
        "price",
        "Lowest low of the N bars before this one (previous Donchian channel).",
        (20,),
        1,
        NOT_NEGATIVE,
    ),
)
