"""How large the page of a run is, what it costs to make, and how long a browser draws it.

`uv run python -m benchmarks.run_page` prints the table; the browser is left out where there is none. Cases:
the embedded bars, one symbol with 100,000 bars, and 300 symbols.

With `--console URL` it times the pages of the console over the newest run of a store instead, in CPU seconds
of the server: the first view of each, then its chart as it is moved.
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

from httpx import ASGITransport, AsyncClient, Response

from schemas.settings import Settings
from services.journal.index import Event, JournalIndex
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store import open_store
from tools.docs_pages import table
from trading_core.bars import BarSeries
from worker.console.app import console_app
from worker.console.guards import Address
from worker.feeds.sample_data import load_embedded_bars
from worker.feeds.sample_data.worlds import make_world
from worker.pages.run_page import run_html
from worker.pages.run_picture import RunPicture
from worker.review.pictured import picture_of
from worker.runs.backtest import run_backtest
from worker.settings import load_settings

CASES: dict[str, Callable[[], BarSeries]] = {
    "embedded bars": load_embedded_bars,
    "1 symbol, 100,000 bars": lambda: make_world("reverting", seed=1, bars=100_000, symbols=1),
    "300 symbols, 400 bars each": lambda: make_world("reverting", seed=1, bars=400, symbols=300),
}
IMPORTS_S = 5.0
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


async def time_console(address: str) -> list[tuple[str, float, int]]:
    """What each view of the newest run of a store costs: its name, CPU seconds, bytes."""
    settings = load_settings(None, flags={"runtime.db": ("--db", address)}).settings
    async with (
        await open_store(address, create=False) as store,
        console_app(store, settings, Address("127.0.0.1"), {}) as app,
        AsyncClient(transport=ASGITransport(app), base_url="http://127.0.0.1:8766") as client,
    ):

        async def view(name: str, path: str) -> Response:
            started = time.process_time()
            answer = await client.get(path, headers={"accept": "text/html"})
            answer.raise_for_status()
            spent.append((name, time.process_time() - started, len(answer.content)))
            return answer

        spent: list[tuple[str, float, int]] = []
        await view("imports", "/plans")
        await asyncio.sleep(IMPORTS_S)  # what reads bars is imported while nobody waits
        spent.clear()
        base = f"/api/runs/{(await store.runs.find('latest')).run_id}"
        await view("the run", base.removeprefix("/api"))
        head = (await view("chart", f"{base}/chart")).json()
        start, end = head["start"], head["end"]
        for name, steps in (("last window", 0), ("earlier", 1), ("much earlier", 50)):
            back = steps * (end - start)
            await view(name, f"{base}/window?start={start - back}&end={end - back}")
        await view("all bars", f"{base}/window?start={head['from']}&end={end}")
        await view("previous decision", f"{base}/decision?at={end}&move=previous")
        for part in ("reflections", "lessons", "reports", "models"):
            await view(part, f"{base.removeprefix('/api')}/{part}")
        await view("live", f"/live?run={base.rpartition('/')[2]}")
    return spent


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
    parser.add_argument("--console", metavar="URL", help="of a store with a run that is over")
    if (address := (given := parser.parse_args()).console) is not None:
        views = asyncio.run(time_console(address))
        rows = [(name, f"{spent:.2f}", f"{size:,}") for name, spent, size in views]
        sys.stdout.write(table(("view", "CPU s", "bytes"), rows) + "\n")
        return
    sys.stdout.write(page_table(time_pages(given.case or CASES)) + "\n")


if __name__ == "__main__":
    main()
