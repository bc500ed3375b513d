"""F13: thirty simulated days with all faults, fifty seeds, on two processes."""

import gc
import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests.soak.findings import Finding
from tests.soak.scale import scaled
from tests.worker.live.simulated import Played, played

DAYS, SEEDS, KILLS = 30, 50, 2
AGAIN = (0, 1, 2)  # a second time, in another process
REPLAYED_EVERY = 10
STORE_SEED, STORE_DAYS = 2, 1
LIMIT_S = 300.0


class Shown(NamedTuple):
    """A seed with the processor time it took."""

    one: Played
    cpu_s: float


def live(seed: int) -> Shown:
    """One seed in a process of the pool."""
    gc.collect()  # the seed before this one
    gc.set_threshold(100_000)  # a month of small objects; cycles are few
    began = time.process_time()
    one = played(seed, DAYS, KILLS, replay=seed % REPLAYED_EVERY == 0)
    return Shown(one, time.process_time() - began)


def stored_live(_number: int) -> Played:
    """The seed that trades on a real SQLite store."""
    with tempfile.TemporaryDirectory() as folder:
        return played(STORE_SEED, STORE_DAYS, KILLS, replay=True, folder=Path(folder))


def check() -> list[Finding]:
    """Both halves."""
    cores = min(2, os.cpu_count() or 1)
    with ProcessPoolExecutor(cores, mp_context=get_context("spawn")) as pool:
        began = time.perf_counter()
        shown = list(pool.map(live, range(scaled(SEEDS))))
        took_s = time.perf_counter() - began
        again = list(pool.map(live, AGAIN))
        real = list(pool.map(stored_live, range(2)))
    return [_months(shown, again, took_s, cores), _store(real)]


def _months(shown: list[Shown], again: list[Shown], took_s: float, cores: int) -> Finding:
    breaks = [f"seed {entry.seed}: {text}" for entry, _ in shown for text in entry.breaks]
    breaks += [
        f"seed {second.seed} had another digest the second time"
        for (first, _), (second, _) in zip([shown[seed] for seed in AGAIN], again, strict=True)
        if first.digest != second.digest
    ]
    bars, cpu_s = sum(entry.bars for entry, _ in shown), sum(cpu for _, cpu in shown)
    happened = {
        "kills": sum(entry.kills for entry, _ in shown),
        "processes that went on from a savepoint": sum(entry.resumed for entry, _ in shown),
        "store outages": sum(entry.outages for entry, _ in shown),
        "commits whose answer was lost": sum(entry.unknown for entry, _ in shown),
        "feed anomalies": sum(entry.anomalies for entry, _ in shown),
        "model calls": sum(entry.requested.total() for entry, _ in shown),
        "evaluations": sum(entry.evaluations for entry, _ in shown),
        "orders": sum(entry.orders for entry, _ in shown),
    }
    counted = ", ".join(f"{count:,} {name}" for name, count in happened.items())
    return Finding(
        "F13",
        f"{DAYS} simulated days of one-minute bars, {len(shown)} seeds, all faults, "
        f"{cores} processes, store in memory",
        f"under {LIMIT_S:.0f} s, same digest for the same seed, 0 invariants broken",
        f"{took_s:.0f} s ({cpu_s:.0f} s of processor time, {bars / took_s:,.0f} bars/s); "
        f"{len(AGAIN)} seeds again with the same digest; {len(breaks)} broken; {counted}",
        not breaks and took_s < LIMIT_S,
        tuple(breaks),
    )


def _store(real: list[Played]) -> Finding:
    breaks = [text for entry in real for text in entry.breaks]
    if real[0].digest != real[1].digest:
        breaks.append("the second time had another digest")
    hours = 24 * STORE_DAYS
    return Finding(
        "F13",
        f"{hours} simulated hours of one-minute bars on a real SQLite store, twice, and replayed",
        "same digest, 0 invariants broken",
        f"{len(breaks)} broken; {real[0].kills} kills, {real[0].outages} store outages, "
        f"{real[0].orders} orders",
        not breaks,
        tuple(breaks),
    )
