"""L5 with a snapshot: how long a process reads a savepoint of a long run before it goes on."""

import asyncio
import time
from dataclasses import replace

from schemas.settings import Settings
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store.checkpoints import Savepoint
from tests.soak.findings import Finding
from tests.soak.scale import scaled
from tests.worker.live.paper_runs import rows_of
from worker.feeds.sample_data.worlds import make_world
from worker.live.checkpoints import ResumePoint, SavepointWriter, restore
from worker.live.stepper import BarAxes, LiveStepper

BARS, EVERY, LIMIT_S = 60_000, 1_000, 2.0


def resumed() -> Finding:
    """One symbol, one-minute bars, default settings; a savepoint after every thousand rows."""
    series = make_world("random_walk", seed=1, bars=scaled(BARS), symbols=1, timeframe="1m")
    market = BarAxes(series.symbols, series.timeframe, series.label)
    sink = MemorySink()
    stepper = LiveStepper(
        Settings(), market, JournalWriter(sink), lock_step=True, ask=lambda evaluation: None
    )
    writer, points = SavepointWriter("this program"), list[Savepoint]()

    async def trade() -> None:
        for number, row in enumerate(rows_of(series), 1):
            await stepper.take(row)
            await stepper.journal.checkpoint()
            if number % EVERY == 0:
                point, whole = writer.write(stepper.session, ResumePoint(number, {}))
                writer.note_stored()
                points[:] = [point] if whole else [*points, point]

    asyncio.run(trade())
    events, last = stepper.journal.events, points[-1]
    added = tuple(savepoint.added[0] for savepoint in points)
    began = time.perf_counter()
    found = restore(replace(last, added=added), market, Settings(), JournalWriter(MemorySink()))
    took_s = time.perf_counter() - began
    equal = found.session.journal.head_hash == stepper.journal.head_hash
    million_s = took_s * 1e6 / events
    return Finding(
        "L5",
        f"going on from a savepoint of {found.resume_point.rows:,} one-minute bars of one symbol, read and "
        "wired",
        "a million events in under 2 s with a snapshot",
        f"{took_s:.2f} s behind {events:,} events and {len(points)} savepoints; a million would take "
        f"{million_s:.0f} s; {'the same head' if equal else 'another head'}",
        equal and million_s < LIMIT_S,
    )
