"""Families of one bar: its prices, its shape, and its change against the bar before."""

from trading_core.features import nodes as f
from trading_core.features.families.family import ANY, INFINITY, NOT_NEGATIVE, UNIT_INTERVAL, FeatureFamily
from trading_core.features.formulas import log_return, typical_price
from trading_core.features.nodes import CLOSE, HIGH, LOW, OPEN, VOLUME, Node


def _of_range(x: Node) -> Node:
    return f.divide(x, f.subtract(HIGH, LOW))


def _wick(upper: bool) -> Node:
    ends, body = f.add(OPEN, CLOSE), f.absolute(f.subtract(CLOSE, OPEN))
    edge = f.scale(0.5, f.add(ends, body) if upper else f.subtract(ends, body))
    # Half of a sum may round beyond the high or the low.
    return _of_range(f.positive(f.subtract(HIGH, edge) if upper else f.subtract(edge, LOW)))


def _streak(sign: float) -> Node:
    return f.streak(f.scale(sign, f.change(CLOSE)))


FAMILIES = (
    FeatureFamily("open", lambda: OPEN, "price", "Open of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily("high", lambda: HIGH, "price", "High of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily("low", lambda: LOW, "price", "Low of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily("close", lambda: CLOSE, "price", "Close of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily("volume", lambda: VOLUME, "shares", "Volume of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily("typical_price", typical_price, "price", "(high + low + close) / 3.", bounds=NOT_NEGATIVE),
    FeatureFamily("bar_range", lambda: f.subtract(HIGH, LOW), "price", "High less low.", bounds=NOT_NEGATIVE),
    FeatureFamily("true_range", f.true_range, "price", "Wilder's true range.", bounds=NOT_NEGATIVE),
    FeatureFamily(
        "body_ratio",
        lambda: _of_range(f.subtract(CLOSE, OPEN)),
        "fraction",
        "Close less open, over the bar's range (balance of power); unknown without a range.",
        bounds=(-1.0, 1.0),
    ),
    FeatureFamily(
        "upper_wick",
        lambda: _wick(upper=True),
        "fraction",
        "Part of the bar's range above its body; unknown without a range.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "lower_wick",
        lambda: _wick(upper=False),
        "fraction",
        "Part of the bar's range below its body; unknown without a range.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "close_location",
        lambda: _of_range(f.subtract(CLOSE, LOW)),
        "fraction",
        "Where the close lies in the bar's range; unknown without a range.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "gap",
        lambda: f.divide(f.subtract(OPEN, f.lag(CLOSE, 1)), f.lag(CLOSE, 1)),
        "fraction",
        "Open against the close before.",
        bounds=(-1.0, INFINITY),
    ),
    FeatureFamily("log_return", log_return, "fraction", "Log of close over the close before.", bounds=ANY),
    FeatureFamily(
        "up_streak",
        lambda: _streak(1.0),
        "bars",
        "Bars in a row that closed above the close before.",
        bounds=NOT_NEGATIVE,
    ),
    FeatureFamily(
        "down_streak",
        lambda: _streak(-1.0),
        "bars",
        "Bars in a row that closed below the close before.",
        bounds=NOT_NEGATIVE,
    ),
)
