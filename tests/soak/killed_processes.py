"""F1: `thinktwice paper` killed by SIGKILL at random bars, on SQLite and on PostgreSQL."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.postgres.binaries import SERVER, find
from tests.postgres.fixtures import Databases
from tests.postgres.server import running
from tests.soak.findings import Finding, quantile
from tests.soak.scale import scaled
from tests.worker.live.real_paper import job, killing, left, undisturbed, written

RECOVERY_S = 1.0


@contextmanager
def databases() -> Iterator[Databases]:
    """Empty databases on the named server, else on our own."""
    if SERVER in os.environ:
        yield Databases(os.environ[SERVER])
        return
    with running(find(os.environ)) as server:
        yield Databases(server.url())


def check() -> list[Finding]:
    """Both databases against one backtest over the same bars."""
    bars, kills = scaled(20_000), scaled(200)
    with tempfile.TemporaryDirectory() as folder, databases() as made:
        data = written(Path(folder), bars)
        addresses = {"SQLite": f"sqlite:///{folder}/paper.db", "PostgreSQL": made.take()}
        jobs = [
            job(data, address, kills=kills, seed=seed, gap_rows=max(1, bars // (2 * kills)))
            for seed, address in enumerate(addresses.values())
        ]
        calm, *disturbed = killing(undisturbed(data), *jobs)
        head = calm["document"]["journal"]["head_hash"]
        return [
            _finding(name, address, head, bars, shown)
            for (name, address), shown in zip(addresses.items(), disturbed, strict=True)
        ]


def _finding(name: str, address: str, head: str, bars: int, payload: dict[str, Any]) -> Finding:
    found = left(address)
    breaks = []
    if payload["code"] != 0:
        breaks.append(f"the last process ended with {payload['code']}: {payload['said'][-300:]}")
    if found.head != head:
        breaks.append("the head differs from the undisturbed run's")
    if found.lost or found.extra or found.doubled:
        breaks.append(f"{found.lost} orders lost, {found.extra} strange, {found.doubled} doubled")
    came = [item for item in payload["starts"] if item["recovered_s"] is not None]
    times, starts = [item["recovered_s"] for item in came], [item["started_s"] for item in came]
    slowest = quantile(times, 0.99) if times else 0.0
    return Finding(
        "F1",
        f"{name}: SIGKILL at {payload['kills']} random bars of {bars:,}",
        f"head of the undisturbed run, 0 orders lost, 0 doubled; recovery p99 under {RECOVERY_S:.0f} s",
        f"{'same head' if found.head == head else 'another head'}, {found.orders} orders, {found.lost} lost, "
        f"{found.doubled + found.extra} doubled, {found.sent_again} sent twice and known by their id; "
        f"recovery from the lease on p50 {quantile(times, 0.5):.2f} s, p99 {slowest:.2f} s; from the fork of "
        f"the process p50 {quantile(starts, 0.5):.2f} s, p99 {quantile(starts, 0.99):.2f} s; at most "
        f"{max(item['played'] for item in came):,} of {max(item['rows'] for item in came):,} rows played "
        "again",
        not breaks and slowest < RECOVERY_S,
        tuple(breaks),
    )
