"""The text of docs/reference/benchmarks.md: sections from measurements, no measuring here."""

from collections.abc import Mapping, Sequence

from benchmarks.claim_check_speed import Checked, check_table
from benchmarks.clock import REPEATS
from benchmarks.cold_start import Start
from benchmarks.crossing import ENTRY
from benchmarks.embedded import BacktestTiming
from benchmarks.engine import EngineTiming
from benchmarks.evidence_tools import Starts, ToolTimes, evidence_tables
from benchmarks.executors import ExecutorTimes, executor_table
from benchmarks.gate_worlds.section import BEGIN, END
from benchmarks.growth import BARS_EACH, Growth, Weight
from benchmarks.live_step import FEATURES, RULES, STEPS, Steps, steps_table
from benchmarks.many_rows import ManyRows, many_table
from benchmarks.memory import RETRIEVALS, WIDTH, Retrievals, memory_table
from benchmarks.model_deadlines import Share, Size, deadline_table, size_table
from benchmarks.peer_table import CAP_S, Block, peer_tables
from benchmarks.policy_loop import LoopTiming, loop_table
from benchmarks.run_page import PageCost, page_table
from benchmarks.statistics_speed import Timed, speed_table
from benchmarks.sweeps import SweepTimes, sweep_table
from benchmarks.text_presets import Cost, cost_table
from tools.docs_pages import table
from worker.operations.environment import environment

PARTS = ("compile_s", "engine_s", "policy_s", "slow_s", "total_s")


def head() -> str:
    """What was measured, how and where."""
    seen = environment()
    machine = ", ".join(f"{name} {seen[name]}" for name in ("python", "numpy", "numba", "processor"))
    return f"""# Benchmarks

Written by `make bench`, the section on worlds by `make worlds`; not a test. Times are CPU seconds unless a
column says otherwise: they depend on the machine, ratios less, and differences below one and a half mean
little. Measured with
{machine}.

One strategy everywhere: long one unit on `{ENTRY}`, 2 % stop, 4 % target, out
after 50 bars, 5 basis points a side, levels from the close that gave the signal. The bars are a seeded walk
of minutes with gaps and wide bars (`benchmarks/walks.py`)."""


def engine_section(timings: list[EngineTiming]) -> str:
    """The engine against its limit."""
    rows = [
        (
            f"{row.bars:,}", f"{row.trades:,}", f"{row.scan_s * 1e3:.2f}", f"{row.kernel_s * 1e3:.2f}",
            f"{row.kernel_s / row.scan_s:.1f}", f"{row.numpy_s * 1e3:.2f}", f"{row.simulate_s * 1e3:.2f}",
            f"{row.simulate_s / row.numpy_s:.1f}", f"{row.bars / row.simulate_s / 1e6:.1f} M",
        )
        for row in timings
    ]  # fmt: skip
    names = (
        "bars", "trades", "scan, ms", "kernel, ms", "kernel / scan", "averages and scan, ms",
        "`simulate`, ms", "`simulate` / averages and scan", "bars per CPU s of `simulate`",
    )  # fmt: skip
    return f"""## The engine and its limit

The limit is a hand-written compiled scan: stop, target, time stop, fees and the trade list, and nothing else.
It has no rule language, no second symbol, no portfolio, no excursions, no equity. With the crossing given it
stands against the kernel with its rule column ready; with numpy's running averages before it (which round a
few crossings away) against the whole `simulate`. Scan and `simulate` make the same trades to the last bit, or
the benchmark fails. Medians of {REPEATS} warm runs.

{table(names, rows)}"""


def peer_section(blocks: list[Block]) -> str:
    """This engine and the others."""
    return f"""## Against other engines

Every engine runs in a process and an environment of its own, on the same bars, one after the other. The
clock runs from data in the engine's own form to finished trades; making bar objects is not counted. The
peers are given both averages as arrays, while `simulate` computes its own. *First run* is the first in its
process, with whatever the engine compiles or loads from its cache then; the median leaves it out where there
are more. A process that takes more than {CAP_S:.0f} seconds is ended. backtesting.py holds one instrument,
so it runs symbol after symbol.

*Equal* trades have the same entry bar, exit bar and prices as this engine's, over the longer of both lists:
first with the same settings for all, then with this engine's settings that come nearest to that peer's
behaviour. [Other engines](../explanation/other-engines.md) says where they part.

{peer_tables(blocks)}"""


def growth_section(bars: Growth, symbols: Growth, weight: Weight) -> str:
    """Cost against size, and bytes per bar."""
    return f"""## Growth and weight

CPU of `simulate`. The slope is that of log cost over log size: 1 is linear.

{_grown("bars, one symbol", bars)}

{_grown(f"symbols, {BARS_EACH:,} bars each", symbols)}

A bar of one symbol takes {weight.series:.0f} bytes in a `BarSeries`; `simulate` takes {weight.simulate:.0f}
more at its peak, result included."""


def _grown(name: str, growth: Growth) -> str:
    rows = [
        ("CPU, ms", *(f"{seconds * 1e3:.1f}" for seconds in growth.seconds)),
        ("per bar, ns", *(f"{1e9 * s / n:.1f}" for n, s in zip(growth.bars, growth.seconds, strict=True))),
    ]
    text = table((name, *(f"{size:,}" for size in growth.sizes)), rows)
    return f"{text}\n\nSlope: {growth.slope:.2f}."


def sweep_section(found: Sequence[SweepTimes], executors: ExecutorTimes) -> str:
    """Sweeps and what carries them out."""
    return f"""## Parameter sets

`tt.sweep` over crossings of averages: `.table` of all sets, features included, nothing stored. vectorbt gets
the crossings ready made, in an environment of its own, and has neither the entry at the next open nor the
time stop (`python -m benchmarks.sweeps`).

{sweep_table(found)}

Overhead and gain of more processes (`python -m benchmarks.executors`); the gain is the CPU of one process
over that of the longer of two and of the one that asks, start included.

{executor_table(executors)}"""


def step_section(found: Sequence[Steps]) -> str:
    """The live step."""
    return f"""## The live step

One new row of bars through {len(FEATURES)} features, {len(RULES) + 1} rules, the regime and the kernel, with
a standing policy that trades; CPU time over the symbols of the row, {STEPS:,} steps. It should not depend on
the history.

{steps_table(found)}"""


def memory_section(found: Sequence[Retrievals]) -> str:
    """Retrieval from the episode memory."""
    return f"""## The episode memory

One contrastive retrieval: every eligible episode of {WIDTH} features is looked at, none is skipped by an
index. {RETRIEVALS} seeded questions each, none of them the same.

{memory_table(found)}"""


def loop_section(timings: Sequence[LoopTiming]) -> str:
    """The policy loop and the slow loop."""
    return f"""## The policy loop

Whole runs with the `rules` strategist and the deterministic reflection, every proposal reflected on; the
heartbeat of minute bars is 15 bars. Evaluations per second and the reflection's quantiles are wall time: an
evaluation is snapshot, strategist, reflection with its memory, judge, freeze and journal. The slope is that
of log CPU seconds against log bars: 1 is linear.

{loop_table(timings)}"""


def model_section(shares: Sequence[Share], sizes: Sequence[Size]) -> str:
    """The models in their time, and what they are asked."""
    return f"""## Questions to models

The shipped deadlines of a second reader, against a local server that speaks the Messages API and answers
late. What is not there in time is decided by rules.

{deadline_table(shares)}

Tokens are estimated from bytes, four to a token, over the questions of a run on embedded bars. The constant
part comes first and is the same from question to question, so that a provider may keep it.

{size_table(sizes)}"""


def text_section(costs: Sequence[Cost]) -> str:
    """What texts cost that are looked at again."""
    return f"""## Texts that are looked at again

Each preset on a narrative of the embedded bars, held against its run, with a model that takes 100 ms for
every reply and whose scores rise from too low to high enough: one correction, one improvement, one
regeneration, three sections. Ratios are to one call that writes the text, of time between the medians: one
question waits for the reply to another, and the sections are asked for at once, so none is below twice. The
peak is what one text takes beside the facts of its run, traced apart.
`uv run python -m benchmarks.text_presets` prints the table.

{cost_table(costs)}"""


def statistics_section(found: list[Timed]) -> str:
    """The slow loop's statistics at size."""
    return f"""## The statistics of the slow loop

The evidence of "losing" and "gaining" after every block of a cluster is computed once; an interval is some
forty evaluations of that. Trades are put into clusters of three levels and blocks of a week.

{speed_table(found)}"""


def worlds_section(text: str) -> str:
    """The gate where the truth is known, as `make worlds` wrote it."""
    return f"""## The gate on worlds with known truth

{BEGIN}

{text}

{END}"""


def claim_check_section(checked: Checked) -> str:
    """What a check of a report's claims costs."""
    return f"""## Checking the claims of a report

CPU time of 30 claims of a report looked up and written in words once the facts of the run are read, and the
tokens of the question for its narrative (`python -m benchmarks.claim_check_speed`).

{check_table([checked])}"""


def evidence_section(tools: Sequence[ToolTimes], starts: Starts) -> str:
    """What questions to the evidence tools cost."""
    return f"""## Asking for evidence

Wall-clock time of a question to the evidence tools on the embedded run, through the host of their server;
`first` loads what the tool needs. Below, from the start of `thinktwice mcp` to its answer to
`tools/list` over standard streams, and a question in a process of its own
(`python -m benchmarks.evidence_tools`).

{evidence_tables(tools, starts)}"""


def many_section(found: ManyRows) -> str:
    """What a run of a million rows costs to ask about."""
    return f"""## Asking about a million rows

The embedded run with every row repeated under ids of its own, asked in a process of its own: the first call
reads all rows and holds each against its hash, the first of each tool parses what it needs. CPU time
(`python -m benchmarks.many_rows`).

{many_table(found)}"""


def page_section(costs: Sequence[PageCost]) -> str:
    """The page of a run."""
    return f"""## The page of a run

How large `thinktwice page` makes it, what it costs to make from rows that are read, and how long a headless
browser takes from its address to the last figure (`python -m benchmarks.run_page`).

{page_table(costs)}"""


def start_section(starts: Mapping[str, Start]) -> str:
    """Compilation."""
    rows = [(name, f"{timing.wall_s:.1f}", f"{timing.cpu_s:.1f}") for name, timing in starts.items()]
    return f"""## Starting

A process of its own, from nothing to its end, `tt.simulate` as a script calls it. Machine code is made of the
image that ships with the engine, and kept in a folder named by its sources: an edit starts an empty one.

{table(("process", "wall, s", "CPU, s"), rows)}"""


def backtest_section(first: BacktestTiming, second: BacktestTiming) -> str:
    """The embedded backtest."""
    rows = []
    for part in PARTS:
        values = (f"{run.document['timing'][part]:.2f} s" for run in (first, second))
        rows.append((f"`timing.{part}` (wall)", *values))
    speeds = (f"{run.document['timing']['bars_per_s']:,.0f}" for run in (first, second))
    rows.append(("`timing.bars_per_s`", *speeds))
    rows.append(("CPU seconds of the process", f"{first.cpu_s:.2f} s", f"{second.cpu_s:.2f} s"))
    return f"""## The embedded backtest

`thinktwice backtest` on {first.document["data"]["bars"]:,} bars in a process of its own: first with an empty
cache of compiled code, then again. Parts are wall seconds as the [JSON document](json-document.md) reports
them.

{table(("part", "first run", "second run"), rows)}"""
