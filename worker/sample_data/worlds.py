"""Seeded worlds with known truth: bars whose edge, or lack of one, was put there on purpose.

`random_walk` has no edge for anybody; `reverting` pulls prices back to their anchor, so that whoever buys
strength loses and whoever buys weakness wins. Shocks are Student t(3). Used by scenarios, tests and
benchmarks.
"""

from typing import Literal

import numpy as np

from schemas.errors import ConfigError
from schemas.vocabulary import TIMEFRAME_SECONDS
from trading_core.bars import COLUMNS, BarSeries

WorldKind = Literal["random_walk", "reverting"]
START_NS = 1_577_836_800_000_000_000  # 2020-01-01, a Wednesday
NS = 1_000_000_000
PULL = {"random_walk": 0.0, "reverting": 0.12}
VOLATILITY = 0.006
SUBSTEPS = 4


def make_world(
    kind: WorldKind, *, seed: int, bars: int, symbols: int = 3, timeframe: str = "4h"
) -> BarSeries:
    """Bars of a world.

    Args:
        kind: what the world does to prices.
        seed: same seed, same bars; a longer world starts with the shorter one.
        bars: number of bars per symbol.
        symbols: number of symbols, named W00, W01, ...
        timeframe: spacing of the bars.

    Raises:
        ConfigError: an unknown kind or timeframe, or no bars.
    """
    if kind not in PULL:
        raise ConfigError(f"world {kind!r} is not one of {', '.join(sorted(PULL))}")
    if timeframe not in TIMEFRAME_SECONDS or bars < 2 or symbols < 1:
        raise ConfigError(
            f"a world needs a timeframe, two bars and a symbol, not {timeframe!r}, {bars!r}, {symbols!r}"
        )
    paths = np.stack([_path(PULL[kind], seed, s, bars) for s in range(symbols)], axis=2)
    times = START_NS + np.arange(bars, dtype=np.int64) * TIMEFRAME_SECONDS[timeframe] * NS
    prices = [
        np.ascontiguousarray(part)
        for part in (paths[:, 0], paths.max(axis=1), paths.min(axis=1), paths[:, -1])
    ]
    volume = np.ascontiguousarray(1_000.0 * (1.0 + 100.0 * (prices[1] - prices[2]) / prices[2]))
    names = tuple(f"W{s:02d}" for s in range(symbols))
    present = np.ones((bars, symbols), dtype=np.bool_)
    columns = dict(zip(COLUMNS, (*prices, volume), strict=True))
    return BarSeries(times, names, timeframe, "open", present=present, **columns)


def _path(pull: float, seed: int, s: int, bars: int) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Prices (bars, SUBSTEPS + 1): the open and the walk inside each bar."""
    generator = np.random.Generator(np.random.PCG64([seed, s]))
    shocks = generator.standard_t(3, size=(bars, SUBSTEPS)) * (VOLATILITY / np.sqrt(3.0 * SUBSTEPS))
    path: list[float] = []
    level, back = 0.0, pull / SUBSTEPS
    for steps in np.clip(shocks, -0.05, 0.05).tolist():
        path.append(level)
        for step in steps:
            level += step - back * level
            path.append(level)
    prices: np.ndarray[tuple[int, int], np.dtype[np.float64]] = 100.0 * np.exp(
        np.array(path).reshape(bars, SUBSTEPS + 1)
    )
    return prices
