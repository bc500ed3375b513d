"""F5: the transaction is committed and the client sees a timeout, or is cancelled anywhere on the way."""

import asyncio
import random
import tempfile

from services.feeds.port import BarRow
from services.journal.chain import GENESIS_HASH, JournalRow, link
from services.store import Store, open_store
from services.store.repository import Lease
from tests.services.store.stores import new_run
from tests.soak.findings import Finding
from tests.soak.killed_processes import databases
from tests.soak.scale import scaled
from trading_core.live.growing_bars import Bar

LONGEST_S = 0.012
BAR = {"X": Bar(1.0, 1.0, 1.0, 1.0, 1.0)}


def order_row(seq: int, prev_hash: str) -> JournalRow:
    """A row with an order of its own."""
    header = {"seq": seq, "ts_event": seq, "known_at": seq, "kind": "order_accepted", "symbol": "X"}
    payload = f'{{"order_id":"o{seq:06d}"}}'
    digest = link(prev_hash, **header, payload=payload)  # type: ignore[arg-type]
    return JournalRow(**header, payload=payload, telemetry=None, prev_hash=prev_hash, hash=digest)  # type: ignore[arg-type]


async def tried(store: Store, tries: int) -> tuple[int, int, list[str]]:
    """Commits under random deadlines, each repeated until it is answered.

    Returns:
        Answers that were lost, how many of those had been committed, and what did not hold.
    """
    rng, run_id = random.Random(1), (await store.runs.create(new_run())).run_id
    lease = await store.leases.take(f"trading/{run_id}", "me", 3_600_000)
    assert lease is not None
    lost = committed = 0
    head = GENESIS_HASH
    for seq in range(tries):
        row = order_row(seq, head)
        head = row.hash
        longest_s = LONGEST_S
        while not await _answered(store, lease, run_id, seq, row, rng.uniform(0.0, longest_s)):
            longest_s *= 1.5  # a slow machine gets through as well
            lost += 1
            committed += (await store.runs.find(run_id)).events > seq
    record = await store.runs.find(run_id)
    rows = [row async for row in store.journal.rows(run_id)]
    bars = [row async for row in store.trading.rows(run_id)]
    orders = await store.trading.list_unacknowledged(run_id)
    counted = (record.events, len(rows), len(bars), len(orders), record.head_hash == head)
    return lost, committed, [] if counted == (tries, tries, tries, tries, True) else [f"{counted} of {tries}"]


async def _answered(
    store: Store, lease: Lease, run_id: str, seq: int, row: JournalRow, deadline_s: float
) -> bool:
    bars = [(seq, BarRow(seq + 1, BAR))]
    try:
        async with asyncio.timeout(deadline_s):
            if seq % 2:
                await store.trading.commit(lease, run_id, bars, [row])
                return True
            await store.trading.commit(lease, run_id, bars, [])
            await store.journal.append(run_id, [row])
            await store.trading.commit(lease, run_id, [], [row])
    except TimeoutError:
        return False
    return True


def check() -> list[Finding]:
    """On both databases."""
    with tempfile.TemporaryDirectory() as folder, databases() as made:
        addresses = {"SQLite": f"sqlite:///{folder}/lost.db", "PostgreSQL": made.take()}
        return [_finding(name, address) for name, address in addresses.items()]


def _finding(name: str, address: str) -> Finding:
    tries = scaled(1_000)

    async def scenario() -> tuple[int, int, list[str]]:
        async with await open_store(address, create=True) as store:
            return await tried(store, tries)

    lost, committed, breaks = asyncio.run(scenario())
    return Finding(
        "F5",
        f"{name}: {tries:,} commits cut off at random moments, repeated until answered",
        "no effect twice, none missing",
        f"{lost:,} answers lost, {committed:,} of them after the commit; {len(breaks)} broken",
        not breaks and committed > 0,
        tuple(breaks),
    )
