"""L8R: `thinktwice worker --feed` for an hour of wall-clock time, its processes counted every minute."""

import asyncio
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from statistics import median

import asyncpg  # type: ignore[import-untyped]  # ships no types

from services.store import open_store
from tests.exchange.server import ExchangeServer
from tests.soak.findings import ROOT, Finding
from tests.soak.killed_processes import databases
from tests.soak.real_market import real_market, symbols
from tests.soak.scale import scaled

HOUR_S, SAMPLES, SETTLED = 3_600, 60, 6
START_S, END_S, COUNT_S = 120.0, 60.0, 5.0
GROWN_MB, POOLS = 20.0, 10
VERIFIED = "its journal verifies"
CONFIG = """
[data]
symbols = {symbols}
timeframe = "1m"
[runtime.feed.exchange]
rest_url = "{rest}"
markets = ["spot"]
[runtime.operations]
log_format = "json"
start_limit = 1000
"""


@dataclass(frozen=True)
class Count:
    """What the processes hold at one moment.

    Attributes:
        handles: of both processes, connections to the server excepted.
        connections: of both; each keeps a pool of a few, which fills when two questions meet.
        memory: MB of its own, in memory or swapped out; pages of files come and go with what others need.
    """

    tasks: int
    threads: int
    handles: int
    connections: int
    memory: float
    looker_threads: int
    looker_memory: float


@dataclass(frozen=True)
class Lived:
    """What an hour came to."""

    counts: list[Count]
    code: int | None
    left: list[int]
    minutes: int
    rows: int
    verified: str
    quoted: str


def check() -> list[Finding]:
    """On PostgreSQL."""
    length_s = scaled(HOUR_S)
    with tempfile.TemporaryDirectory() as folder, databases() as made:
        lived = asyncio.run(_lived(Path(folder), made.take(), length_s))
    half = lived.counts[SETTLED:][: (len(lived.counts) - SETTLED) // 2 * 2]
    first, second = half[: len(half) // 2], half[len(half) // 2 :]
    shown, breaks = [], _ended(lived)
    for name in (field.name for field in fields(Count)):
        before, after = (median(getattr(count, name) for count in part) for part in (first, second))
        shown.append(f"{name.replace('_', ' ')} {before:.0f} and {after:.0f}")
        allowed = GROWN_MB if name.endswith("memory") else POOLS if name == "connections" else 0.0
        if after > (allowed if name == "connections" else before + allowed):
            breaks.append(f"{name} grew from {before:.1f} to {after:.1f}")
    return [
        Finding(
            "L8R",
            f"{length_s / 60:g} minutes in real time: `worker --feed` on an exchange, bars of a minute of "
            f"{len(symbols())} symbols, store on PostgreSQL, {len(lived.counts)} counts",
            f"no growth of tasks, threads or handles, at most {POOLS} connections, memory within "
            f"{GROWN_MB:.0f} MB; every bar stored; SIGTERM ends it with 0; the run verifies",
            f"medians of the first and of the second half: {', '.join(shown)}; {lived.rows} bars of "
            f"{lived.minutes} minutes; ended with {lived.code}; {lived.verified}",
            not breaks,
            tuple(breaks),
        )
    ]


def _ended(lived: Lived) -> list[str]:
    breaks = []
    if lived.code != 0 or lived.left:
        breaks.append(f"ended with {lived.code}, processes left: {lived.left}; {lived.quoted[-500:]}")
    if lived.rows < lived.minutes - 1:
        breaks.append(f"{lived.rows} bars were stored within {lived.minutes} minutes")
    if lived.verified != VERIFIED:
        breaks.append(lived.verified)
    return breaks


async def _lived(folder: Path, address: str, length_s: float) -> Lived:
    async with real_market(1, round(length_s / 60) + 10) as server:
        config, log, mark = folder / "config.toml", folder / "log", folder / "tasks"
        config.write_text(_config(server), "utf-8")
        words = ["worker", str(config), "--feed", "ccxt:binance", "--db", address, "--period", "5"]
        with log.open("wb") as reply:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.soak.counted_worker", str(mark), *words,
                cwd=ROOT, stdout=reply, stderr=reply, env=_environment(folder),
            )  # fmt: skip
        try:
            await _until(lambda: _looker(process.pid) is not None, START_S, "the slow loop looks")
            began, minute = time.monotonic(), time.time() // 60
            counts = []
            for number in range(1, SAMPLES + 1):
                await asyncio.sleep(began + number * length_s / SAMPLES - time.monotonic())
                counts.append(await _count(process.pid, mark, address))
            minutes = round(time.time() // 60 - minute)
            looker = _looker(process.pid)
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(END_S):
                code = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
        left = [pid for pid in (looker,) if pid is not None and _lives(pid)]
        rows, verified = await _rows(address, minute), await _verified(address)
        return Lived(counts, code, left, minutes, rows, verified, log.read_text("utf-8", "replace"))


def _config(server: ExchangeServer) -> str:
    return CONFIG.format(symbols=list(symbols()), rest=server.rest_url)


def _environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("THINKTWICE_")}
    return kept | {"XDG_STATE_HOME": str(folder)}


async def _count(pid: int, mark: Path, address: str) -> Count:
    looker = _looker(pid)
    if looker is None:
        raise AssertionError("the process of the slow loop is gone")
    tasks = await _tasks(pid, mark)
    connection = await asyncpg.connect(address)
    try:
        connections = await connection.fetchval(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    finally:
        await connection.close()
    threads, handles, memory = _held(pid)
    looker_threads, looker_handles, looker_memory = _held(looker)
    others = handles + looker_handles - connections
    found = Count(tasks, threads, others, connections, memory, looker_threads, looker_memory)
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {found}\n")
    return found


async def _tasks(pid: int, mark: Path) -> int:
    mark.unlink(missing_ok=True)  # noqa: ASYNC240 - nothing but the market waits, for a moment
    os.kill(pid, signal.SIGUSR1)
    await _until(mark.exists, COUNT_S, "the tasks are counted")
    return int(mark.read_text("ascii"))  # noqa: ASYNC240


def _held(pid: int) -> tuple[int, int, float]:
    """Threads, file handles and memory of a process."""
    text = Path(f"/proc/{pid}/status").read_text("ascii")
    names = ("Threads", "RssAnon", "VmSwap")
    threads, memory, swapped = (int(text.partition(f"{name}:")[2].split()[0]) for name in names)
    return threads, len(os.listdir(f"/proc/{pid}/fd")), (memory + swapped) / 1024


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def _looker(pid: int) -> int | None:
    """The process that looks at the slow loop."""
    found: Sequence[str] = [
        child for task in Path(f"/proc/{pid}/task").glob("*/children") for child in task.read_text().split()
    ]
    return int(found[0]) if found else None


async def _until(condition: Callable[[], bool], longest_s: float, what: str) -> None:
    async with asyncio.timeout(longest_s):
        while not condition():  # noqa: ASYNC110 - what is waited for is another process
            await asyncio.sleep(0.01)
    if not condition():
        raise AssertionError(f"it never happened: {what}")


async def _rows(address: str, minute: float) -> int:
    """Bars of the run that were traded from a minute on."""
    async with await open_store(address, create=False) as store:
        run = await store.runs.find("latest")
        return sum([1 async for row in store.trading.rows(run.run_id) if row.label >= minute * 60e9])


async def _verified(address: str) -> str:
    """What `thinktwice verify` comes to."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "thinktwice", "verify", "latest", "--db", address,
        cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    shown, _ = await process.communicate()
    text = "" if process.returncode == 0 else f": {shown.decode().strip()[-300:]}"
    return f"{VERIFIED if process.returncode == 0 else 'verify failed'}{text}"
