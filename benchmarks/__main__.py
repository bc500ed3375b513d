"""Writes docs/reference/benchmarks.md; see `make bench`."""

import sys
from pathlib import Path

from benchmarks.embedded import BacktestTiming, time_backtest
from benchmarks.engine import REPEATS, SIZES, EngineTiming, time_engine
from benchmarks.hand_scan import RULE
from worker.environment import environment

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "benchmarks.md"
PARTS = ("compile_s", "engine_s", "policy_s", "slow_s", "total_s")


def engine_table(timings: list[EngineTiming]) -> str:
    """One line a size; ratios are to the scan."""
    lines = [
        "| bars | trades | scan, ms | kernel, ms | kernel / scan | `simulate`, ms | `simulate` / scan |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in timings:
        lines.append(
            f"| {one.bars:,} | {one.trades:,} | {one.scan_s * 1e3:.2f} | {one.kernel_s * 1e3:.2f} "
            f"| {one.kernel_s / one.scan_s:.1f} | {one.simulate_s * 1e3:.2f} "
            f"| {one.simulate_s / one.scan_s:.1f} |"
        )
    return "\n".join(lines)


def backtest_table(first: BacktestTiming, second: BacktestTiming) -> str:
    """One line a part."""
    lines = ["| part | first run | second run |", "| --- | --- | --- |"]
    for part in PARTS:
        values = (f"{one.document['timing'][part]:.2f} s" for one in (first, second))
        lines.append(f"| `timing.{part}` (wall) | {' | '.join(values)} |")
    speeds = (f"{one.document['timing']['bars_per_s']:,.0f}" for one in (first, second))
    lines.append(f"| `timing.bars_per_s` | {' | '.join(speeds)} |")
    lines.append(f"| CPU seconds of the process | {first.cpu_s:.2f} s | {second.cpu_s:.2f} s |")
    return "\n".join(lines)


def page(timings: list[EngineTiming], runs: tuple[BacktestTiming, BacktestTiming]) -> str:
    """The whole page."""
    seen = environment()
    machine = ", ".join(f"{name} {seen[name]}" for name in ("python", "numpy", "numba", "processor"))
    return f"""# Benchmarks

Written by `make bench`; not a test. Times depend on the machine, ratios less. Measured with {machine}.

## Engine

`{RULE}` with a bracket, one symbol, through the public `simulate`, inside the kernel that it calls, and in
a hand-written compiled scan of the same rule with everything general left out: no rule language, no
portfolio, no second symbol. The scan is the limit; all make the same trades, or the benchmark fails. CPU
time, the best of {REPEATS} warm runs.

{engine_table(timings)}

## The embedded backtest

`thinktwice backtest` on {runs[0].document["data"]["bars"]:,} bars in a process of its own: first with an
empty cache of compiled code, then again. Parts are wall seconds as the [JSON document](json-document.md)
reports them.

{backtest_table(*runs)}
"""


def main() -> int:
    """Measure and write the page."""
    PAGE.write_text(page([time_engine(size) for size in SIZES], time_backtest()), "utf-8")
    sys.stdout.write(PAGE.read_text("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
