"""Times `simulate`, the kernel inside it and the hand-written scan on the same bars, one after the other."""

import time
from dataclasses import dataclass
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from benchmarks.clock import REPEATS, cpu_seconds
from benchmarks.crossing import COMMON, averages, find_crossings, simulated_raw, trade_list
from benchmarks.hand_scan import TRADE, moving_cross, scan
from benchmarks.walks import walk
from schemas.errors import InvariantViolation
from trading_core import trigger_engine
from trading_core.bars import BarSeries

SIZES = (10_000, 100_000, 1_000_000)
SEED, TICK = 4, 0.01


@dataclass(frozen=True)
class EngineTiming:
    """CPU seconds, medians of several warm runs.

    Attributes:
        bars: of the one symbol.
        trades: that every part makes.
        scan_s: the state machine alone, the crossing given.
        kernel_s: `advance` inside `simulate`, rule columns ready.
        numpy_s: the scan with numpy's running averages before it.
        simulate_s: the whole public call.
    """

    bars: int
    trades: int
    scan_s: float
    kernel_s: float
    numpy_s: float
    simulate_s: float


class Scan:
    """The hand-written scan with its columns and buffer ready."""

    def __init__(self, bars: BarSeries) -> None:
        own = np.ascontiguousarray
        self.columns: tuple[Any, Any, Any, Any] = (
            own(bars.open[:, 0]), own(bars.high[:, 0]), own(bars.low[:, 0]), own(bars.close[:, 0])
        )  # fmt: skip
        self.crossed = np.ascontiguousarray(find_crossings(*averages(bars))[:, 0])
        self.buffer = np.zeros(len(self.crossed) // 2 + 1, dtype=TRADE)

    def run(self) -> npt.NDArray[Any]:
        """The trades."""
        return self.buffer[: scan(*self.columns, self.crossed, self.buffer)]

    def run_with_averages(self) -> None:
        """The scan after numpy's averages; its trades are not looked at."""
        scan(*self.columns, moving_cross(self.columns[3]), self.buffer)


def check_same_trades(bars: BarSeries, found: npt.NDArray[Any]) -> None:
    """Scan and `simulate` agree to the last bit.

    Raises:
        InvariantViolation: they do not, so their times mean nothing.
    """
    ours = trade_list(bars, simulated_raw(bars, COMMON).trades)
    if len(ours) != len(found) or not all((ours[name] == found[name]).all() for name in TRADE.names or ()):
        raise InvariantViolation(
            f"the scan made {len(found)} trades and simulate {len(ours)}, or they differ: "
            "benchmarks/hand_scan.py must follow the kernel"
        )


def kernel_seconds(bars: BarSeries) -> float:
    """Median CPU time that the kernel took in one simulation."""
    caller: Any = trigger_engine
    totals = []
    for _ in range(REPEATS):
        spent: list[float] = []

        def time_once(*arguments: Any, advance: Any = caller.advance, spent: list[float] = spent) -> Any:
            started = time.process_time()
            result = advance(*arguments)
            spent.append(time.process_time() - started)
            return result

        with patch.object(caller, "advance", time_once):
            simulated_raw(bars, COMMON)
        totals.append(sum(spent))
    return median(totals)


def time_engine(count: int) -> EngineTiming:
    """All four on the same bars."""
    bars = walk(SEED, count, tick=TICK)
    by_hand = Scan(bars)
    trades = by_hand.run()
    check_same_trades(bars, trades)
    return EngineTiming(
        bars=count,
        trades=len(trades),
        scan_s=cpu_seconds(by_hand.run),
        kernel_s=kernel_seconds(bars),
        numpy_s=cpu_seconds(by_hand.run_with_averages),
        simulate_s=cpu_seconds(lambda: simulated_raw(bars, COMMON)),
    )
