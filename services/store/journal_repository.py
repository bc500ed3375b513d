"""Journal rows of a run: appended in one transaction with the run's counters, read back in order."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import asdict

from sqlalchemy import select, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from schemas.errors import StoreError
from services.journal.chain import JournalRow
from services.store.engine import WRITES
from services.store.failures import store_errors
from services.store.file_watch import losses_of
from services.store.tables import journal, runs
from services.store.urls import StoreUrl

PAGE_ROWS = 5_000
ROW_COLUMNS = tuple(column for column in journal.c if column.name != "run_id")


class JournalRepository:
    """Reads and appends journal rows."""

    def __init__(self, engine: AsyncEngine, url: StoreUrl) -> None:
        self._engine = engine
        self._writer = engine.execution_options(**{WRITES: True})
        self._url = url

    async def append(self, run_id: str, rows: Sequence[JournalRow]) -> None:
        """Store rows after those that are there; rows that are stored already are left alone.

        Raises:
            StoreError: the rows leave a gap, differ from what is stored, or the run is closed or unknown.
        """
        if not rows:
            return
        with losses_of(run_id, rows[-1].seq), store_errors(self._url):
            async with self._writer.begin() as connection:
                await append_rows(connection, run_id, rows)

    async def rows(
        self,
        run_id: str,
        *,
        kinds: Collection[str] | None = None,
        until: int | None = None,
        after: int = -1,
    ) -> AsyncIterator[JournalRow]:
        """Rows in order of sequence.

        Args:
            run_id: the run.
            kinds: only these kinds; None for all.
            until: only rows with `known_at <= until`, ns.
            after: only rows with a greater sequence number.
        """
        query = (
            select(*ROW_COLUMNS).where(journal.c.run_id == run_id).order_by(journal.c.seq).limit(PAGE_ROWS)
        )
        if kinds is not None:
            query = query.where(journal.c.kind.in_(sorted(kinds)))
        if until is not None:
            query = query.where(journal.c.known_at <= until)
        last = after
        while True:
            with store_errors(self._url):
                async with self._engine.begin() as connection:
                    page = (await connection.execute(query.where(journal.c.seq > last))).all()
            for record in page:
                yield JournalRow(*record)
            if len(page) < PAGE_ROWS:
                return
            last = page[-1].seq

    async def hashes(self, run_id: str, first: int, last: int) -> list[str]:
        """Stored hashes of rows first..last, inclusive, ascending; fewer when the journal ends before."""
        query = (
            select(journal.c.hash)
            .where(journal.c.run_id == run_id, journal.c.seq.between(first, last))
            .order_by(journal.c.seq)
        )
        with store_errors(self._url):
            async with self._engine.begin() as connection:
                return list((await connection.execute(query)).scalars())


async def append_rows(connection: AsyncConnection, run_id: str, rows: Sequence[JournalRow]) -> None:
    """Store rows inside a transaction of the caller's; see `JournalRepository.append`."""
    new = await _not_stored(connection, run_id, rows)
    if new:
        await connection.execute(journal.insert(), [{"run_id": run_id, **asdict(row)} for row in new])
        counters = {"events": new[-1].seq + 1, "head_hash": new[-1].hash}
        await connection.execute(update(runs).where(runs.c.run_id == run_id).values(counters))


async def _not_stored(
    connection: AsyncConnection, run_id: str, rows: Sequence[JournalRow]
) -> Sequence[JournalRow]:
    query = select(runs.c.events, runs.c.head_hash, runs.c.status).where(runs.c.run_id == run_id)
    run = (await connection.execute(query.with_for_update())).one_or_none()
    if run is None or run.status != "running":
        state = "unknown" if run is None else run.status
        raise StoreError(f"run {run_id!r} is {state}: nothing can be appended to it")
    first = rows[0].seq
    if first > run.events:
        raise StoreError(
            f"run {run_id!r} holds {run.events} rows: row {first} would leave a gap; was an older copy of the "
            "store put in its place?"
        )
    if first == run.events:
        if rows[0].prev_hash != run.head_hash:
            raise StoreError(f"run {run_id!r}: row {first} does not follow the stored head")
        return rows
    known = rows[: run.events - first]
    stored = await connection.scalar(
        select(journal.c.hash).where(journal.c.run_id == run_id, journal.c.seq == known[-1].seq)
    )
    if stored != known[-1].hash:
        raise StoreError(
            f"run {run_id!r}: row {known[-1].seq} is stored with other content; is another writer active?"
        )
    return rows[len(known) :]
