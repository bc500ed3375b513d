"""How large the page of a run is, what it costs to make, and how long a browser draws it.

`uv run python -m benchmarks.run_page` prints the table; the browser is left out where there is none. Cases:
the embedded bars, one symbol with 100,000 bars, and 300 symbols.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from schemas.settings import Settings
from services.journal.index import Event, JournalIndex
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from tools.docs_pages import table
from trading_core.bars import BarSeries
from worker.feeds.sample_data import load_embedded_bars
from worker.feeds.sample_data.worlds import make_world
from worker.pages.run_page import run_html
from worker.pages.run_picture import RunPicture
from worker.review.pictured import picture_of
from worker.runs.backtest import run_backtest

CASES: dict[str, Callable[[], BarSeries]] = {
    "embedded bars": load_embedded_bars,
    "1 symbol, 100,000 bars": lambda: make_world("reverting", seed=1, bars=100_000, symbols=1),
    "300 symbols, 400 bars each": lambda: make_world("reverting", seed=1, bars=400, symbols=300),
}
DRAWN = "html[data-drawn=true]"


@dataclass(frozen=True)
class PageCost:
    """The page of one run.

    Attributes:
        bars, rows, trades: of the run; rows are those of its journal.
        megabytes: of the page.
        made_s: CPU seconds to make it from the picture.
        drawn_s: wall seconds until a browser has drawn it; None without one.
    """

    run: str
    bars: int
    rows: int
    trades: int
    megabytes: float
    made_s: float
    drawn_s: float | None


def picture_over(bars: BarSeries) -> RunPicture:
    """A run over bars, in memory."""
    sink = MemorySink()
    done = asyncio.run(run_backtest(Settings(), bars, JournalWriter(sink)))
    index = JournalIndex()
    for row in sink.rows:
        index.add(Event(row, json.loads(row.payload)))
    return picture_of("r0001", "finished", done, index)


def seconds_to_draw(text: str) -> float | None:
    """From the address to the last figure, wall; None without a browser."""
    try:
        from tools.chromium import PROGRAM, tab
    except ImportError:
        return None
    if PROGRAM is None:
        return None
    with tempfile.TemporaryDirectory() as folder, tab() as page:
        path = Path(folder) / "page.html"
        path.write_text(text, "utf-8")
        started = time.perf_counter()
        page.goto(path.as_uri())
        page.wait_for_selector(DRAWN, state="attached")
        return time.perf_counter() - started


def time_pages(names: Iterable[str] = CASES) -> list[PageCost]:
    """The page of each case, made once more after one that is not counted."""
    return [_cost(name) for name in names]


def _cost(name: str) -> PageCost:
    picture = picture_over(CASES[name]())
    run_html(picture)
    started = time.process_time()
    text = run_html(replace(picture))
    spent = time.process_time() - started
    rows, trades, size = len(picture.index.events), len(picture.episodes), len(text.encode()) / 1e6
    return PageCost(name, picture.bars.bar_count, rows, trades, size, spent, seconds_to_draw(text))


def page_table(costs: Sequence[PageCost]) -> str:
    """A line for each run."""
    rows = [
        (
            cost.run,
            f"{cost.bars:,}",
            f"{cost.rows:,}",
            f"{cost.trades:,}",
            f"{cost.megabytes:.2f}",
            f"{cost.made_s:.1f}",
            "-" if cost.drawn_s is None else f"{cost.drawn_s:.1f}",
        )
        for cost in costs
    ]
    return table(("run", "bars", "rows", "trades", "page, MB", "made, CPU s", "drawn, wall s"), rows)


def main() -> None:
    """Print a row a case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", choices=list(CASES), action="append", help="only this one; may repeat")
    sys.stdout.write(page_table(time_pages(parser.parse_args().case or CASES)) + "\n")


if __name__ == "__main__":
    main()
