"""The slow loop's statistics at size: many clusters at one look, and a million trades put into clusters.

`uv run python -m benchmarks.statistics_speed` prints the table. CPU time of one run each; memory is the peak
that Python allocates in a second run, the inputs left out.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schemas.config import GateSettings
from services.high_level.table_gate import grade_table
from services.high_level.trade_table import TradeTable, clusters_of
from services.statistics.confidence_sequence import confidence_edges
from services.statistics.eprocess import log_e_two_sided
from tools.docs_pages import table

SEED = 20_250_103
CLUSTERS, OBSERVATIONS, TRADES = 10_000, 1_000, 1_000_000
YEARS_S = 10 * 365 * 86_400
LOW, HIGH, ALPHA = -3.0, 4.0, 0.05


@dataclass(frozen=True)
class Timed:
    """What was done, its CPU seconds, its peak of memory in MB, and the limit that was set for it."""

    name: str
    cpu_s: float
    peak_mb: float
    limit_s: float | None


def timed(name: str, work: Callable[[], object], limit_s: float | None = None) -> Timed:
    """Time a piece of work, then weigh it in a second run: tracing memory costs time."""
    started = time.process_time()
    work()
    cpu_s = time.process_time() - started
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Timed(name, cpu_s, peak / 2**20, limit_s)


def time_statistics() -> list[Timed]:
    """Every measurement of the section."""
    draw = np.random.default_rng(SEED)
    values = np.clip(draw.standard_t(3, (CLUSTERS, OBSERVATIONS)) / np.sqrt(3.0), LOW, HIGH)
    low, high = np.full_like(values, LOW), np.full_like(values, HIGH)
    reference = np.zeros(CLUSTERS)
    size = f"{CLUSTERS:,} clusters x {OBSERVATIONS:,} observations"

    def one_look() -> None:
        log_e_two_sided(values, low, high, reference)
        confidence_edges(values, low, high, ALPHA, LOW, HIGH)

    def all_looks() -> None:
        tenth = slice(0, CLUSTERS // 10)
        confidence_edges(values[tenth], low[tenth], high[tenth], ALPHA, LOW, HIGH, running=True)

    trades = many_trades(draw)
    gate = GateSettings()
    end = (int(trades.exit_ns.max()),)
    return [
        timed(f"{size}: e-value and interval, one look", one_look, 5.0),
        timed(f"{CLUSTERS // 10:,} of them: interval over all looks", all_looks),
        timed(f"{TRADES:,} trades into blocks of all clusters", lambda: aggregate(trades, gate), 3.0),
        timed(f"{TRADES:,} trades graded, one look", lambda: grade_table(trades, gate, end)),
    ]


def aggregate(trades: TradeTable, gate: GateSettings) -> None:
    """Clusters of three levels and the blocks of each."""
    for item in clusters_of(trades, gate):
        item.growing.observations()


def many_trades(draw: np.random.Generator) -> TradeTable:
    """Ten years of trades in five playbooks and eight regimes."""
    entry = draw.integers(0, YEARS_S, TRADES) * 10**9
    return TradeTable(
        entry_ns=entry,
        exit_ns=entry + draw.integers(60, 36_000, TRADES) * 10**9,
        r=draw.standard_t(3, TRADES) / np.sqrt(3.0),
        playbook=draw.integers(0, 5, TRADES),
        regime=draw.integers(0, 8, TRADES),
        timeframe=np.zeros(TRADES, dtype=np.int64),
        playbooks=tuple(f"playbook_{k}" for k in range(5)),
        regimes=tuple(f"regime_{k}" for k in range(8)),
        timeframes=("1h",),
        bar_s=(3_600,),
        references=(0.0,) * 5,
    )


def speed_table(found: list[Timed]) -> str:
    """The measurements as a table."""
    rows = [
        (
            one.name,
            f"{one.cpu_s:.2f}",
            "-" if one.limit_s is None else f"{one.limit_s:g}",
            f"{one.peak_mb:,.0f}",
        )
        for one in found
    ]
    return table(("work", "CPU, s", "limit, s", "peak memory, MB"), rows)


if __name__ == "__main__":
    sys.stdout.write(speed_table(time_statistics()) + "\n")
