"""Worlds that turn: prices fall back to their anchor first, and run on in the direction of the day after."""

from typing import Literal

import numpy as np

from trading_core.bars import BarSeries
from worker.sample_data.worlds import make_world

Turn = Literal["runs_on", "stays", "random"]


def turning_world(*, seed: int, bars: int, turn: int, symbols: int = 8, after: Turn = "runs_on") -> BarSeries:
    """Daily bars: until row `turn` whoever buys strength loses; then momentum, no change, or a random walk.

    Each bar is four steps, as in `make_world`; its shocks are the same whatever comes after the turn.
    """
    calm = make_world("random_walk", seed=seed, bars=bars, symbols=symbols, timeframe="1d")
    paths = [_path(seed, s, bars, turn, after) for s in range(symbols)]
    steps = np.stack(paths, axis=2)  # (bars, steps, symbols)
    prices = [steps[:, 0], steps.max(axis=1), steps.min(axis=1), steps[:, -1]]
    return BarSeries(
        calm.times,
        calm.symbols,
        "1d",
        "open",
        *(np.ascontiguousarray(one) for one in prices),
        calm.volume,
        present=calm.present,
    )


def _path(
    seed: int, s: int, bars: int, turn: int, after: Turn
) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    generator = np.random.Generator(np.random.PCG64([seed, s, 7]))
    shocks = np.clip(generator.standard_t(3, size=(bars, 4)) * 0.006 / np.sqrt(12.0), -0.05, 0.05)
    level, drift, path = 0.0, 0.0, []
    for row in range(bars):
        back = 0.03 if row < turn or after == "stays" else 0.0
        carried = drift if row >= turn and after == "runs_on" else 0.0
        begun, walked = level, [level]
        for step in shocks[row]:
            level += step - back * level + carried
            walked.append(level)
        drift = 0.5 * np.sign(level - begun) * 0.006 if carried == 0.0 else 0.97 * carried
        if carried and abs(carried) < 0.0006:
            drift = 0.0
        path.append(walked)
    return np.asarray(100.0 * np.exp(np.array(path)))
