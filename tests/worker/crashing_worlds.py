"""Random walks through which crashes run: longs lose many times their stop, a few times only."""

import numpy as np

from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world


def crashing_world(*, crashes: tuple[int, ...], fall: float = 0.35, bars: int = 400) -> BarSeries:
    """Six symbols of 4 h bars; at the open of each crash row every price falls by a share and stays there."""
    calm = make_world("random_walk", seed=5, bars=bars, symbols=6)
    level = np.ones(bars)
    for row in crashes:
        level[row:] *= 1.0 - fall
    opening, high, low, close = (
        np.ascontiguousarray(price * level[:, None]) for price in (calm.open, calm.high, calm.low, calm.close)
    )
    return BarSeries(
        calm.times,
        calm.symbols,
        calm.timeframe,
        calm.label,
        opening,
        high,
        low,
        close,
        calm.volume,
        calm.present,
    )
