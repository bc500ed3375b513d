"""L6: a report over ten thousand episodes, made for a stepper that goes on taking its bars."""

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from schemas.settings import Settings
from services.feeds.port import BarRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.ports import Clock
from services.store import open_store
from tests.soak.findings import Finding, quantile
from tests.soak.scale import scaled
from tests.worker.live.paper_runs import rows_of
from tests.worker.slow_worker.batches import looking_job, prepared_batch
from trading_core.clock import SimulatedClock
from worker.feeds.sample_data.worlds import make_world
from worker.live import reports as hearing
from worker.live.stepper import BarAxes, LiveStepper
from worker.slow_worker.subprocess import SlowLoopSubprocess

LIMIT_S, LIMIT_MB, WORSE = 30.0, 500, 0.10
REPORTS = 3  # one alone is too short for a p99 of ticks
SYMBOLS, WARM, ROWS, APART_S = 10, 300, 6_000, 0.02
CALM_ROWS = 400
HEARING_MS = 250.0


class Tick(NamedTuple):
    """From when a row was due to its end, and what the processor had to do for it, in ms."""

    took_ms: float
    work_ms: float


class PacedDesk:
    """A stepper that gets a row every few milliseconds; a tick lasts from when it was due to its end."""

    def __init__(self) -> None:
        series = make_world("random_walk", seed=1, bars=WARM + ROWS, symbols=SYMBOLS, timeframe="1m")
        market = BarAxes(series.symbols, series.timeframe, series.label)
        journal = JournalWriter(MemorySink())
        self.stepper = LiveStepper(Settings(), market, journal, lock_step=False, ask=lambda evaluation: None)
        self._rows: Iterator[BarRow] = iter(rows_of(series))

    async def warm(self) -> None:
        """The rows before the ones that count."""
        for _ in range(WARM):
            await self.stepper.take(next(self._rows))

    async def ticks_ms(self, until: "asyncio.Future[Any] | None" = None) -> "list[Tick]":
        """Ticks while something goes on, or so many where nothing does."""
        took_ms: list[Tick] = []
        due = time.perf_counter()
        while len(took_ms) < CALM_ROWS if until is None else not until.done():
            due += APART_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            before = time.thread_time()
            await self.stepper.take(next(self._rows))
            took_ms.append(Tick((time.perf_counter() - due) * 1e3, (time.thread_time() - before) * 1e3))
        return took_ms


@dataclass(frozen=True)
class Measured:
    """What a report came to, and the ticks before and after, while it was made, and while it was heard."""

    shown: list[tuple[str, dict[str, Any]]]
    took_s: list[float]
    peak_mb: float
    calm: list[Tick]
    meanwhile: list[Tick]
    hearing: list[Tick]


def check() -> list[Finding]:
    """On SQLite, the process started for this one report."""
    episodes = scaled(10_000)
    with tempfile.TemporaryDirectory() as folder:
        seen = asyncio.run(_measured(f"sqlite:///{folder}/batch.db", episodes))
    return [_making(episodes, seen), _hearing(episodes, seen)]


async def _measured(address: str, episodes: int) -> Measured:
    paced, seen = PacedDesk(), Measured([], [], 0.0, [], [], [])
    await paced.warm()
    for _ in range(REPORTS):
        run_id, slot = await prepared_batch(address, episodes)
        seen = await _one(paced, seen, address, run_id, SimulatedClock(slot))
    return seen


async def _one(paced: PacedDesk, seen: Measured, address: str, run_id: str, clock: Clock) -> Measured:
    shown: list[tuple[str, dict[str, Any]]] = []
    looks = SlowLoopSubprocess(
        looking_job(address, run_id), clock, lambda kind, detail: shown.append((kind, detail))
    )
    calm = await paced.ticks_ms()
    began = time.perf_counter()
    meanwhile, looked = await _beside(paced, looks.look())
    took_s = time.perf_counter() - began
    peak = _peak_mb(looks.pid)
    await looks.close()
    heard, _ = await _beside(paced, _heard(address, run_id, paced))
    return Measured(
        [*seen.shown, *shown, *([] if looked else [("not looked", {})])],
        [*seen.took_s, took_s],
        max(seen.peak_mb, peak),
        seen.calm + calm,
        seen.meanwhile + meanwhile,
        seen.hearing + heard,
    )


async def _beside(paced: PacedDesk, work: Awaitable[Any]) -> tuple[list[Tick], Any]:
    doing = asyncio.ensure_future(work)
    return await paced.ticks_ms(doing), await doing


async def _heard(address: str, run_id: str, paced: PacedDesk) -> None:
    """The report's way into the run, as the process that trades goes it."""
    session = paced.stepper.session
    async with await open_store(address, create=False) as store:
        taken = await store.reports.take(run_id, "trader", 60_000)
        if taken is None:
            return
        hearing.apply_report(session, await hearing.judge(session, taken.request, taken.report, taken))


def _peak_mb(pid: int | None) -> float:
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _making(episodes: int, seen: Measured) -> Finding:
    written = [detail["episodes"] for kind, detail in seen.shown if kind == "report_written"]
    breaks = [] if written == [episodes] * REPORTS else [f"reports over {written}: {seen.shown}"]
    calm, busy = (quantile([tick.took_ms for tick in part], 0.99) for part in (seen.calm, seen.meanwhile))
    work, working = (quantile([tick.work_ms for tick in part], 0.99) for part in (seen.calm, seen.meanwhile))
    slowest_s = max(seen.took_s)
    return Finding(
        "L6",
        f"{REPORTS} reports over {episodes:,} episodes each, in a process of their own, started for it; "
        f"a stepper of {SYMBOLS} symbols takes a row every {1e3 * APART_S:.0f} ms",
        f"under {LIMIT_S:.0f} s, under {LIMIT_MB} MB, tick p99 not worse by more than {WORSE:.0%} meanwhile",
        f"{slowest_s:.1f} s with the start of the process and the reading, {seen.peak_mb:.0f} MB; tick p99 "
        f"{calm:.2f} ms alone ({work:.2f} of them work) and {busy:.2f} ms meanwhile ({working:.2f}); longest "
        f"{max(tick.took_ms for tick in seen.meanwhile):.1f} ms of {len(seen.meanwhile):,}",
        not breaks and slowest_s < LIMIT_S and seen.peak_mb < LIMIT_MB and busy <= (1 + WORSE) * calm,
        tuple(breaks),
    )


def _hearing(episodes: int, seen: Measured) -> Finding:
    longest = max(tick.took_ms for tick in seen.hearing)
    return Finding(
        "L6",
        f"the stepper applies these reports: read from the inbox, judged, journalled with {episodes:,} ids",
        f"the longest tick meanwhile under {HEARING_MS:.0f} ms",
        f"longest tick {longest:.0f} ms of {len(seen.hearing)}",
        longest < HEARING_MS,
    )
