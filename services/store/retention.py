"""How large a store grows, and how the long texts of old rows are taken from it, so that it stays small.

The rows stay with their hashes, and so does everything that came from outside: the chain has no gap, and a
replay makes the texts again and is held against the hashes. A seal names the checkpoint row, behind which no
text may be missing.
"""

from dataclasses import dataclass
from functools import partial

from sqlalchemy import Update, func, select, text, update

from services.journal.kinds import PRUNABLE_KINDS
from services.store.connections import AsyncConnection
from services.store.repository import Repository
from services.store.seals import put_seal
from services.store.tables import PRUNED_TEXT, journal, runs, seals

CHECKPOINT = "pruned"  # part of the seals of a run
ROWS_AT_ONCE = 20_000  # of the journal, in a transaction: a run that trades waits no longer for its own
PRUNABLE = journal.c.kind.in_(sorted(PRUNABLE_KINDS))

DAY_NS = 86_400 * 10**9
SIZE = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    "postgresql": "SELECT pg_database_size(current_database())",
}


@dataclass(frozen=True)
class Pruning:
    """Rows whose text was taken now, and the checkpoint row; None where no row is that old."""

    rows: int
    checkpoint: int | None


class RetentionRepository(Repository):
    """Prunes the journals of runs."""

    async def prune(self, run_id: str, before: int) -> Pruning:
        """Take the texts of rows that were known before a time, ns; the last row of the run keeps its own.

        What was killed in between is a pruning that goes on when it is asked for again.

        Raises:
            StoreError: the store cannot be written.
        """
        checkpoint = await self._run_write(lambda connection: _set_checkpoint(connection, run_id, before))
        if checkpoint is None:
            return Pruning(0, None)
        spans = range(0, checkpoint + 1, ROWS_AT_ONCE)
        texts = [_texts(run_id, first, min(first + ROWS_AT_ONCE - 1, checkpoint)) for first in spans]
        done = [await self._run_write(partial(_execute, statement=taken)) for taken in texts]
        return Pruning(sum(done), checkpoint)

    async def checkpoint(self, run_id: str) -> int | None:
        """Number of the checkpoint row of a run; None where nothing was pruned."""
        found = await self._run_read(lambda connection: _read_checkpoint(connection, run_id))
        return None if found is None else found[0]


@dataclass(frozen=True)
class Growth:
    """Of one run.

    Attributes:
        size: bytes of the whole store.
        per_day: bytes that a day of the run's bars adds, by its share of all journal rows; None where its
            journal lasts no time yet.
    """

    size: int
    per_day: int | None


class GrowthRepository(Repository):
    """Measures a store; it looks at the two ends of a journal and reads no row between."""

    async def of(self, run_id: str) -> Growth:
        """Of a run that is there, by its id.

        Raises:
            StoreError: the store cannot be read.
        """
        async with self._read() as connection:
            size = int(await connection.scalar(text(SIZE[self._url.dialect])) or 0)
            own = int(await connection.scalar(select(runs.c.events).where(runs.c.run_id == run_id)) or 0)
            every = int(await connection.scalar(select(func.sum(runs.c.events))) or 0)
            ends = (journal.c.run_id == run_id) & journal.c.seq.in_((0, own - 1))
            found = await connection.execute(select(journal.c.known_at).where(ends).order_by(journal.c.seq))
            times = found.scalars().all()
        lasts = times[-1] - times[0] if times else 0
        return Growth(size, round(size * own / every * DAY_NS / lasts) if lasts else None)


def _texts(run_id: str, first: int, last: int) -> Update:
    own = (journal.c.run_id == run_id) & journal.c.seq.between(first, last)
    return update(journal).where(own, PRUNABLE, ~PRUNED_TEXT).values(payload="", telemetry=None)


async def _execute(connection: AsyncConnection, statement: Update) -> int:
    return (await connection.execute(statement)).rowcount


async def pruning_problems(connection: AsyncConnection, run_id: str) -> list[str]:
    """Texts that are missing behind the checkpoint row, or a checkpoint row that is another."""
    found = await _read_checkpoint(connection, run_id)
    last, sealed = (-1, None) if found is None else found
    own = journal.c.run_id == run_id
    lost = select(func.min(journal.c.seq)).where(own, PRUNABLE, PRUNED_TEXT, journal.c.seq > last)
    seq = await connection.scalar(lost)
    problems = [] if seq is None else [f"row {seq} of the journal lost its text, and it was not pruned"]
    stands = await connection.scalar(select(journal.c.hash).where(own, journal.c.seq == last))
    return problems + (
        [f"row {last}, the checkpoint of what was pruned, is another"] if stands != sealed else []
    )


async def _set_checkpoint(connection: AsyncConnection, run_id: str, before: int) -> int | None:
    """Seal the last row before a time, unless a later one is sealed already."""
    events = select(runs.c.events).where(runs.c.run_id == run_id).scalar_subquery()
    old = (journal.c.run_id == run_id) & (journal.c.known_at < before) & (journal.c.seq < events - 1)
    query = select(journal.c.seq, journal.c.hash).where(old).order_by(journal.c.seq.desc()).limit(1)
    row = (await connection.execute(query)).one_or_none()
    sealed = await _read_checkpoint(connection, run_id)
    if row is not None and (sealed is None or sealed[0] < row.seq):
        await put_seal(connection, run_id, CHECKPOINT, row.hash, row.seq)
    return None if row is None else int(row.seq)


async def _read_checkpoint(connection: AsyncConnection, run_id: str) -> tuple[int, str] | None:
    query = select(seals.c.number, seals.c.hash).where(seals.c.run_id == run_id, seals.c.part == CHECKPOINT)
    row = (await connection.execute(query)).one_or_none()
    return None if row is None else (int(row.number), str(row.hash))
