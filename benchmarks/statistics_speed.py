"""The slow loop's statistics at size: many clusters at one look, a look of a run, a million trades.

`uv run python -m benchmarks.statistics_speed` prints the table. CPU time of one run each; memory is the peak
that Python allocates in a second run, the inputs left out.
"""

import sys
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from schemas.settings import GateSettings
from services.high_level.clusters import TradeTable, build_clusters
from services.high_level.table_gate import GradedTable, grade_table
from services.statistics.blocks import Trades
from services.statistics.track import Bounds, Track
from tools.docs_pages import table

SEED = 20_250_103
CLUSTERS, ROWS, TRADES = 10_000, 1_000, 1_000_000
PER_WEEK = 5
HOUR_NS, WEEK_NS = 3_600 * 10**9, 7 * 86_400 * 10**9
YEARS_S = 10 * 365 * 86_400
RUN_TRADES = 1_040
BOUNDS = Bounds(-3.0, 4.0)


@dataclass(frozen=True)
class Timed:
    """What was done, its CPU seconds, its peak of memory in MB, and the limit that was set for it."""

    name: str
    cpu_s: float
    peak_mb: float
    limit_s: float | None


def time_work(name: str, work: Callable[[], object], limit_s: float | None = None) -> Timed:
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
    r = draw.standard_t(3, (CLUSTERS, ROWS)) / np.sqrt(3.0)
    entry = np.arange(ROWS, dtype=np.int64) // PER_WEEK * WEEK_NS + np.arange(ROWS) % PER_WEEK * HOUR_NS
    end = int(entry[-1]) + WEEK_NS
    size = f"{CLUSTERS:,} clusters x {ROWS:,} trades"
    tracks = [Track(Trades(entry, entry + HOUR_NS, row), "week", 0.0, BOUNDS) for row in r[: CLUSTERS // 10]]

    def one_look() -> None:
        for row in r:
            Track(Trades(entry, entry + HOUR_NS, row), "week", 0.0, BOUNDS).at(end)

    def intervals() -> None:
        for track in tracks:
            track.interval(track.complete(end))

    one_look_of_a_run()  # what is compiled is not timed
    trades = many_trades(draw)
    gate = GateSettings()
    last = (int(trades.exit_ns.max()),)
    return [
        time_work(f"{size}: evidence of both claims, one look", one_look, 5.0),
        time_work(f"{CLUSTERS // 10:,} of them: interval over all looks", intervals),
        time_work(f"a look of a live run: {RUN_TRADES:,} trades, 15 clusters", one_look_of_a_run, 0.05),
        time_work(
            f"{TRADES:,} trades into blocks of all clusters", lambda: build_clusters(trades, gate), 3.0
        ),
        time_work(f"{TRADES:,} trades graded, one look", lambda: grade_table(trades, gate, last)),
    ]


def one_look_of_a_run() -> GradedTable:
    """What a look does about two years of three playbooks in four regimes: ten trades a week."""
    draw = np.random.default_rng(SEED)
    entry = np.sort(draw.integers(0, 104 * 7 * 86_400, RUN_TRADES)) * 10**9
    table = TradeTable(
        entry_ns=entry,
        exit_ns=entry + HOUR_NS,
        r=draw.standard_t(3, RUN_TRADES) / np.sqrt(3.0),
        playbook=draw.integers(0, 3, RUN_TRADES),
        regime=draw.integers(0, 4, RUN_TRADES),
        timeframe=np.zeros(RUN_TRADES, dtype=np.int64),
        playbooks=tuple(f"playbook_{k}" for k in range(3)),
        regimes=tuple(f"regime_{k}" for k in range(4)),
        timeframes=("1h",),
        bar_s=(3_600,),
        references=(0.0,) * 3,
    )
    return grade_table(table, GateSettings(), (105 * WEEK_NS,))


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
            timing.name,
            f"{timing.cpu_s:.3f}",
            "-" if timing.limit_s is None else f"{timing.limit_s:g}",
            f"{timing.peak_mb:,.0f}",
        )
        for timing in found
    ]
    return table(("work", "CPU, s", "limit, s", "peak memory, MB"), rows)


if __name__ == "__main__":
    sys.stdout.write(speed_table(time_statistics()) + "\n")
