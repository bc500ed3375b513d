"""Bars for tests of the engine: seeded walks, shapes by hand, and symbols with missing bars."""

import numpy as np
import numpy.typing as npt

from schemas.timeframes import TIMEFRAME_SECONDS
from trading_core.bars import NS, BarSeries

START = 1_577_836_800 * NS  # 2020-01-01, a Wednesday
FloatArray = npt.NDArray[np.float64]


def walk(
    seed: int, n: int, *, volatility: float = 0.01, drift: float = 0.0, start: float = 100.0
) -> FloatArray:
    """Closes of a seeded geometric random walk."""
    steps = np.random.default_rng(seed).normal(drift, volatility, n)
    return start * np.exp(np.cumsum(steps))


def columns_of(close: FloatArray, seed: int = 0) -> dict[str, FloatArray]:
    """Consistent open, high, low, close, volume around closes; the range is in proportion to the price."""
    rng = np.random.default_rng(seed + 1)
    opens = np.concatenate([close[:1], close[:-1]]) * (1 + rng.normal(0, 0.001, close.size))
    high = np.maximum(opens, close) * (1 + rng.uniform(0, 0.004, close.size))
    low = np.minimum(opens, close) * (1 - rng.uniform(0, 0.004, close.size))
    return {
        "open": opens,
        "high": high,
        "low": low,
        "close": close,
        "volume": rng.uniform(1e3, 1e6, close.size),
    }


def series(
    columns: dict[str, dict[str, FloatArray]],
    *,
    timeframe: str = "1d",
    present: npt.NDArray[np.bool_] | None = None,
) -> BarSeries:
    """Bar series of several symbols of equal length; `present` (T, S) drops bars."""
    symbols = tuple(sorted(columns))
    size = next(iter(columns.values()))["close"].size
    mask = np.ones((size, len(symbols)), dtype=np.bool_) if present is None else present
    times = START + np.arange(size, dtype=np.int64) * TIMEFRAME_SECONDS[timeframe] * NS
    arrays = {}
    for name in ("open", "high", "low", "close", "volume"):
        stacked = np.column_stack([columns[symbol][name] for symbol in symbols])
        arrays[name] = np.ascontiguousarray(np.where(mask, stacked, np.nan))
    return BarSeries(times, symbols, timeframe, "open", present=mask, zone="UTC", **arrays)


def one_symbol(close: FloatArray, *, timeframe: str = "1d", seed: int = 0) -> BarSeries:
    """Bar series of one symbol "AAA"."""
    return series({"AAA": columns_of(close, seed)}, timeframe=timeframe)
