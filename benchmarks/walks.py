"""Seeded bars that ask every question about fills: gaps, wide bars, both levels in one bar.

Only integer draws, additions and multiplications make them, so that one seed gives the same bits on every
processor; the recorded trade lists of the parity tests rest on that. Read by the benchmarks, by the parity
command and by its tests.
"""

import numpy as np
import numpy.typing as npt
import pandas as pd

from trading_core.bars import BarSeries

FloatArray = npt.NDArray[np.float64]
START = "2020-01-01"
BELL = 12  # draws added up: their sum is close enough to a normal one
VOLATILITY = 0.003
GAP_SHARE, WIDE_SHARE = 0.002, 0.002
LEVEL = 6.3e-6  # half the variance of a bar and its gap: without it a long walk of percentages sinks


def walk(seed: int, count: int, *, tick: float = 0.0, symbol: str = "WALK") -> BarSeries:
    """Minute bars of one symbol.

    0.3 % a bar; one bar in 500 opens 2 to 6 % away from the close before it, and one in 500 reaches 3 to
    6 % beyond its body on both sides.

    Args:
        seed: of the walk.
        count: number of bars.
        tick: prices are multiples of it; 0 leaves them as they fall.
        symbol: name of the symbol.
    """
    return BarSeries.from_frame(walk_frame(seed, count, tick=tick), symbol=symbol)


def walks(seed: int, count: int, symbols: int, *, tick: float = 0.0) -> BarSeries:
    """Bars of several symbols, each a walk of its own seed."""
    frames = {f"WALK{s:02d}": walk_frame(seed + s, count, tick=tick) for s in range(symbols)}
    return BarSeries.from_frame(frames)


def walk_frame(seed: int, count: int, *, tick: float = 0.0) -> pd.DataFrame:
    """The bars of `walk` as a pandas frame."""
    draw = np.random.default_rng(seed)
    body = _bell(draw, count) * VOLATILITY
    gap = _rare(draw, count, GAP_SHARE, 0.02, 0.06) * np.where(draw.random(count) < 0.5, -1.0, 1.0)
    wide = _rare(draw, count, WIDE_SHARE, 0.03, 0.06)
    reach = draw.random((2, count)) * (0.6 * VOLATILITY) + wide
    growth = (1.0 + gap) * (1.0 + body) * (1.0 + LEVEL)
    close = 100.0 * np.cumprod(growth)
    jitter = 1.0 + _bell(draw, count) * (0.1 * VOLATILITY)  # no bar opens exactly where the last one closed
    opened = np.concatenate([[100.0], close[:-1]]) * (1.0 + gap) * jitter
    high = np.maximum(opened, close) * (1.0 + reach[0])
    low = np.minimum(opened, close) * (1.0 - reach[1])
    prices = {"open": opened, "high": high, "low": low, "close": close}
    if tick:
        steps = round(1.0 / tick)
        prices = {name: np.maximum(np.rint(values * steps), 1.0) / steps for name, values in prices.items()}
    index = pd.date_range(START, periods=count, freq="min", tz="UTC")
    return pd.DataFrame({**prices, "volume": 1_000.0}, index=index)


def _bell(draw: np.random.Generator, count: int) -> FloatArray:
    """Draws of mean 0 and variance 1: sums of whole numbers, exact on every machine."""
    total: npt.NDArray[np.int64] = draw.integers(-1_000, 1_001, (BELL, count)).sum(axis=0)
    return np.asarray(total / 2_000.0)  # the variance of one whole number is about (2,000 ** 2) / 12


def _rare(draw: np.random.Generator, count: int, share: float, least: float, most: float) -> FloatArray:
    size = least + draw.random(count) * (most - least)
    return np.where(draw.random(count) < share, size, 0.0)
