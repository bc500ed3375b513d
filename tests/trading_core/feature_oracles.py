"""What every feature should be, said a second time: by TA-Lib where it has the feature, else by plain numpy
and pandas over whole windows and groups. No line is shared with the engine.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from trading_core.bars import BarSeries

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import talib

FloatArray = npt.NDArray[np.float64]
WEEK_START = pd.Timestamp("1970-01-05", tz="UTC")  # a Monday


@dataclass(frozen=True)
class Own:
    """Present bars of one symbol: float64 (N,) prices and volume, and their times in UTC."""

    o: FloatArray
    h: FloatArray
    l: FloatArray  # noqa: E741
    c: FloatArray
    v: FloatArray
    labels: pd.DatetimeIndex
    closes: pd.DatetimeIndex

    @classmethod
    def of(cls, bars: BarSeries, s: int = 0) -> "Own":
        rows = np.flatnonzero(bars.present[:, s])
        o, h, low, c, v = (
            getattr(bars, name)[rows, s].copy() for name in ("open", "high", "low", "close", "volume")
        )
        labels, closes = (
            pd.DatetimeIndex(pd.to_datetime(times[rows], unit="ns", utc=True))
            for times in (bars.times, bars.close_times)
        )
        return cls(o, h, low, c, v, labels, closes)

    @property
    def tp(self) -> FloatArray:
        return (self.h + self.l + self.c) / 3

    @property
    def days(self) -> npt.NDArray[np.int64]:
        """The UTC day that ends at or after each close."""
        return np.asarray((self.closes - pd.Timedelta(1, "ns")).normalize().asi8)

    @property
    def weeks(self) -> npt.NDArray[np.int64]:
        days = (self.closes - pd.Timedelta(1, "ns")).normalize()
        return np.asarray((days - pd.to_timedelta(days.day_of_week, unit="D")).asi8)


def shifted(values: FloatArray, n: int = 1) -> FloatArray:
    return np.concatenate([np.full(min(n, values.size), np.nan), values[: max(values.size - n, 0)]])


def rolling(values: FloatArray, n: int, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """A function of every full window of n values, the oldest first; a window with an unknown is unknown."""
    out = np.full(values.size, np.nan)
    if values.size >= n:
        out[n - 1 :] = function(np.lib.stride_tricks.sliding_window_view(values, n))
    return out


def mean(values: FloatArray, n: int) -> FloatArray:
    return rolling(values, n, lambda windows: windows.mean(axis=1))


def std(values: FloatArray, n: int) -> FloatArray:
    return rolling(values, n, lambda windows: windows.std(axis=1))


def wma(values: FloatArray, n: int) -> FloatArray:
    weights = np.arange(1.0, n + 1)
    return rolling(values, n, lambda windows: windows @ weights / weights.sum())


def known_part(values: FloatArray, function: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """A function that cannot take unknown values, on what follows them."""
    start = int(np.isnan(values).sum())
    return np.concatenate([np.full(start, np.nan), function(values[start:])])


def wilder(values: FloatArray, n: int) -> FloatArray:
    def smooth(known: FloatArray) -> FloatArray:
        out = np.full(known.size, np.nan)
        if known.size >= n:
            seeded = np.concatenate([[known[:n].mean()], known[n:]])
            out[n - 1 :] = pd.Series(seeded).ewm(alpha=1 / n, adjust=False).mean()
        return out

    return known_part(values, smooth)


def slope(values: FloatArray, n: int) -> FloatArray:
    steps = np.arange(n) - (n - 1) / 2
    return rolling(values, n, lambda windows: windows @ steps / (steps @ steps))


def rank(values: FloatArray, window: int = 252, minimum: int = 60, factor: float = 1.0) -> FloatArray:
    """Percentile rank of factor times each value among the others of its window."""
    out = np.full(values.size, np.nan)
    known = np.flatnonzero(np.isfinite(values))
    for k in range(minimum - 1, known.size):
        others = values[known[max(0, k - window + 1) : k]]
        request = factor * values[known[k]]
        out[known[k]] = ((others < request).sum() + 0.5 * (others == request).sum()) / others.size
    return out


def streak(rises: npt.NDArray[np.bool_]) -> FloatArray:
    out = np.full(rises.size, np.nan)
    for t in range(1, rises.size):
        out[t] = 0 if not rises[t] else 1 + np.nan_to_num(out[t - 1])
    return out


def so_far(values: FloatArray, key: npt.NDArray[np.int64], how: str) -> FloatArray:
    groups = pd.Series(values).groupby(key)
    found = groups.transform("first") if how == "first" else getattr(groups, how)()
    return np.asarray(found, dtype=np.float64)


def before(values: FloatArray, key: npt.NDArray[np.int64], how: str) -> FloatArray:
    finished = pd.Series(values).groupby(key).agg(how).shift(1)
    return finished.reindex(key).to_numpy()


def session_vwap(b: Own) -> FloatArray:
    return so_far(b.tp * b.v, b.days, "cumsum") / so_far(b.v, b.days, "cumsum")


def log_return(b: Own) -> FloatArray:
    return np.log(b.c / shifted(b.c))


def atr(b: Own, n: int) -> FloatArray:
    return np.asarray(talib.ATR(b.h, b.l, b.c, n))


def in_atr(b: Own, anchor: FloatArray, n: int) -> FloatArray:
    return (b.c - anchor) / atr(b, n)


def strength(b: Own) -> FloatArray:
    return (talib.EMA(b.c, 20) - talib.EMA(b.c, 50)) / atr(b, 50)


def vortex(b: Own, moves: FloatArray, n: int) -> FloatArray:
    return mean(np.abs(moves), n) / mean(talib.TRANGE(b.h, b.l, b.c), n)


def hull(b: Own, n: int) -> FloatArray:
    return wma(2 * wma(b.c, n // 2) - wma(b.c, n), int(np.sqrt(n)))


def stochastic(b: Own, n: int) -> FloatArray:
    high, low = talib.MAX(b.h, n), talib.MIN(b.l, n)
    return 100 * (b.c - low) / (high - low)


ORACLES: dict[str, Callable[[Own], FloatArray]] = {
    "open": lambda b: b.o,
    "high": lambda b: b.h,
    "low": lambda b: b.l,
    "close": lambda b: b.c,
    "volume": lambda b: b.v,
    "typical_price": lambda b: talib.TYPPRICE(b.h, b.l, b.c),
    "bar_range": lambda b: b.h - b.l,
    "true_range": lambda b: talib.TRANGE(b.h, b.l, b.c),
    "body_ratio": lambda b: talib.BOP(b.o, b.h, b.l, b.c),
    "upper_wick": lambda b: (b.h - np.maximum(b.o, b.c)) / (b.h - b.l),
    "lower_wick": lambda b: (np.minimum(b.o, b.c) - b.l) / (b.h - b.l),
    "close_location": lambda b: (b.c - b.l) / (b.h - b.l),
    "gap": lambda b: b.o / shifted(b.c) - 1,
    "log_return": log_return,
    "up_streak": lambda b: streak(b.c > shifted(b.c)),
    "down_streak": lambda b: streak(b.c < shifted(b.c)),
    "minute_of_day": lambda b: np.asarray(60.0 * b.labels.hour + b.labels.minute),
    "hour": lambda b: np.asarray(b.labels.hour, dtype=float),
    "day_of_week": lambda b: np.asarray(b.labels.day_of_week, dtype=float),
    "day_of_month": lambda b: np.asarray(b.labels.day, dtype=float),
    "month": lambda b: np.asarray(b.labels.month, dtype=float),
    "bars_since_session_start": lambda b: so_far(b.c, b.days, "cumcount"),
    "session_open": lambda b: so_far(b.o, b.days, "first"),
    "session_high": lambda b: so_far(b.h, b.days, "cummax"),
    "session_low": lambda b: so_far(b.l, b.days, "cummin"),
    "session_vwap": session_vwap,
    "session_volume": lambda b: so_far(b.v, b.days, "cumsum"),
    "session_return": lambda b: b.c / so_far(b.o, b.days, "first") - 1,
    "session_location": lambda b: (
        (b.c - so_far(b.l, b.days, "cummin"))
        / (so_far(b.h, b.days, "cummax") - so_far(b.l, b.days, "cummin"))
    ),
    "previous_session_high": lambda b: before(b.h, b.days, "max"),
    "previous_session_low": lambda b: before(b.l, b.days, "min"),
    "previous_session_close": lambda b: before(b.c, b.days, "last"),
    "session_gap": lambda b: so_far(b.o, b.days, "first") / before(b.c, b.days, "last") - 1,
    "bars_since_week_start": lambda b: so_far(b.c, b.weeks, "cumcount"),
    "week_open": lambda b: so_far(b.o, b.weeks, "first"),
    "week_high": lambda b: so_far(b.h, b.weeks, "cummax"),
    "week_low": lambda b: so_far(b.l, b.weeks, "cummin"),
    "sma_20": lambda b: talib.SMA(b.c, 20),
    "ema_20": lambda b: talib.EMA(b.c, 20),
    "wma_20": lambda b: talib.WMA(b.c, 20),
    "rma_14": lambda b: wilder(b.c, 14),
    "dema_20": lambda b: talib.DEMA(b.c, 20),
    "tema_20": lambda b: talib.TEMA(b.c, 20),
    "kama_10": lambda b: talib.KAMA(b.c, 10),
    "hma_20": lambda b: hull(b, 20),
    "linreg_slope_20": lambda b: slope(b.c, 20),
    "trend_strength_20_50": strength,
    "trend_change_20_50_10": lambda b: strength(b) - shifted(strength(b), 10),
    "plus_di_14": lambda b: talib.PLUS_DI(b.h, b.l, b.c, 14),
    "minus_di_14": lambda b: talib.MINUS_DI(b.h, b.l, b.c, 14),
    "dx_14": lambda b: talib.DX(b.h, b.l, b.c, 14),
    "adx_14": lambda b: talib.ADX(b.h, b.l, b.c, 14),
    "aroon_up_25": lambda b: talib.AROON(b.h, b.l, 25)[1],
    "aroon_down_25": lambda b: talib.AROON(b.h, b.l, 25)[0],
    "aroon_oscillator_25": lambda b: talib.AROONOSC(b.h, b.l, 25),
    "vortex_plus_14": lambda b: vortex(b, b.h - shifted(b.l), 14),
    "vortex_minus_14": lambda b: vortex(b, b.l - shifted(b.h), 14),
    "efficiency_10": lambda b: np.abs(talib.MOM(b.c, 10)) / (10 * mean(np.abs(talib.MOM(b.c, 1)), 10)),
    "mom_10": lambda b: talib.MOM(b.c, 10),
    "roc_10": lambda b: talib.ROCP(b.c, 10),
    "macd_12_26": lambda b: talib.MACD(b.c, 12, 26, 1)[0],
    "macd_signal_12_26_9": lambda b: talib.MACD(b.c, 12, 26, 9)[1],
    "macd_histogram_12_26_9": lambda b: talib.MACD(b.c, 12, 26, 9)[2],
    "ppo_12_26": lambda b: 100 * (talib.EMA(b.c, 12) / talib.EMA(b.c, 26) - 1),
    "trix_15": lambda b: talib.TRIX(b.c, 15),
    "rsi_14": lambda b: talib.RSI(b.c, 14),
    "cmo_14": lambda b: talib.CMO(b.c, 14),
    "stochastic_14": lambda b: talib.STOCHF(b.h, b.l, b.c, 14, 1)[0],
    "stochastic_k_14_3": lambda b: mean(stochastic(b, 14), 3),
    "stochastic_d_14_3_3": lambda b: talib.STOCH(b.h, b.l, b.c, 14, slowk_period=3, slowd_period=3)[1],
    "stochastic_rsi_14": lambda b: talib.STOCHRSI(b.c, 14, 14, 1)[0],
    "williams_r_14": lambda b: talib.WILLR(b.h, b.l, b.c, 14),
    "cci_20": lambda b: talib.CCI(b.h, b.l, b.c, 20),
    "mfi_14": lambda b: talib.MFI(b.h, b.l, b.c, b.v, 14),
    "stdev_20": lambda b: std(b.c, 20),
    "realized_vol_20": lambda b: std(log_return(b), 20),
    "vol_ratio_10_60": lambda b: std(log_return(b), 10) / std(log_return(b), 60),
    "atr_14": lambda b: atr(b, 14),
    "natr_14": lambda b: talib.NATR(b.h, b.l, b.c, 14),
    "atr_ratio_10_60": lambda b: atr(b, 10) / atr(b, 60),
    "range_ratio_14": lambda b: talib.TRANGE(b.h, b.l, b.c) / atr(b, 14),
    "bollinger_upper_20": lambda b: talib.BBANDS(b.c, 20, 2.0, 2.0)[0],
    "bollinger_lower_20": lambda b: talib.BBANDS(b.c, 20, 2.0, 2.0)[2],
    "percent_b_20": lambda b: (b.c - mean(b.c, 20) + 2 * std(b.c, 20)) / (4 * std(b.c, 20)),
    "bandwidth_20": lambda b: 4 * std(b.c, 20) / mean(b.c, 20),
    "zscore_20": lambda b: (b.c - mean(b.c, 20)) / std(b.c, 20),
    "keltner_upper_20": lambda b: talib.EMA(b.c, 20) + 2 * atr(b, 20),
    "keltner_lower_20": lambda b: talib.EMA(b.c, 20) - 2 * atr(b, 20),
    "keltner_width_20": lambda b: 4 * atr(b, 20) / talib.EMA(b.c, 20),
    "donchian_upper_20": lambda b: talib.MAX(b.h, 20),
    "donchian_lower_20": lambda b: talib.MIN(b.l, 20),
    "donchian_middle_20": lambda b: (talib.MAX(b.h, 20) + talib.MIN(b.l, 20)) / 2,
    "donchian_width_20": lambda b: (talib.MAX(b.h, 20) - talib.MIN(b.l, 20)) / b.c,
    "highest_20": lambda b: shifted(talib.MAX(b.h, 20)),
    "lowest_20": lambda b: shifted(talib.MIN(b.l, 20)),
    "volume_sma_20": lambda b: talib.SMA(b.v, 20),
    "volume_ratio_20": lambda b: b.v / talib.SMA(b.v, 20),
    "volume_zscore_20": lambda b: (b.v - mean(b.v, 20)) / std(b.v, 20),
    "vwap_20": lambda b: mean(b.tp * b.v, 20) / mean(b.v, 20),
    "obv": lambda b: talib.OBV(b.c, b.v) - b.v[0],
    "distance_high_20": lambda b: in_atr(b, shifted(talib.MAX(b.h, 20)), 20),
    "distance_low_20": lambda b: in_atr(b, shifted(talib.MIN(b.l, 20)), 20),
    "distance_sma_20": lambda b: in_atr(b, talib.SMA(b.c, 20), 20),
    "distance_ema_20": lambda b: in_atr(b, talib.EMA(b.c, 20), 20),
    "distance_session_open_14": lambda b: in_atr(b, so_far(b.o, b.days, "first"), 14),
    "distance_session_vwap_14": lambda b: in_atr(b, session_vwap(b), 14),
    "distance_previous_high_14": lambda b: in_atr(b, before(b.h, b.days, "max"), 14),
    "distance_previous_low_14": lambda b: in_atr(b, before(b.l, b.days, "min"), 14),
    "distance_previous_close_14": lambda b: in_atr(b, before(b.c, b.days, "last"), 14),
    "off_high_252": lambda b: b.c / rolling(b.h, 252, lambda windows: windows.max(axis=1)) - 1,
    "off_low_252": lambda b: b.c / rolling(b.l, 252, lambda windows: windows.min(axis=1)) - 1,
    "trend_rank": lambda b: rank(np.abs(strength(b))),
    "double_trend_rank": lambda b: rank(np.abs(strength(b)), factor=2.0),
    "reduced_vol_rank": lambda b: rank(std(log_return(b), 20), factor=2 / 3),
    "range_rank": lambda b: rank(talib.TRANGE(b.h, b.l, b.c) / atr(b, 14)),
    "realized_vol_20_rank": lambda b: rank(std(log_return(b), 20)),
    "bandwidth_20_rank": lambda b: rank(4 * std(b.c, 20) / mean(b.c, 20)),
    "volume_rank": lambda b: rank(b.v),
}


def higher_bars(b: Own, timeframe: str) -> tuple[Own, npt.NDArray[np.int64]]:
    """Higher bars by pandas, and the row of the own bar on which each is seen first (N where it never is).

    A bar is in the higher bar in which it ends; the week starts on Monday. Seen is the one that its last own
    bar completes on that bar, any other on the bar after; no two on one row.
    """
    frame = pd.DataFrame({"o": b.o, "h": b.h, "l": b.l, "c": b.c, "v": b.v, "row": np.arange(b.c.size)})
    frame.index = b.closes
    spans = {"5m": "5min", "10m": "10min", "15m": "15min", "30m": "30min", "1d": "24h", "1w": "168h"}
    bins = frame.resample(spans.get(timeframe, timeframe), origin=WEEK_START, closed="right", label="right")
    how = {"o": "first", "h": "max", "l": "min", "c": "last", "v": "sum", "row": "last"}
    found = bins.agg(how)[bins["c"].count() > 0]
    last = found["row"].to_numpy().astype(np.int64)
    seen = last + (b.closes[last] != found.index).astype(np.int64)
    for k in range(1, seen.size):
        seen[k] = max(seen[k], seen[k - 1] + 1)
    o, h, low, c, v = (found[name].to_numpy(dtype=float) for name in "ohlcv")
    ends = pd.DatetimeIndex(found.index)
    return Own(o, h, low, c, v, ends, ends), np.minimum(seen, b.c.size)


def held(values: FloatArray, seen: npt.NDArray[np.int64], size: int) -> FloatArray:
    """One value per higher bar on the rows of the own bars: the one of the last higher bar seen."""
    last = np.searchsorted(seen, np.arange(size), side="right") - 1
    return np.where(last >= 0, values[last], np.nan)
