"""L1, L3, L4, L5: the tick path with many symbols, the journal under load, and reading it back."""

import asyncio
import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np

from schemas.settings import Settings
from services.journal.chain import GENESIS_HASH, JournalRow, check_chain
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store import Store, open_store
from tests.postgres.binaries import find
from tests.postgres.server import troubled
from tests.services.store.stores import new_run
from tests.soak.findings import Finding, quantile
from tests.soak.going_on import resumed
from tests.soak.killed_processes import databases
from tests.soak.lost_answers import order_row
from tests.soak.scale import scaled
from tests.worker.live.paper_runs import rows_of
from trading_core.bars import COLUMNS
from worker.feeds.sample_data.worlds import make_world
from worker.live.stepper import BarAxes, LiveStepper
from worker.runs.run_result import tick_validation

BATCH = 200
TIMES = 5  # a hundred symbols, five times
MB = 1 << 20


def ticks() -> list[Finding]:
    """L1: 500 symbols, one bar each; nothing but the stepper, which has no store."""
    symbols, warm, measured = 500, 100, 200
    part = make_world("random_walk", seed=1, bars=warm + measured, symbols=symbols // TIMES, timeframe="1m")
    names = tuple(f"W{number:03d}" for number in range(symbols))
    wide: dict[str, Any] = {name: np.tile(getattr(part, name), (1, TIMES)) for name in (*COLUMNS, "present")}
    series = replace(part, symbols=names, **wide)
    market = BarAxes(series.symbols, series.timeframe, series.label)
    stepper = LiveStepper(
        Settings(), market, JournalWriter(MemorySink()), lock_step=False, ask=lambda evaluation: None
    )
    took_ms: list[float] = []

    async def drive() -> None:
        for row in rows_of(series):
            began = time.perf_counter()
            await stepper.take(row)
            took_ms.append((time.perf_counter() - began) * 1e3)

    asyncio.run(drive())
    seen = tick_validation(stepper.session)
    reads = seen.llm_calls + seen.memory_reads + seen.policy_writes
    row_ms = quantile(took_ms[warm:], 0.99)
    return [
        Finding(
            "L1",
            f"{symbols} symbols, one bar each, {measured} rows; evaluations are opened and wait",
            "p99 under 1 ms a symbol; 0 model calls, memory reads and database reads",
            f"p99 {1e3 * row_ms / symbols:.1f} µs a symbol ({row_ms:.1f} ms a row), p50 "
            f"{1e3 * quantile(took_ms[warm:], 0.5) / symbols:.1f} µs; {reads} reads by the guard's count, "
            "and there is no store to read",
            row_ms / symbols < 1.0 and reads == 0,
        )
    ]


def journal() -> list[Finding]:
    """L3 and L5 on both databases, and L5 with a savepoint."""
    with tempfile.TemporaryDirectory() as folder, databases() as made:
        found = _journal("SQLite", f"sqlite:///{folder}/load.db", 3_000)
        return [*found, *_journal("PostgreSQL", made.take(), 5_000), resumed()]


def _journal(name: str, address: str, least: int) -> list[Finding]:
    async def scenario() -> tuple[int, float, float, float, bool]:
        async with await open_store(address, create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            written, took_s, grown = await _written(store, run_id, 60.0 * scaled(100) / 100)
            record = await store.runs.find(run_id)
            began = time.perf_counter()
            rows: AsyncIterator[JournalRow] = store.journal.rows(run_id)
            report = await check_chain(rows, events=record.events, head_hash=record.head_hash)
            return written, took_s, grown, time.perf_counter() - began, report.ok

    written, took_s, grown, read_s, whole = asyncio.run(scenario())
    per_s, read = written / took_s, written / read_s
    million = 1e6 / read
    return [
        Finding(
            "L3",
            f"{name}: journal rows in batches of {BATCH} for {took_s:.0f} s",
            f"at least {least:,} rows/s, memory growth under 20 MB",
            f"{per_s:,.0f} rows/s ({written:,} rows, chain made and hashed meanwhile), {grown:.1f} MB more",
            per_s >= least and grown < 20,
        ),
        Finding(
            "L5",
            f"{name}: read back and checked row by row",
            "at least 30,000 events/s, a million in under 40 s without a snapshot",
            f"{read:,.0f} events/s over {written:,} events, a million would take {million:.0f} s; chain "
            f"{'whole' if whole else 'broken'}",
            whole and read >= 30_000 and million < 40,
        ),
    ]


async def _written(store: Store, run_id: str, seconds: float) -> tuple[int, float, float]:
    """Rows, seconds and MB of growth after the first second."""
    head, seq, base = GENESIS_HASH, 0, 0
    began = time.perf_counter()
    while (passed := time.perf_counter() - began) < seconds:
        rows = []
        for _ in range(BATCH):
            rows.append(order_row(seq, head))
            head, seq = rows[-1].hash, seq + 1
        await store.journal.append(run_id, rows)
        if not base and passed > 1.0:
            base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - (base or 0)
    return seq, time.perf_counter() - began, grown * 1_024 / MB if base else 0.0


def orders() -> list[Finding]:
    """L4: one durable order at a time, fifty a second."""
    count, apart_s = scaled(1_000), 0.02

    async def scenario(address: str) -> list[float]:
        took_ms, head = [], GENESIS_HASH
        async with await open_store(address, create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            lease = await store.leases.take(f"trading/{run_id}", "me", 3_600_000)
            assert lease is not None
            began = time.perf_counter()
            for seq in range(count):
                await asyncio.sleep(max(0.0, began + seq * apart_s - time.perf_counter()))
                row = order_row(seq, head)
                head = row.hash
                before = time.perf_counter()
                await store.trading.commit(lease, run_id, [], [row])
                took_ms.append((time.perf_counter() - before) * 1e3)
        return took_ms

    with troubled(find(os.environ)) as server:
        took_ms = asyncio.run(scenario(server.url()))
    p95 = quantile(took_ms, 0.95)
    return [
        Finding(
            "L4",
            f"PostgreSQL: {count:,} orders, one transaction each, 50 a second (synchronous_commit, no fsync)",
            "p95 under 30 ms",
            f"p50 {quantile(took_ms, 0.5):.1f} ms, p95 {p95:.1f} ms, p99 {quantile(took_ms, 0.99):.1f} ms",
            p95 < 30,
        )
    ]
