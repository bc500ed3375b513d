"""The families of features in standard names, each a graph with its lengths left open.

Conventions that differ between libraries are said in the family's sentence. Read by the registry only; to add
a feature, add a family here and its oracle to the tests.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from trading_core.features import nodes as f
from trading_core.features.nodes import CLOSE, HIGH, LOW, OPEN, VOLUME, Node

INFINITY = float("inf")
ANY = (-INFINITY, INFINITY)
NOT_NEGATIVE = (0.0, INFINITY)
UNIT_INTERVAL = (0.0, 1.0)
PERCENT = (0.0, 100.0)


@dataclass(frozen=True)
class FeatureFamily:
    """A feature with its lengths left open.

    Attributes:
        pattern: the name with capital letters for the lengths.
        build: graph for given lengths.
        unit: price, fraction, percent, ratio, rank, shares, bars or calendar.
        doc: one sentence, with the convention where several are in use.
        defaults: lengths of the example name.
        minimum: smallest length allowed.
        bounds: closed interval of possible values.
        ascending: whether the first length must be below the second.
    """

    pattern: str
    build: Callable[..., Node]
    unit: str
    doc: str
    defaults: tuple[int, ...] = ()
    minimum: int = 1
    bounds: tuple[float, float] = ANY
    ascending: bool = False

    @property
    def stem(self) -> str:
        """The name without lengths."""
        return re.sub(r"(_[A-Z])+$", "", self.pattern)

    @property
    def example(self) -> str:
        """The name with its default lengths."""
        return "_".join([self.stem, *map(str, self.defaults)])


def _directional_index(n: int, up: bool) -> Node:
    rise, fall = f.change(HIGH), f.scale(-1.0, f.change(LOW))
    movement = f.dominant(rise, fall) if up else f.dominant(fall, rise)
    return f.scale(100.0, f.divide(f.wilder_sum(movement, n), f.wilder_sum(f.true_range(), n)))


def _adx(n: int) -> Node:
    plus, minus = _directional_index(n, up=True), _directional_index(n, up=False)
    return f.wilder(f.scale(100.0, f.divide(f.absolute(f.subtract(minus, plus)), f.add(minus, plus))), n)


def _rsi(n: int) -> Node:
    gains = f.wilder(f.positive(f.change(CLOSE)), n)
    losses = f.wilder(f.positive(f.scale(-1.0, f.change(CLOSE))), n)
    return f.scale(100.0, f.divide(gains, f.add(gains, losses)))


def _macd(fast: int, slow: int) -> Node:
    return f.subtract(f.ema(CLOSE, fast, skip=slow - fast), f.ema(CLOSE, slow))


def _macd_signal(fast: int, slow: int, n: int) -> Node:
    return f.ema(_macd(fast, slow), n)


def _trend_strength(fast: int, slow: int) -> Node:
    return f.divide(f.subtract(f.ema(CLOSE, fast), f.ema(CLOSE, slow)), f.atr(slow))


def _trend_change(fast: int, slow: int, n: int) -> Node:
    return f.change(_trend_strength(fast, slow), n)


def _log_return() -> Node:
    return f.log(f.divide(CLOSE, f.lag(CLOSE, 1)))


def _bandwidth(n: int) -> Node:
    return f.divide(f.scale(4.0, f.stdev(CLOSE, n)), f.mean(CLOSE, n))


def _channel(n: int, before: bool) -> tuple[Node, Node]:
    return f.highest(HIGH, n, before), f.lowest(LOW, n, before)


def _donchian_width(n: int) -> Node:
    high, low = _channel(n, before=False)
    return f.divide(f.subtract(high, low), CLOSE)


def _stochastic(n: int) -> Node:
    high, low = _channel(n, before=False)
    return f.scale(100.0, f.divide(f.subtract(CLOSE, low), f.subtract(high, low)))


def _efficiency(n: int) -> Node:
    path = f.scale(float(n), f.mean(f.absolute(f.change(CLOSE)), n))
    return f.divide(f.absolute(f.change(CLOSE, n)), path)


FAMILIES = (
    FeatureFamily("open", lambda: OPEN, "price", "Open of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily("high", lambda: HIGH, "price", "High of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily("low", lambda: LOW, "price", "Low of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily("close", lambda: CLOSE, "price", "Close of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily("volume", lambda: VOLUME, "shares", "Volume of the bar.", bounds=NOT_NEGATIVE),
    FeatureFamily(
        "hour", lambda: f.raw("hour"), "calendar", "UTC hour of the bar's label.", bounds=(0.0, 23.0)
    ),
    FeatureFamily(
        "day_of_week",
        lambda: f.raw("day_of_week"),
        "calendar",
        "UTC weekday of the bar's label, Monday 0.",
        bounds=(0.0, 6.0),
    ),
    FeatureFamily(
        "month", lambda: f.raw("month"), "calendar", "UTC month of the bar's label.", bounds=(1.0, 12.0)
    ),
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
        "stdev_N",
        lambda n: f.stdev(CLOSE, n),
        "price",
        "Population standard deviation.",
        (20,),
        2,
        NOT_NEGATIVE,
    ),
    FeatureFamily("rsi_N", _rsi, "percent", "Wilder's RSI; unknown on a flat price.", (14,), 2, PERCENT),
    FeatureFamily("true_range", f.true_range, "price", "Wilder's true range.", bounds=NOT_NEGATIVE),
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
    FeatureFamily(
        "roc_N",
        lambda n: f.divide(f.change(CLOSE, n), f.lag(CLOSE, n)),
        "fraction",
        "Change of the close over N bars, as a fraction.",
        (10,),
        1,
        (-1.0, INFINITY),
    ),
    FeatureFamily("log_return", _log_return, "fraction", "Log of close over the close before."),
    FeatureFamily(
        "realized_vol_N",
        lambda n: f.stdev(_log_return(), n),
        "fraction",
        "Population standard deviation of the last N log returns, per bar, not annualised.",
        (20,),
        2,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "bandwidth_N",
        _bandwidth,
        "ratio",
        "Bollinger bandwidth with two deviations a side: 4 stdev_N / sma_N.",
        (20,),
        2,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "keltner_width_N",
        lambda n: f.divide(f.scale(4.0, f.atr(n)), f.ema(CLOSE, n)),
        "ratio",
        "Keltner bandwidth with two ATR a side: 4 atr_N / ema_N.",
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
        "zscore_N",
        lambda n: f.divide(f.subtract(CLOSE, f.mean(CLOSE, n)), f.stdev(CLOSE, n)),
        "ratio",
        "(close - sma_N) / stdev_N.",
        (20,),
        2,
    ),
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
        "range_ratio_N",
        lambda n: f.divide(f.true_range(), f.atr(n)),
        "ratio",
        "True range over atr_N: range expansion.",
        (14,),
        1,
        NOT_NEGATIVE,
    ),
    FeatureFamily(
        "trend_strength_F_S",
        _trend_strength,
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
        "macd_F_S",
        _macd,
        "price",
        "Fast less slow EMA, both seeded at the slow one's bar.",
        (12, 26),
        1,
        ascending=True,
    ),
    FeatureFamily(
        "macd_signal_F_S_N", _macd_signal, "price", "EMA of macd_F_S.", (12, 26, 9), 1, ascending=True
    ),
    FeatureFamily(
        "macd_histogram_F_S_N",
        lambda fast, slow, n: f.subtract(_macd(fast, slow), _macd_signal(fast, slow, n)),
        "price",
        "macd_F_S less its signal.",
        (12, 26, 9),
        1,
        ascending=True,
    ),
    FeatureFamily(
        "plus_di_N",
        lambda n: _directional_index(n, up=True),
        "percent",
        "Wilder's positive directional indicator.",
        (14,),
        2,
        PERCENT,
    ),
    FeatureFamily(
        "minus_di_N",
        lambda n: _directional_index(n, up=False),
        "percent",
        "Wilder's negative directional indicator.",
        (14,),
        2,
        PERCENT,
    ),
    FeatureFamily("adx_N", _adx, "percent", "Wilder's average directional index.", (14,), 2, PERCENT),
    FeatureFamily(
        "stochastic_N",
        _stochastic,
        "percent",
        "Close within the range of the last N bars, this one included.",
        (14,),
        1,
        PERCENT,
    ),
    FeatureFamily(
        "efficiency_N",
        _efficiency,
        "ratio",
        "Kaufman's efficiency ratio: net move over the path of N bars.",
        (10,),
        2,
    ),
    FeatureFamily(
        "distance_high_N",
        lambda n: f.divide(f.subtract(CLOSE, f.highest(HIGH, n, before=True)), f.atr(n)),
        "ratio",
        "Close less highest_N, in atr_N.",
        (20,),
    ),
    FeatureFamily(
        "distance_low_N",
        lambda n: f.divide(f.subtract(CLOSE, f.lowest(LOW, n, before=True)), f.atr(n)),
        "ratio",
        "Close less lowest_N, in atr_N.",
        (20,),
    ),
    FeatureFamily(
        "distance_sma_N",
        lambda n: f.divide(f.subtract(CLOSE, f.mean(CLOSE, n)), f.atr(n)),
        "ratio",
        "Close less sma_N, in atr_N.",
        (20,),
    ),
    FeatureFamily(
        "gap",
        lambda: f.divide(f.subtract(OPEN, f.lag(CLOSE, 1)), f.lag(CLOSE, 1)),
        "fraction",
        "Open against the close before.",
    ),
    FeatureFamily(
        "close_location",
        lambda: f.divide(f.subtract(CLOSE, LOW), f.subtract(HIGH, LOW)),
        "fraction",
        "Where the close lies in the bar's range.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "trend_rank",
        lambda: f.rank(f.absolute(_trend_strength(20, 50))),
        "rank",
        "Rank of |trend_strength_20_50|.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "double_trend_rank",
        lambda: f.rank(f.absolute(_trend_strength(20, 50)), factor=2.0),
        "rank",
        "Rank of twice |trend_strength_20_50|: below one half means, below half of its rolling median.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "reduced_vol_rank",
        lambda: f.rank(f.stdev(_log_return(), 20), factor=2 / 3),
        "rank",
        "Rank of two thirds of realized_vol_20: above one half means, above 1.5 times its rolling median.",
        bounds=UNIT_INTERVAL,
    ),
    FeatureFamily(
        "range_rank",
        lambda: f.rank(f.divide(f.true_range(), f.atr(14))),
        "rank",
        "Rank of range_ratio_14.",
        bounds=UNIT_INTERVAL,
    ),
)
