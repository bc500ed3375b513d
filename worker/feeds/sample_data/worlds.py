"""Seeded worlds with known truth: bars whose edge, or lack of one, was put there on purpose.

`random_walk` has no edge for anybody; `reverting` pulls prices back to their anchor, so that whoever buys
strength loses and whoever buys weakness wins. Shocks are Student t(3). `make_market` is the harder one:
GARCH(1,1) with t(5) shocks, a common factor, and a pull of every bar's own. Used by scenarios, tests, worlds
and benchmarks.
"""

from typing import Literal

import numpy as np

from schemas.errors import ConfigError
from schemas.timeframes import TIMEFRAME_SECONDS
from services.statistics.blocks import Floats
from trading_core.bars import COLUMNS, BarSeries

WorldKind = Literal["random_walk", "reverting"]
START_NS = 1_577_836_800_000_000_000  # 2020-01-01, a Wednesday
NS = 1_000_000_000
PULL = {"random_walk": 0.0, "reverting": 0.12}
VOLATILITY = 0.006
SUBSTEPS = 4
REACTS, PERSISTS = 0.08, 0.90  # of a GARCH variance
DRIFT_BARS = 30.0
COMMON = 10**6  # no symbol has this number


def make_world(
    kind: WorldKind, *, seed: int, bars: int, symbols: int = 3, timeframe: str = "4h"
) -> BarSeries:
    """Bars of so many symbols W00, W01, ...: the same of a seed; a longer world starts with the shorter one.

    Raises:
        ConfigError: an unknown kind or timeframe, or no bars.
    """
    if kind not in PULL:
        raise ConfigError(f"world {kind!r} is not one of {', '.join(sorted(PULL))}")
    if timeframe not in TIMEFRAME_SECONDS or bars < 2 or symbols < 1:
        raise ConfigError(
            f"a world needs a timeframe, two bars and a symbol, not {timeframe!r}, {bars!r}, {symbols!r}"
        )
    paths = np.stack(
        [_path(np.full(bars, PULL[kind]), _shocks(seed, s, bars)) for s in range(symbols)], axis=2
    )
    return _series(paths, timeframe)


def make_market(
    pull: Floats, *, seed: int, symbols: int, timeframe: str, rho: float, momentum: Floats | None = None
) -> BarSeries:
    """Bars of so many correlated symbols W00, W01, ... whose volatility clusters: the same of a seed.

    `pull` (bars,) is the share of its distance from the anchor that a price loses in each bar, `rho` the
    correlation of the symbols' shocks, `momentum` (bars,) the standard deviation of each bar's drift over
    that of its shock; a drift lasts for `DRIFT_BARS` on average.

    Raises:
        ConfigError: an unknown timeframe, a correlation outside [0, 1), no bars or no symbol.
    """
    bars = len(pull)
    if timeframe not in TIMEFRAME_SECONDS or bars < 2 or symbols < 1 or not 0.0 <= rho < 1.0:
        raise ConfigError(
            "a market needs a timeframe, two bars, a symbol and a correlation in [0, 1), not "
            f"{timeframe!r}, {bars!r}, {symbols!r}, {rho!r}"
        )
    common = _garch(seed, COMMON, bars)
    paths = []
    for s in range(symbols):
        shocks = np.sqrt(rho) * common + np.sqrt(1.0 - rho) * _garch(seed, s, bars)
        if momentum is not None:
            shocks = shocks + (VOLATILITY * momentum * _drift(seed, s, bars) / SUBSTEPS)[:, None]
        paths.append(_path(pull, shocks))
    return _series(np.stack(paths, axis=2), timeframe)


def _series(paths: "np.ndarray[tuple[int, int, int], np.dtype[np.float64]]", timeframe: str) -> BarSeries:
    """Bars from prices (bars, SUBSTEPS + 1, symbols)."""
    bars, _, symbols = paths.shape
    times = START_NS + np.arange(bars, dtype=np.int64) * TIMEFRAME_SECONDS[timeframe] * NS
    prices = [
        np.ascontiguousarray(part)
        for part in (paths[:, 0], paths.max(axis=1), paths.min(axis=1), paths[:, -1])
    ]
    volume = np.ascontiguousarray(1_000.0 * (1.0 + 100.0 * (prices[1] - prices[2]) / prices[2]))
    width = max(2, len(str(symbols - 1)))  # names ascend, however many there are
    names = tuple(f"W{s:0{width}d}" for s in range(symbols))
    present = np.ones((bars, symbols), dtype=np.bool_)
    columns = dict(zip(COLUMNS, (*prices, volume), strict=True))
    return BarSeries(times, names, timeframe, "open", present=present, zone="UTC", **columns)


def _shocks(seed: int, s: int, bars: int) -> Floats:
    """Steps of the logarithm of a price (bars, SUBSTEPS), Student t(3), cut at 5 %."""
    generator = np.random.Generator(np.random.PCG64([seed, s]))
    shocks = generator.standard_t(3, size=(bars, SUBSTEPS)) * (VOLATILITY / np.sqrt(3.0 * SUBSTEPS))
    steps: Floats = np.clip(shocks, -0.05, 0.05)
    return steps


def _garch(seed: int, s: int, bars: int) -> Floats:
    """Steps (bars, SUBSTEPS) whose variance follows the bars before: GARCH(1,1), t(5), unit mean variance."""
    generator = np.random.Generator(np.random.PCG64([seed, s, COMMON]))
    shocks = generator.standard_t(5, size=(bars, SUBSTEPS)) * np.sqrt(0.6 / SUBSTEPS)
    variance, found = 1.0, np.empty((bars, SUBSTEPS))
    for t in range(bars):
        found[t] = np.sqrt(variance) * shocks[t]
        variance = 1.0 - REACTS - PERSISTS + REACTS * float(found[t].sum()) ** 2 + PERSISTS * variance
    steps: Floats = np.clip(VOLATILITY * found, -0.05, 0.05)
    return steps


def _drift(seed: int, s: int, bars: int) -> Floats:
    """A slow standard normal AR(1), (bars,)."""
    generator = np.random.Generator(np.random.PCG64([seed, s, COMMON + 1]))
    keeps = 1.0 - 1.0 / DRIFT_BARS
    steps = np.sqrt(1.0 - keeps**2) * generator.standard_normal(bars)
    found, level = np.empty(bars), 0.0
    for t in range(bars):
        level = keeps * level + steps[t]
        found[t] = level
    return found


def _path(pull: Floats, shocks: Floats) -> "np.ndarray[tuple[int, int], np.dtype[np.float64]]":
    """Prices (bars, SUBSTEPS + 1): the open and the walk inside each bar."""
    path: list[float] = []
    level = 0.0
    for back, steps in zip((pull / SUBSTEPS).tolist(), shocks.tolist(), strict=True):
        path.append(level)
        for step in steps:
            level += step - back * level
            path.append(level)
    prices: np.ndarray[tuple[int, int], np.dtype[np.float64]] = 100.0 * np.exp(
        np.array(path).reshape(len(pull), SUBSTEPS + 1)
    )
    return prices
