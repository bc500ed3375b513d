"""CPU time of sweeps against a loop over `simulate`, and against vectorbt: `python -m benchmarks.sweeps`.

Medians of seven rounds, one process, warm. vectorbt runs in an environment of its own on the same crossings,
which are made outside its clock, and closes by percentages alone: it has neither our entry at the next open
nor a time stop, and makes no features.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.clock import REPEATS, cpu_seconds
from benchmarks.peer_runs import Peer, run_script
from benchmarks.walks import walk
from tools.docs_pages import table
from trading_core.bars import BarSeries
from trading_core.features.columns import compute
from trading_core.research.simulation import simulate
from trading_core.research.sweep import run_sets
from worker.studies.sweep.result import SweepResult, sweep_bars
from worker.studies.sweep.sets import Family
from worker.studies.sweep.worth import Looking

LOOPED = 20
FAST, SLOW = list(range(2, 42)), list(range(50, 175, 5))
CASES = ((1_260, FAST, SLOW, 60.0), (43_800, FAST[::2], SLOW[:10], 200.0))  # bars, averages, bound in ms
TERMS = {"entry": "crosses_above(sma_{f}, sma_{s})", "stop_pct": 0.02, "target_pct": 0.04}
PEER = Peer("vectorbt", "vectorbt")


class SweepTimes(NamedTuple):
    """One size; milliseconds of CPU, those of the loop as far as `LOOPED` sets go."""

    sets: int
    bars: int
    bound_ms: float
    table_ms: float
    loop_ms: float
    equal: int
    worth_s: float
    vectorbt_ms: float


def time_sweep(rows: int, fast: list[int], slow: list[int], bound_ms: float) -> SweepTimes:
    """`.table`, the loop, `.worth` and vectorbt on one size."""
    bars, family = walk(1, rows), Family(TERMS, {"f": fast, "s": slow})
    sets = [family.set_of(point) for point in family.points()]

    def swept() -> SweepResult:
        made = sweep_bars(bars, family, Looking())
        _ = made.table
        return made

    made, taken = swept(), cpu_seconds(swept)
    looped = (
        cpu_seconds(lambda: [simulate(bars, **given).trades for given in sets[:LOOPED]]) * len(sets) / LOOPED
    )
    equal = sum(
        row.r.tobytes() == simulate(bars, **given).records["r"].tobytes()
        for given, row in zip(sets[:LOOPED], run_sets(bars, sets[:LOOPED]), strict=True)
    )
    start = time.process_time()
    _ = made.worth
    worth_s = time.process_time() - start
    peer = _time_vectorbt(bars, fast, slow)
    return SweepTimes(len(sets), rows, bound_ms, 1e3 * taken, 1e3 * looped, equal, worth_s, 1e3 * peer)


def _time_vectorbt(bars: BarSeries, fast: list[int], slow: list[int]) -> float:
    means = compute(bars, [f"sma_{n}" for n in {*fast, *slow}])
    above = np.column_stack([means[f"sma_{f}"][:, 0] > means[f"sma_{s}"][:, 0] for f in fast for s in slow])
    entries = above & ~np.vstack([np.zeros((1, above.shape[1]), dtype=bool), above[:-1]])
    with tempfile.TemporaryDirectory() as name:
        job, out = Path(name) / "job.npz", Path(name) / "out.npz"
        np.savez(job, close=bars.close[:, 0], entries=entries)
        run_script(PEER, [job, out, str(1 + REPEATS)], script="sweep_vectorbt.py")
        with np.load(out) as found:
            return float(median(found["seconds"][1:]))


def sweep_table(found: Sequence[SweepTimes]) -> str:
    """A row a size."""
    names = (
        "sets", "bars", "`.table`, ms", "bound, ms", "loop over `simulate`, ms", "vectorbt, ms",
        "`.table` / vectorbt", "sets with the trades of `simulate`", "`.worth`, s",
    )  # fmt: skip
    rows = [
        (
            f"{row.sets:,}", f"{row.bars:,}", f"{row.table_ms:.0f}",
            f"{row.bound_ms:.0f}{' MISSED' if row.table_ms > row.bound_ms else ''}", f"{row.loop_ms:,.0f}",
            f"{row.vectorbt_ms:,.0f}", f"{row.table_ms / row.vectorbt_ms:.2f}", f"{row.equal} of {LOOPED}",
            f"{row.worth_s:.1f}",
        )
        for row in found
    ]  # fmt: skip
    return table(names, rows)


if __name__ == "__main__":
    sys.stdout.write(sweep_table([time_sweep(*case) for case in CASES]) + "\n")
