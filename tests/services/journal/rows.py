"""Journals for tests: small chains written through the real writer."""

import asyncio
from collections.abc import AsyncIterator, Iterable

from services.journal.chain import JournalRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter

KINDS = ("genesis", "policy_event", "order_accepted", "entry_filled")


def written_rows(count: int, *, seed: int = 0, flush_rows: int = 3) -> list[JournalRow]:
    """`count` rows of several kinds, symbols and times; the same for the same arguments."""

    async def write() -> list[JournalRow]:
        sink = MemorySink()
        writer = JournalWriter(sink, flush_rows)
        for n in range(count):
            writer.append(
                KINDS[n % len(KINDS)],
                ts_event=n * 10,
                known_at=n * 10 + 5,
                symbol=None if n % 3 == 0 else "AAPL",
                payload={"n": n, "seed": seed, "price": 100 + n / 3},
                telemetry={"latency_ms": n / 7} if n % 2 else None,
            )
            await writer.checkpoint()
        await writer.flush()
        return sink.rows

    return asyncio.run(write())


async def stream(rows: Iterable[JournalRow]) -> AsyncIterator[JournalRow]:
    """Rows as a store would give them."""
    for row in rows:
        yield row
