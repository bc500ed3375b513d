"""Families of direction and its strength: directional movement, Aroon, vortex, distances between averages."""

from trading_core.features import nodes as f
from trading_core.features.families.family import NOT_NEGATIVE, PERCENT, FeatureFamily
from trading_core.features.formulas import efficiency, trend_strength
from trading_core.features.nodes import HIGH, LOW, Node


def directional_index(n: int, up: bool) -> Node:
    """Wilder's directional indicator of one side."""
    rise, fall = f.change(HIGH), f.scale(-1.0, f.change(LOW))
    movement = f.dominant(rise, fall) if up else f.dominant(fall, rise)
    return f.scale(100.0, f.divide(f.wilder_sum(movement, n), f.wilder_sum(f.true_range(), n)))


def _dx(n: int) -> Node:
    plus, minus = directional_index(n, up=True), directional_index(n, up=False)
    return f.scale(100.0, f.divide(f.absolute(f.subtract(minus, plus)), f.add(minus, plus)))


def _trend_change(fast: int, slow: int, n: int) -> Node:
    return f.change(trend_strength(fast, slow), n)


def _aroon(n: int, up: bool) -> Node:
    return f.scale(100.0, f.recency_of_highest(HIGH, n) if up else f.recency_of_lowest(LOW, n))


def _vortex(n: int, up: bool) -> Node:
    distance = f.subtract(HIGH, f.lag(LOW, 1)) if up else f.subtract(LOW, f.lag(HIGH, 1))
    return f.divide(f.mean(f.absolute(distance), n), f.mean(f.true_range(), n))


FAMILIES = (
    FeatureFamily(
        "trend_strength_F_S",
        trend_strength,
        "ratio",
        "(ema_F - ema_S) / atr_S.",
        (20, 50),
        1,
        ascending=True,
    ),
    FeatureFamily(
        "trend_change_F_S_N",
        _trend_change,
        "ratio",
        "Change of trend_strength_F_S over N bars.",
        (20, 50, 10),
        1,
        ascending=True,
    ),
    FeatureFamily(
        "plus_di_N",
        lambda n: directional_index(n, up=True),
        "percent",
        "Wilder's positive directional indicator.",
        (14,),
        2,
        PERCENT,
    ),
    FeatureFamily(
        "minus_di_N",
        lambda n: directional_index(n, up=False),
        "percent",
        "Wilder's negative directional indicator.",
        (14,),
        2,
        PERCENT,
    ),
    FeatureFamily(
        "dx_N",
        _dx,
        "percent",
        "Wilder's directional movement index; unknown without any movement.",
        (14,),
        2,
        PERCENT,
    ),
    FeatureFamily(
        "adx_N",
        lambda n: f.wilder(_dx(n), n),
        "percent",
        "Wilder's average directional index.",
        (14,),
        2,
        PERCENT,
    ),
    FeatureFamily(
        "aroon_up_N",
        lambda n: _aroon(n, up=True),
        "percent",
        "How recent the highest high of the last N+1 bars is: 100 on this bar, 0 N bars ago.",
        (25,),
        1,
        PERCENT,
    ),
    FeatureFamily(
        "aroon_down_N",
        lambda n: _aroon(n, up=False),
        "percent",
        "How recent the lowest low of the last N+1 bars is.",
        (25,),
        1,
        PERCENT,
    ),
    FeatureFamily(
        "aroon_oscillator_N",
        lambda n: f.subtract(_aroon(n, up=True), _aroon(n, up=False)),
        "percent",
        "aroon_up_N less aroon_down_N.",
        (25,),
        1,
        (-100.0, 100.0),
    ),
    FeatureFamily(
        "vortex_plus_N",
        lambda n: _vortex(n, up=True),
        "ratio",
        "Positive vortex: sum of |high - low before| over the sum of the true range.",
        (14,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "vortex_minus_N",
        lambda n: _vortex(n, up=False),
        "ratio",
        "Negative vortex: sum of |low - high before| over the sum of the true range.",
        (14,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "efficiency_N",
        efficiency,
        "ratio",
        "Kaufman's efficiency ratio: net move over the path of N bars.",
        (10,),
        2,
    ),
)
