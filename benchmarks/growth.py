"""How cost and memory grow: with bars, with symbols, and what a bar weighs."""

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.clock import cpu_seconds
from benchmarks.crossing import COMMON, simulated_raw
from benchmarks.engine import SEED, TICK
from benchmarks.walks import walk, walks
from trading_core.bars import BarSeries

BAR_COUNTS = (125_000, 250_000, 500_000, 1_000_000)
SYMBOL_COUNTS = (1, 2, 4, 8, 16)
BARS_EACH = 60_000
WEIGHED = 1_000_000
ARRAYS = ("times", "open", "high", "low", "close", "volume", "present")


@dataclass(frozen=True)
class Growth:
    """CPU seconds at growing sizes.

    Attributes:
        sizes: what grows.
        bars: of all symbols together, at each size.
        seconds: medians.
    """

    sizes: tuple[int, ...]
    bars: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def slope(self) -> float:
        """Of log cost against log size: 1 is linear, more grows faster than the work."""
        return float(np.polyfit(np.log(self.sizes), np.log(self.seconds), 1)[0])


@dataclass(frozen=True)
class Weight:
    """Bytes per bar of one symbol.

    Attributes:
        series: that `BarSeries` holds.
        simulate: that `simulate` takes on top at its peak, result included.
    """

    series: float
    simulate: float


def _grown(sizes: Sequence[int], make: Callable[[int], BarSeries]) -> Growth:
    counts, seconds = [], []
    for size in sizes:
        bars = make(size)
        counts.append(bars.bar_count)
        seconds.append(cpu_seconds(partial(simulated_raw, bars, COMMON)))
    return Growth(tuple(sizes), tuple(counts), tuple(seconds))


def growth_with_bars() -> Growth:
    """`simulate` on one symbol with more and more bars."""
    return _grown(BAR_COUNTS, lambda count: walk(SEED, count, tick=TICK))


def growth_with_symbols() -> Growth:
    """`simulate` on more and more symbols with the same number of bars each."""
    return _grown(SYMBOL_COUNTS, lambda count: walks(SEED, BARS_EACH, count, tick=TICK))


def weigh() -> Weight:
    """Bytes that numpy and Python allocate, not those of code or interpreter."""
    bars = walk(SEED, WEIGHED, tick=TICK)
    simulated_raw(bars, COMMON)
    held = sum(getattr(bars, name).nbytes for name in ARRAYS)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    simulated_raw(bars, COMMON)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Weight(held / WEIGHED, (peak - before) / WEIGHED)
