"""Writes docs/reference/benchmarks.md; with `--engine` prints what concerns this engine alone.

See `make bench` and `make bench-engine`.
"""

import sys
from pathlib import Path

from benchmarks import page
from benchmarks.claim_check_speed import time_checks
from benchmarks.cold_start import time_starts
from benchmarks.embedded import time_backtest
from benchmarks.engine import SIZES, time_engine
from benchmarks.evidence_tools import time_tools
from benchmarks.executors import time_executors
from benchmarks.gate_worlds.section import kept_section
from benchmarks.growth import growth_with_bars, growth_with_symbols, weigh
from benchmarks.live_step import time_steps
from benchmarks.many_rows import time_many
from benchmarks.memory import time_memory
from benchmarks.model_deadlines import SPAN, all_shares, question_sizes
from benchmarks.peer_table import time_peers
from benchmarks.policy_loop import time_loops
from benchmarks.run_page import time_pages
from benchmarks.statistics_speed import time_statistics
from benchmarks.sweeps import CASES, time_sweep
from benchmarks.text_presets import all_costs
from worker.feeds.sample_data import load_embedded_bars

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "benchmarks.md"


def tell(text: str) -> None:
    """Say on the error stream what is being timed."""
    sys.stderr.write(f"{text}\n")


def engine_sections() -> list[str]:
    """What takes a minute: no peers, no backtest."""
    tell("the engine and its limit")
    sections = [page.engine_section([time_engine(size) for size in SIZES])]
    tell("growth with bars and symbols")
    sections.append(page.growth_section(growth_with_bars(), growth_with_symbols(), weigh()))
    tell("the live step")
    sections.append(page.step_section(time_steps()))
    tell("the episode memory")
    return [*sections, page.memory_section(time_memory())]


def all_sections() -> list[str]:
    """Everything, in the order of the page."""
    limit, *growth = engine_sections()
    peers = page.peer_section(time_peers(tell))
    tell("parameter sets and executors")
    growth.append(page.sweep_section([time_sweep(*case) for case in CASES], time_executors()))
    tell("the statistics of the slow loop")
    growth.append(page.statistics_section(time_statistics()))
    growth.append(page.worlds_section(kept_section()))
    tell("the policy loop")
    growth.append(page.loop_section(time_loops()))
    tell("models that answer late")
    models = page.model_section(all_shares(), question_sizes(load_embedded_bars(start=SPAN[0], end=SPAN[1])))
    tell("checks of a text")
    checks = page.claim_check_section(time_checks())
    tell("questions to the evidence tools")
    evidence = page.evidence_section(*time_tools())
    tell("a million rows")
    many = page.many_section(time_many())
    tell("pages of runs")
    pages = page.page_section(time_pages())
    tell("cold and cached starts")
    starts = page.start_section(time_starts())
    tell("the embedded backtest")
    embedded = page.backtest_section(*time_backtest())
    tell("texts that are looked at again")
    texts = page.text_section(all_costs())
    questions = [checks, evidence, many]
    return [page.head(), limit, peers, *growth, models, *questions, texts, pages, starts, embedded]


def main(arguments: list[str]) -> int:
    """Measure; write the page or print the quick part."""
    if "--engine" in arguments:
        sys.stdout.write("\n\n".join(engine_sections()) + "\n")
        return 0
    PAGE.write_text("\n\n".join(all_sections()) + "\n", "utf-8")
    sys.stdout.write(PAGE.read_text("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
