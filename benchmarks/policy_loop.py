"""What both loops cost: the embedded bars, and more and more minute bars with a heartbeat every 15.

All runs are deterministic, with full reflection, in this process, with compiled code at hand.
`uv run python -m benchmarks.policy_loop` prints the table.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.growth import Growth
from benchmarks.walks import walk
from schemas.errors import ConfigError
from schemas.settings import Settings
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from tools.docs_pages import table
from trading_core.bars import BarSeries
from worker.feeds.sample_data import load_embedded_bars
from worker.runs.backtest import run_backtest

INTRADAY_BARS = (50_000, 100_000, 200_000)
SEED = 7


@dataclass(frozen=True)
class LoopTiming:
    """One run: its JSON document, and the wall and CPU seconds from bars to document."""

    name: str
    document: dict[str, Any]
    wall_s: float
    cpu_s: float


def time_loops() -> list[LoopTiming]:
    """The embedded daily bars, then walks of minutes."""
    run(load_embedded_bars(start="2003-01-01", end="2003-06-30"))  # compiled code and caches
    return [
        time_run("embedded, 1d", load_embedded_bars()),
        *(time_run(f"walk of {count:,} bars, 1m", walk(SEED, count)) for count in INTRADAY_BARS),
    ]


def time_run(name: str, bars: BarSeries) -> LoopTiming:
    """One run.

    Raises:
        ConfigError: it ended with errors, so its times say nothing.
    """
    started, spent = time.perf_counter(), time.process_time()
    document = run(bars)
    wall_s, cpu_s = time.perf_counter() - started, time.process_time() - spent
    if document["errors"]:
        raise ConfigError(f"the run on {name} ended with {document['errors']} errors: mend it, then time it")
    return LoopTiming(name, document, wall_s, cpu_s)


def run(bars: BarSeries) -> dict[str, Any]:
    """The document of a run with the shipped settings, its journal in memory."""
    done = asyncio.run(run_backtest(Settings(), bars, JournalWriter(MemorySink())))
    return done.document("bench", "memory")


def loop_table(timings: Sequence[LoopTiming]) -> str:
    """One line a run."""
    rows = []
    for run in timings:
        loop, timing = run.document["policy_loop"], run.document["timing"]
        reflected = loop["reflection_latency_ms"]
        rows.append(
            (
                run.name, f"{run.document['data']['bars']:,}", f"{loop['evaluations']:,}",
                f"{loop['evaluations'] / timing['policy_s']:,.0f}",
                *(f"{reflected[name]:.2f}" for name in ("p50", "p95", "p99")),
                *(f"{timing[name] / timing['total_s']:.0%}" for name in ("policy_s", "slow_s")),
                f"{run.wall_s:.1f}", f"{run.cpu_s:.1f}",
            )
        )  # fmt: skip
    names = (
        "run", "bars", "evaluations", "evaluations per s", "reflection p50, ms", "p95", "p99",
        "policy loop's share of the time", "slow loop's", "run, wall s", "CPU s",
    )  # fmt: skip
    sizes = tuple(run.document["data"]["bars"] for run in timings[1:])
    walks = Growth(sizes, sizes, tuple(run.cpu_s for run in timings[1:]))
    return f"{table(names, rows)}\n\nSlope of the walks: {walks.slope:.2f}."


if __name__ == "__main__":
    sys.stdout.write(loop_table(time_loops()) + "\n")
