"""How large a store is, and what a run adds to it."""

from dataclasses import dataclass

from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from services.store.repository import Repository
from services.store.tables import journal, runs

DAY_NS = 86_400 * 10**9
SIZE = {
    "sqlite": "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
    "postgresql": "SELECT pg_database_size(current_database())",
}


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
            first, last = (
                await _read_time(connection, run_id, 0),
                await _read_time(connection, run_id, own - 1),
            )
        per_day = None if last == first else round(size * own / every * DAY_NS / (last - first))
        return Growth(size, per_day)


async def _read_time(connection: AsyncConnection, run_id: str, seq: int) -> int:
    query = select(journal.c.known_at).where(journal.c.run_id == run_id, journal.c.seq == seq)
    return int(await connection.scalar(query) or 0)
