"""Worlds in which moves run on, or do not: buying strength wins in the one and gains nothing in the other."""

import numpy as np
from numpy.typing import NDArray

from tests.worker.trading_hours import in_trading_hours
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world

VOLATILITY = 0.006


def momentum_world(*, strength: float, bars: int, symbols: int, seed: int = 1) -> BarSeries:
    """4h bars of four steps in trading hours; a move begins with a bar and fades slowly, none at strength 0.

    The shocks are the same whatever the strength, a share of a bar's volatility per step.
    """
    frame = in_trading_hours(make_world("random_walk", seed=seed, bars=bars, symbols=symbols))
    steps = np.stack([_path(seed, s, bars, strength) for s in range(symbols)], axis=2)
    prices = [steps[:, 0], steps.max(axis=1), steps.min(axis=1), steps[:, -1]]
    opening, high, low, close = (np.ascontiguousarray(price) for price in prices)
    return BarSeries(
        frame.times,
        frame.symbols,
        frame.timeframe,
        frame.label,
        opening,
        high,
        low,
        close,
        frame.volume,
        frame.present,
    )


def _path(seed: int, s: int, bars: int, strength: float) -> NDArray[np.float64]:
    generator = np.random.Generator(np.random.PCG64([seed, s, 7]))
    shocks = np.clip(generator.standard_t(3, size=(bars, 4)) * VOLATILITY / np.sqrt(12.0), -0.05, 0.05)
    level, carried = 0.0, 0.0
    path: list[list[float]] = []
    for row in shocks:
        walked = [level]
        for step in row:
            level += step + carried
            walked.append(level)
        path.append(walked)
        if carried == 0.0:
            carried = strength * float(np.sign(level - walked[0])) * VOLATILITY
        else:
            carried = 0.97 * carried if abs(carried) >= 0.1 * VOLATILITY else 0.0
    return np.asarray(100.0 * np.exp(np.array(path)))
