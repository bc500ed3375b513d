"""How far one machine carries it: `python -m benchmarks.scale [KIND ...]` prints a line for each size.

Kinds: `bars` (one symbol by `simulate`), `symbols` (five years of days by `simulate`), `agent` (minutes
through the whole agent into a store), `wide` (symbols through the whole agent; from its last size follows
what 10,000 symbols and five years of minutes need). Each size has a process of its own, so that its memory
is its own; times are CPU seconds of that process. `--year` adds 525,600 minutes.
"""

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.clock import cpu_seconds
from schemas.settings import Settings
from trading_core.bars import COLUMNS, BarSeries
from trading_core.research.simulation import simulate
from worker.runs.warm_up import compile_engine

DAYS, YEAR = 1_260, 525_600
SIZES = {
    "bars": (1_000_000, 3_000_000, 10_000_000),
    "symbols": (100, 300, 1_000),
    "agent": (10_000, 20_000, 50_000, 100_000),
    "wide": (10, 20, 40),
}
WIDE_BARS = 1_500
WANTED, MINUTES, YEARS = 10_000, 1_440, 5
BAR_BYTES = 41  # five numbers and whether it is there
MINUTE_NS, DAY_NS = 60 * 10**9, 86_400 * 10**9
Figures = dict[str, float]


def series(count: int, symbols: int, step_ns: int, spread: float) -> BarSeries:
    """Gaussian walks; one seed a symbol, so that more symbols or bars leave the others as they are."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for seed in range(symbols):
        draw = np.random.default_rng(seed)
        close = 100.0 * np.exp(np.cumsum(draw.normal(0.0, spread, count)))
        opened = np.concatenate([[100.0], close[:-1]])
        wide = np.abs(draw.normal(0.0, spread / 2.0, (2, count)))
        high, low = np.maximum(opened, close) * (1.0 + wide[0]), np.minimum(opened, close) * (1.0 - wide[1])
        for name, values in zip(COLUMNS, (opened, high, low, close, np.full(count, 1_000.0)), strict=True):
            columns[name].append(values)
    arrays: dict[str, Any] = {name: np.column_stack(values) for name, values in columns.items()}
    return BarSeries(
        times=1_577_836_800_000_000_000 + np.arange(count, dtype=np.int64) * step_ns,
        symbols=tuple(f"S{s:05d}" for s in range(symbols)), timeframe="1m" if step_ns == MINUTE_NS else "1d",
        label="open", present=np.ones((count, symbols), dtype=np.bool_),
        **arrays,
    )  # fmt: skip


def _simulated(bars: BarSeries) -> Figures:
    compile_engine()
    taken = cpu_seconds(lambda: simulate(bars), repeats=3)
    return {"cpu_s": taken, "trades": len(simulate(bars).records)}


def _traded(bars: BarSeries) -> Figures:
    """A run of the agent into a store, as `thinktwice backtest` makes it."""
    from services.playbooks.loader import load_playbooks
    from services.store import open_store
    from worker.feeds.selected_bars import describe
    from worker.runs import garbage
    from worker.runs.backtest import run_backtest
    from worker.runs.store_run import new_run, record_run

    garbage.loading_begins()
    compile_engine()
    garbage.all_is_loaded()
    settings, books = Settings(), load_playbooks(None)

    async def run(url: str) -> tuple[int, int]:
        async with await open_store(url, create=True) as store:
            row = new_run(settings, "scale", "backtest", describe(bars, settings))
            await record_run(run_backtest, settings, bars, store, row, definitions=books)
            record = await store.runs.find("latest")
            return record.events, record.document["performance"]["trades"] if record.document else 0

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scale.db"
        start = time.process_time()
        rows, trades = asyncio.run(run(f"sqlite:///{path}"))
        cpu = time.process_time() - start
        stored = sum(file.stat().st_size for file in Path(folder).iterdir())
    return {"cpu_s": cpu, "trades": trades, "rows": rows, "store_mb": stored / 1e6}


KINDS: dict[str, Callable[[int], Figures]] = {
    "bars": lambda size: _simulated(series(size, 1, MINUTE_NS, 0.001)),
    "symbols": lambda size: _simulated(series(DAYS, size, DAY_NS, 0.01)),
    "agent": lambda size: _traded(series(size, 1, MINUTE_NS, 0.001)),
    "wide": lambda size: _traded(series(WIDE_BARS, size, MINUTE_NS, 0.001)),
}


def measure(kind: str, size: int) -> Figures:
    """One size in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scale", kind, "--alone", str(size)]
    found: Figures = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def exponent(sizes: Sequence[int], figures: Sequence[Figures]) -> float:
    """Of log CPU seconds against log size."""
    return float(np.polyfit(np.log(sizes), np.log([taken["cpu_s"] for taken in figures]), 1)[0])


def plan(size: int, found: Figures) -> list[str]:
    """What `WANTED` symbols of minutes need, by what `size` symbols took."""
    each = size * WIDE_BARS
    cpu_ms, rows, size_kb = (
        found[name] * scale / each for name, scale in (("cpu_s", 1e3), ("rows", 1.0), ("store_mb", 1e3))
    )
    day, always = WANTED * MINUTES, WANTED * MINUTES * 365 * YEARS
    return [
        f"a symbol and minute: {cpu_ms:.2f} ms of CPU, {rows:.3f} rows, {1e3 * size_kb:,.0f} bytes of store",
        f"{WANTED:,} symbols: {rows * day / 1e6:,.1f} million rows and {size_kb * day / 1e6:,.1f} GB a day",
        f"{YEARS} years: {rows * always / 1e9:,.1f} billion rows and {size_kb * always / 1e9:,.1f} TB in "
        f"{365 * YEARS:,} partitions of a day",
        f"bars of {YEARS} years as columns: {always * BAR_BYTES / 1e12:,.1f} TB",
        f"cores that keep up with a minute, without a commit a bar: {WANTED * cpu_ms / 60_000:,.2f}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description="How far one machine carries it.")
    parser.add_argument("kinds", nargs="*", default=[*SIZES], help=f"of {', '.join(SIZES)}")
    parser.add_argument("--year", action="store_true", help="a year of minutes through the agent: hours")
    parser.add_argument("--alone", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.alone is not None:
        found = KINDS[given.kinds[0]](given.alone)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        sys.stdout.write(json.dumps(found | {"memory_mb": memory}))
        return 0
    for kind in given.kinds:
        sizes = [*SIZES[kind], *([YEAR] if kind == "agent" and given.year else [])]
        figures: list[Figures] = []
        for size in sizes:
            figures.append(measure(kind, size))
            shown = ", ".join(f"{name} {value:,.2f}" for name, value in figures[-1].items())
            sys.stdout.write(f"{kind} {size:,}: {shown}\n")
            sys.stdout.flush()
        sys.stdout.write(f"{kind}: exponent {exponent(sizes, figures):.2f}\n")
        if kind == "wide":
            sys.stdout.write("\n".join(plan(sizes[-1], figures[-1])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
