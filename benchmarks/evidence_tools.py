"""What a question to the evidence tools costs on the embedded run, and how soon their server answers.

`uv run python -m benchmarks.evidence_tools` prints the tables. The run is made anew in a folder of its own.
Times are wall-clock: of one call after another through the host that the server has, arguments and moments
varied, after one call of each tool that reads the rows; and from the start of the server's process to the
answer to `tools/list` over standard streams.
"""

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from agents.tool_hosts.in_process import InProcessTools
from benchmarks.cold_start import Start
from services.store import open_store
from tools.docs_pages import table
from worker.review.evidence import store_tools
from worker.review.run_views import RunViews

CALLS = 100
STARTS = 5
LIMIT_MS = 100.0
LISTED, ANSWERED = "`tools/list` after the start", "`thinktwice ask` by rules, to its end"
LIMITS_S = {LISTED: 2.0, ANSWERED: 3.0}
QUESTION = "why did squeeze_breakout lose?"
MOMENTS = (None, "2004-06-30", "2008-06-30", "2012-06-30")
OPENING = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


@dataclass(frozen=True)
class ToolTimes:
    """Wall-clock milliseconds of the calls of one tool, and of the first one, which reads the rows."""

    tool: str
    first_ms: float
    spent_ms: tuple[float, ...]

    def percentile(self, share: float) -> float:
        """Milliseconds that this share of the calls stays within, in percent."""
        return float(np.percentile(self.spent_ms, share))


Starts = dict[str, list[Start]]


def time_tools() -> tuple[list[ToolTimes], Starts]:
    """Times of every tool, and seconds of the starts of the server and of a question by rules."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "thinktwice.db"
        run_program("backtest", "--db", f"sqlite:///{path}")
        starts = {
            LISTED: [_start(path) for _ in range(STARTS)],
            ANSWERED: [_ask(path) for _ in range(STARTS)],
        }
        return asyncio.run(_tools(path)), starts


def run_program(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "thinktwice", *words], check=True, capture_output=True)


async def _tools(path: Path) -> list[ToolTimes]:
    async with await open_store(f"sqlite:///{path}", create=False, read_only=True) as store:
        host = store_tools(RunViews(store))
        request = await arguments_of_tools(host)
        return [await _times(host, tool, given) for tool, given in request.items()]


async def arguments_of_tools(host: InProcessTools) -> dict[str, list[dict[str, Any]]]:
    """Arguments of each tool, over symbols, playbooks and moments."""
    snapshots = content_of(await host.call("market", {}))["snapshots"]
    symbols = [item["symbol"] for item in snapshots]
    books = sorted({item["playbook_id"] for item in content_of(await host.call("playbooks", {}))["versions"]})
    reports = [
        item["report_id"] for item in content_of(await host.call("reports", {"limit": 100}))["reports"]
    ]
    fills = [item["fill_id"] for item in content_of(await host.call("trades", {"limit": 100}))["trades"]]
    at: list[dict[str, Any]] = [{} if moment is None else {"at": moment} for moment in MOMENTS]
    return {
        "runs": [{}],
        "account": at,
        "costs": at,
        "market": [
            {"symbol": symbol, **when} for symbol in symbols for when in at if symbol != "FB" or not when
        ],
        "playbooks": [{"playbook_id": book, **when} for book in books for when in at],
        "trades": [{"playbook_id": book, **when} for book in books for when in at],
        "decisions": [{"playbook_id": book, **when} for book in books for when in at],
        "reports": [{}, *({"report_id": report} for report in reports)],
        "gate": [{"playbook_id": book, **when} for book in books for when in at],
        "why": [{"fill_id": fill} for fill in fills],
        "check": [
            {"symbol": symbol, "playbook_id": book, "direction": "long"}
            for symbol in symbols
            for book in books
        ],
    }


async def _times(host: InProcessTools, tool: str, given: list[dict[str, Any]]) -> ToolTimes:
    spent = [await _time_call(host, tool, arguments) for arguments in _some(given)]
    return ToolTimes(tool, spent[0], tuple(spent[1:]))


def _some(given: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    turns = cycle(given)
    return (next(turns) for _ in range(CALLS + 1))


async def _time_call(host: InProcessTools, tool: str, arguments: Mapping[str, Any]) -> float:
    started = time.perf_counter()
    reply = await host.call(tool, arguments)
    spent = (time.perf_counter() - started) * 1e3
    content_of(reply)
    return spent


def content_of(reply: Any) -> dict[str, Any]:
    if reply.is_error:
        raise RuntimeError(reply.text)
    return dict(reply.content)


def _start(path: Path) -> Start:
    """From the start of the process to its tools; CPU to its end."""
    before = _cpu()
    started = time.perf_counter()
    words = [sys.executable, "-m", "thinktwice", "mcp", "--db", f"sqlite:///{path}"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        if server.stdin is None or server.stdout is None:
            raise RuntimeError("the server has no streams")
        server.stdin.write("".join(json.dumps(message) + "\n" for message in OPENING))
        server.stdin.flush()
        server.stdout.readline()
        tools = json.loads(server.stdout.readline())["result"]["tools"]
        wall = time.perf_counter() - started
        server.stdin.close()
    if not tools:
        raise RuntimeError("the server listed no tool")
    return Start(wall, _cpu() - before)


def _ask(path: Path) -> Start:
    """One question about the run, which no process has read before."""
    before, started = _cpu(), time.perf_counter()
    run_program("ask", QUESTION, "--db", f"sqlite:///{path}")
    return Start(time.perf_counter() - started, _cpu() - before)


def _cpu() -> float:
    """Seconds of CPU of the processes that have ended."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def evidence_tables(tools: Sequence[ToolTimes], starts: Starts) -> str:
    """A line for each tool, and one for the starts."""
    shares = (50.0, 95.0, 99.0)
    rows = [
        (
            f"`{item.tool}`",
            *(f"{item.percentile(share):.1f}" for share in shares),
            f"{LIMIT_MS:.0f}",
            f"{item.first_ms:,.0f}",
        )
        for item in tools
    ]
    calls = table(("tool", "p50 ms", "p95 ms", "p99 ms", "limit ms at p95", "first ms"), rows)
    heads = ("process", "median wall, s", "slowest wall, s", "median CPU, s", "limit, s")
    return f"{calls}\n\n{table(heads, [_start_row(name, times) for name, times in starts.items()])}"


def _start_row(name: str, starts: Sequence[Start]) -> tuple[str, ...]:
    walls, cpus = [start.wall_s for start in starts], [start.cpu_s for start in starts]
    figures = (float(np.median(walls)), max(walls), float(np.median(cpus)))
    return name, *(f"{figure:.2f}" for figure in figures), f"{LIMITS_S[name]:.0f}"


if __name__ == "__main__":
    sys.stdout.write(evidence_tables(*time_tools()) + "\n")
