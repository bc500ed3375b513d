# mypy: ignore-errors
"""This engine under the peers' protocol: a process of its own, the same bars, the same clock.

Unlike the peers it is not given the averages: its time includes computing them.
"""

import numpy as np
from job import run

from benchmarks.crossing import COMMON, simulated_raw, trade_list
from trading_core.bars import BarSeries


def prepare(job):
    """The bars as this engine's own object."""
    prices = {name: job.arrays[name] for name in ("open", "high", "low", "close")}
    shape = (job.rows, job.symbols)
    names = tuple(f"S{s:02d}" for s in range(job.symbols))
    return BarSeries(
        job.arrays["times"],
        names,
        "1m",
        "open",
        volume=np.full(shape, 1_000.0),
        present=np.ones(shape, dtype=bool),
        **prices,
    )


def trade(job, bars):
    """Rule text and bars in, trades and equity out."""
    return bars, simulated_raw(bars, COMMON).trades


def read(job, found):
    """Rows of the trade list."""
    return trade_list(*found).to_numpy().tolist()


if __name__ == "__main__":
    run("thinktwice", prepare, trade, read)
