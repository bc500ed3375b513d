"""Small markets for the engine tests: bars from plain numbers, and random ones with gaps, wide bars and
missing bars.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from schemas.timeframes import TIMEFRAME_SECONDS
from trading_core.bars import COLUMNS, BarSeries

NS = 1_000_000_000
START_NS = 1_577_836_800 * NS
Row = tuple[float, float, float, float]


def mirrored(rows: Sequence[Row]) -> list[Row]:
    """(open, high, low, close) rows reflected at 100: what a long sees, a short sees."""
    return [(200.0 - o, 200.0 - low, 200.0 - h, 200.0 - c) for o, h, low, c in rows]


def series(rows: Sequence[Row], symbol: str = "X", timeframe: str = "1d") -> BarSeries:
    """Bars of one symbol from (open, high, low, close) rows."""
    values = np.asarray(rows, dtype=np.float64)
    columns = [np.ascontiguousarray(values[:, k : k + 1]) for k in range(4)]
    return _bars(columns, (symbol,), np.ones((len(rows), 1), dtype=np.bool_), timeframe)


def panel(markets: Mapping[str, Sequence[Row | None]], timeframe: str = "1d") -> BarSeries:
    """Bars of several symbols, in name order, from their rows; None is a bar that is missing."""
    symbols = tuple(sorted(markets))
    present = np.array([[row is not None for row in markets[name]] for name in symbols]).T.copy()
    unknown = (np.nan,) * 4
    values = np.array([[row or unknown for row in markets[name]] for name in symbols])  # (S, T, 4)
    columns = [np.ascontiguousarray(values[:, :, k].T) for k in range(4)]
    return _bars(columns, symbols, present, timeframe)


def random_series(
    seed: int,
    bars: int,
    symbols: int = 1,
    *,
    missing: float = 0.0,
    timeframe: str = "1h",
    scale: float = 0.01,
) -> BarSeries:
    """Random bars with gaps and wide bars; `missing` is the share of absent symbol-bars."""
    rng = np.random.default_rng(seed)
    close = 100.0 * np.exp(np.cumsum(rng.normal(0.0, scale, (bars, symbols)), axis=0))
    gaps = np.where(rng.random((bars, symbols)) < 0.05, rng.normal(0.0, 4 * scale, (bars, symbols)), 0.0)
    open_ = np.vstack([np.full((1, symbols), 100.0), close[:-1]]) * np.exp(gaps)
    wide = np.where(rng.random((bars, symbols)) < 0.05, 4.0, 1.0)
    high = np.maximum(open_, close) * (1.0 + wide * np.abs(rng.normal(0.0, scale / 2, (bars, symbols))))
    low = np.minimum(open_, close) * (1.0 - wide * np.abs(rng.normal(0.0, scale / 2, (bars, symbols))))
    present = rng.random((bars, symbols)) >= missing
    present[:, 0] |= ~present.any(axis=1)
    columns = [np.where(present, part, np.nan) for part in (open_, high, low, close)]
    return _bars(columns, tuple(f"S{s:02d}" for s in range(symbols)), present, timeframe)


def _bars(
    columns: list[np.ndarray], symbols: tuple[str, ...], present: np.ndarray, timeframe: str
) -> BarSeries:
    times = START_NS + np.arange(present.shape[0], dtype=np.int64) * TIMEFRAME_SECONDS[timeframe] * NS
    volume = np.where(present, 1_000.0, np.nan)
    values = dict(zip(COLUMNS, (*columns, volume), strict=True))
    return BarSeries(times, symbols, timeframe, "open", present=present, zone="UTC", **values)
