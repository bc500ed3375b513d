"""What questions to the evidence tools cost on a run of a million rows.

`uv run python -m benchmarks.many_rows` prints the table. The store is made for it: the embedded run, every
row repeated under ids of its own. It is asked in a process of its own, whose memory is told.

What was made of a policy, a trade or a report lies beside its repetitions, at the same moment, so that every
kind grows alike and time runs on. Versions of playbooks and the first and last row stand once.
"""

import asyncio
import json
import re
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np

from agents.tool_hosts.in_process import InProcessTools
from benchmarks.evidence_tools import arguments_of_tools, content_of, run_program
from services.journal.chain import link
from services.store import open_store
from services.store.packed_text import bring_unpack, pack
from services.store.seals import hash_values
from tools.docs_pages import table
from worker.review.evidence import store_tools
from worker.review.run_views import RunViews

ROWS = 1_000_000
ONCE = frozenset({"genesis", "playbook_version", "measure_renewed", "run_finished"})
ID = re.compile(r'"([0-9a-f]{16}|[0-9a-f]{64})"')
VERSION = re.compile(r'"(?:version_hash|parent_hash)":"([0-9a-f]{64})"')
CALLS = 50
LIMIT_MS = 500.0
Row = tuple[int, int, str, str | None, str]


@dataclass(frozen=True)
class CallCost:
    """CPU milliseconds of the calls of one tool, and of the first one."""

    tool: str
    first_ms: float
    spent_ms: tuple[float, ...]


@dataclass(frozen=True)
class ManyRows:
    """A process that was asked about many rows.

    Attributes:
        rows: of the run.
        reading_s: CPU seconds of the first call, which reads all of them.
        read_gb: most memory that the process had by then.
        peak_gb: the same at its end.
        calls: tool by tool, after that.
    """

    rows: int
    reading_s: float
    read_gb: float
    peak_gb: float
    calls: tuple[CallCost, ...]


def time_many(rows: int = ROWS) -> ManyRows:
    """What it costs to ask about so many rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "thinktwice.db"
        run_program("backtest", "--db", f"sqlite:///{path}")
        grow(path, rows)
        words = [sys.executable, "-m", "benchmarks.many_rows", str(path)]
        payload = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    calls = tuple(
        CallCost(call["tool"], call["first_ms"], tuple(call["spent_ms"])) for call in payload.pop("calls")
    )
    return ManyRows(**payload, calls=calls)


async def measure(path: Path) -> ManyRows:
    """Ask every tool about the run of a store; the memory is that of this whole process."""
    async with await open_store(f"sqlite:///{path}", create=False, read_only=True) as store:
        host = store_tools(RunViews(store))
        reading, read_gb = await _cost(host, "market", {}), _memory_gb()
        calls = []
        for tool, given in (await arguments_of_tools(host)).items():
            first, *spent = [
                await _cost(host, tool, arguments) for arguments in islice(cycle(given), CALLS + 1)
            ]
            calls.append(CallCost(tool, first, tuple(spent)))
        rows = (await store.runs.find("latest")).events
    return ManyRows(rows, reading / 1e3, read_gb, _memory_gb(), tuple(calls))


async def _cost(host: InProcessTools, tool: str, arguments: Mapping[str, Any]) -> float:
    """CPU milliseconds of one call."""
    started = time.process_time()
    reply = await host.call(tool, arguments)
    spent = (time.process_time() - started) * 1e3
    content_of(reply)
    return spent


def _memory_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def many_table(found: ManyRows) -> str:
    """What the reading costs, and a line for each tool."""
    head = (f"{found.rows:,} rows", "CPU", "memory by then, GB")
    reading = table(
        head,
        [
            ("read, at the first call", f"{found.reading_s:.1f} s", f"{found.read_gb:.2f}"),
            ("all calls below", "", f"{found.peak_gb:.2f}"),
        ],
    )
    shares = (50.0, 95.0)
    rows = [
        (
            f"`{call.tool}`",
            f"{call.first_ms:,.0f}",
            *(f"{float(np.percentile(call.spent_ms, share)):.1f}" for share in shares),
            f"{LIMIT_MS:.0f}",
        )
        for call in found.calls
    ]
    heads = ("tool", "first once read, CPU ms", "p50 CPU ms", "p95 CPU ms", "limit ms at p95")
    return f"{reading}\n\n{table(heads, rows)}"


def grow(path: Path, rows: int = ROWS) -> int:
    """Repeat the rows of the only run of a store, and return how many rows it has then."""
    with sqlite3.connect(path) as store:
        bring_unpack(store)
        (run,) = store.execute("select run_id from runs").fetchone()
        query = "select ts_event, known_at, kind, symbol, unpacked(payload) from journal order by seq"
        recorded: list[Row] = store.execute(query).fetchall()
        store.execute("delete from journal")
        head, seq = "0" * 64, 0
        for ts_event, known_at, kind, symbol, payload in _repeat(recorded, rows // len(recorded) + 1):
            fields = {"ts_event": ts_event, "known_at": known_at, "kind": kind, "symbol": symbol}
            own = link(head, seq=seq, payload=payload, **fields)  # type: ignore[arg-type]
            values = (run, seq, ts_event, known_at, kind, symbol, pack(payload), None, own)
            store.execute("insert into journal values (?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
            head, seq = own, seq + 1
        store.execute("update runs set events = ?, head_hash = ?", (seq, head))
        ended = store.execute("select status, document, events, head_hash, bars from runs").fetchone()
        store.execute("update runs set end_hash = ?", (hash_values(*ended),))  # of another head it is refused
    return seq


def _repeat(recorded: list[Row], times: int) -> Iterator[Row]:
    kept = {found for row in recorded if row[2] == "playbook_version" for found in VERSION.findall(row[4])}
    for *fields, payload in recorded:
        for number in range(1 if fields[2] in ONCE else times):
            shown = ID.sub(partial(_own, number=number, kept=kept), payload) if number else payload
            yield (*fields, shown)  # type: ignore[misc]


def _own(found: re.Match[str], number: int, kept: set[str]) -> str:
    """An id of a repetition; those of versions are what they are."""
    return found[0] if found[1] in kept else f'"{number:03x}{found[1][3:]}"'


if __name__ == "__main__":
    if sys.argv[1:]:
        sys.stdout.write(json.dumps(asdict(asyncio.run(measure(Path(sys.argv[1]))))) + "\n")
    else:
        sys.stdout.write(many_table(time_many()) + "\n")
