"""L9: a paper run with the console in its process and three pages open on it, against the same run alone."""

import asyncio
import queue
import subprocess
import sys
import tempfile
from pathlib import Path

from services.store import open_store
from tests.soak.findings import ROOT, Finding, quantile
from tests.soak.many_symbols import traded
from tests.soak.open_pages import PAGES
from tests.soak.scale import scaled
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import address
from worker.console.beside import ConsoleThread
from worker.operations.monitoring import prepare
from worker.secrets.redaction import Redactor
from worker.settings import load_settings

SYMBOLS, ROWS, ROUNDS, SLOWER = 6, 1_500, 3, 1.05
A_SECOND = 30.0  # rows; in a market one a minute
PATIENCE_S = 120.0


def check() -> list[Finding]:
    """The slowest rows alone and watched, in turn: all rounds together, as others use the machine, too."""
    rows, alone, watched, shown = scaled(ROWS), [], [], []
    for _ in range(ROUNDS):
        alone += _took_ms(rows, watched=False)[0]
        took, streamed = _took_ms(rows, watched=True)
        watched += took
        shown.append(min(streamed))
    before, after = (quantile(part, 0.99) for part in (alone, watched))
    return [
        Finding(
            "L9",
            f"{SYMBOLS} symbols, {rows:,} rows of a minute, {A_SECOND:g} a second, {ROUNDS} times alone "
            f"and with the console and {PAGES} live pages in a browser",
            f"p99 of a row at most {SLOWER - 1:.0%} above the run alone; each page shows rows as they come",
            f"p99 of a row, CPU of the trading loop: {before:.2f} ms alone, {after:.2f} ms watched "
            f"({after / before - 1:+.1%}); at least {min(shown):,} rows streamed to each page",
            after <= SLOWER * before and min(shown) > 0,
        )
    ]


def _took_ms(rows: int, *, watched: bool) -> tuple[list[float], list[int]]:
    """Of each row, and how many rows each page has shown."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if not watched:
            return asyncio.run(traded(folder, rows, SYMBOLS, before=_paced)).took_ms, []
        return asyncio.run(_watched(folder, rows))


async def _paced(_row: int) -> None:
    await asyncio.sleep(1.0 / A_SECOND)


async def _watched(folder: Path, rows: int) -> tuple[list[float], list[int]]:
    settings = load_settings(None, flags={"runtime.db": ("--db", address(folder))}).settings
    prepared = prepare(settings.runtime.operations, Redactor([]), {})
    urls: queue.Queue[str] = queue.Queue()
    async with await open_store(address(folder), create=True):
        console = ConsoleThread(settings, prepared, 0, lambda url, run_id: urls.put(url))
    pages: list[subprocess.Popen[str]] = []

    async def open_pages(row: int) -> None:
        if row:
            return await _paced(row)
        url = await asyncio.to_thread(urls.get, timeout=PATIENCE_S)
        command = [sys.executable, "-m", "tests.soak.open_pages", url]
        pages.append(
            subprocess.Popen(  # noqa: ASYNC220 - it begins at once
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        assert pages[0].stdout is not None
        assert await asyncio.to_thread(pages[0].stdout.readline) == "open\n"

    found = await traded(folder, rows, SYMBOLS, console.over(NullMonitor(lambda *_: None)), open_pages)
    said, _ = await asyncio.to_thread(pages[0].communicate, "", PATIENCE_S)
    return found.took_ms, [int(word) for word in said.split()]
