"""CPU time of sweeps against a loop over `simulate`, and against vectorbt where it is installed.

`python -m benchmarks.sweeps`: the median of seven rounds, one process, warm. vectorbt gets the same crossings
as arrays and closes by percentages alone: it has neither our entry at the next open nor a time stop.
"""

import sys
import time
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.clock import cpu_seconds
from benchmarks.walks import walk
from trading_core.bars import BarSeries
from trading_core.features.columns import compute
from trading_core.research.simulation import simulate
from trading_core.research.sweep import run_sets
from worker.studies.sweep.result import SweepResult, sweep_bars
from worker.studies.sweep.sets import Family
from worker.studies.sweep.worth import Looking

LOOPED = 20
FAST, SLOW = list(range(2, 42)), list(range(50, 175, 5))
TERMS = {"entry": "crosses_above(sma_{f}, sma_{s})", "stop_pct": 0.02, "target_pct": 0.04}


def time_sweep(rows: int, fast: list[int], slow: list[int]) -> list[str]:
    """Lines on one size: `.table`, the loop as far as `LOOPED` sets go, `.worth`, vectorbt."""
    bars, family = walk(1, rows), Family(TERMS, {"f": fast, "s": slow})
    size = f"{len(family):,} sets x {rows:,} bars"
    sets = [family.set_of(point) for point in family.points()]

    def table() -> SweepResult:
        made = sweep_bars(bars, family, Looking())
        _ = made.table
        return made

    made, taken = table(), cpu_seconds(table)
    looped = (
        cpu_seconds(lambda: [simulate(bars, **given).trades for given in sets[:LOOPED]]) * len(sets) / LOOPED
    )
    equal = sum(
        row.r.tobytes() == simulate(bars, **given).records["r"].tobytes()
        for given, row in zip(sets[:LOOPED], run_sets(bars, sets[:LOOPED]), strict=True)
    )
    start = time.process_time()
    _ = made.worth
    lines = [
        f"{size}: .table {1e3 * taken:.0f} ms; a loop over simulate {1e3 * looped:,.0f} ms",
        f"{size}: trades equal to simulate in {equal} of {LOOPED} sets",
        f"{size}: .worth {time.process_time() - start:.1f} s",
    ]
    return [*lines, *_time_vectorbt(size, bars, fast, slow)]


def _time_vectorbt(size: str, bars: BarSeries, fast: list[int], slow: list[int]) -> list[str]:
    try:
        vectorbt: Any = import_module("vectorbt")
    except ImportError:
        return [f"{size}: vectorbt is not installed"]
    close = bars.close[:, 0]

    def sweep() -> object:
        means = compute(bars, [f"sma_{n}" for n in {*fast, *slow}])
        above = np.column_stack(
            [means[f"sma_{f}"][:, 0] > means[f"sma_{s}"][:, 0] for f in fast for s in slow]
        )
        entries = above & ~np.vstack([np.zeros((1, above.shape[1]), dtype=bool), above[:-1]])
        made = vectorbt.Portfolio.from_signals(
            close[:, None], entries, sl_stop=0.02, tp_stop=0.04, fees=0.0005
        )
        return made.total_return()

    return [f"{size}: vectorbt {1e3 * cpu_seconds(sweep):.0f} ms"]


if __name__ == "__main__":
    for case in ((1_260, FAST, SLOW), (43_800, FAST[::2], SLOW[:10])):
        sys.stdout.write("\n".join(time_sweep(*case)) + "\n")
