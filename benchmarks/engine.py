"""Times `simulate`, the kernel inside it and the hand-written scan on the same bars, one after the other."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

from benchmarks.hand_scan import RULE, STOP, TARGET, TIME_STOP, scan
from schemas.errors import InvariantViolation
from trading_core import kernel, simulation
from trading_core.bars import BarSeries
from trading_core.simulation import SimulationResult, simulate

SIZES = (10_000, 100_000, 1_000_000)
REPEATS = 5
SEED = 7


@dataclass(frozen=True)
class EngineTiming:
    """CPU seconds, the best of several warm runs."""

    bars: int
    trades: int
    simulate_s: float
    kernel_s: float
    scan_s: float


def random_bars(count: int) -> BarSeries:
    """One symbol on minute bars: a random walk of log prices, with a range around each bar."""
    draw = np.random.default_rng(SEED)
    close = 100.0 * np.exp(np.cumsum(draw.normal(0.0, 0.001, count)))
    opened = np.concatenate([[100.0], close[:-1]])
    reach = np.exp(np.abs(draw.normal(0.0, 0.0007, (2, count))))
    frame = pd.DataFrame(
        {
            "open": opened,
            "high": np.maximum(opened, close) * reach[0],
            "low": np.minimum(opened, close) / reach[1],
            "close": close,
            "volume": 1_000.0,
        },
        index=pd.date_range("2000-01-03", periods=count, freq="min", tz="UTC"),
    )
    return BarSeries.from_frame(frame, symbol="WALK")


def simulated(bars: BarSeries) -> SimulationResult:
    """The rule through the public entry."""
    return simulate(bars, RULE, stop_pct=STOP, target_pct=TARGET, time_stop_bars=TIME_STOP)


def scanned(bars: BarSeries, pnl: Any) -> int:
    """The rule through the hand-written scan."""
    return int(scan(bars.open[:, 0], bars.high[:, 0], bars.low[:, 0], bars.close[:, 0], pnl))


def cpu_seconds(work: Callable[[], object]) -> float:
    """Least CPU time of several runs; the first, which may compile, is not counted."""
    work()
    times = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)


def kernel_seconds(bars: BarSeries) -> float:
    """Least CPU time that the kernel took in one simulation."""
    totals = []
    for _ in range(REPEATS):
        spent: list[float] = []

        def timed(*arguments: Any, spent: list[float] = spent) -> Any:
            started = time.process_time()
            result = kernel.advance(*arguments)
            spent.append(time.process_time() - started)
            return result

        with patch.object(simulation, "advance", timed):
            simulated(bars)
        totals.append(sum(spent))
    return min(totals)


def time_engine(count: int) -> EngineTiming:
    """All three on the same bars.

    Raises:
        InvariantViolation: scan and `simulate` do not make the same trades, so their times mean nothing.
    """
    bars = random_bars(count)
    pnl = np.empty(count)
    trades = scanned(bars, pnl)
    found = simulated(bars).trades["pnl"].to_numpy()
    if trades != len(found) or not np.allclose(pnl[:trades], found, rtol=0.0, atol=1e-9):
        raise InvariantViolation(f"the scan made {trades} trades and simulate {len(found)}, or they differ")
    return EngineTiming(
        bars=count,
        trades=trades,
        simulate_s=cpu_seconds(lambda: simulated(bars)),
        kernel_s=kernel_seconds(bars),
        scan_s=cpu_seconds(lambda: scanned(bars, pnl)),
    )
