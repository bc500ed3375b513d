"""What `thinktwice db check` tells of a store: how old its tables are, what it holds, what is broken."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from services.store import health, migrate
from services.store.failures import StoreDamaged, StoreMissing
from services.store.integrity import store_problems
from services.store.opening import alone
from services.store.revision import revision_state
from services.store.urls import StoreUrl, parse_url


@dataclass(frozen=True)
class Examination:
    """A store as it was found.

    Attributes:
        store: its address, without a password.
        state: behind, current, or damaged when it cannot be read to its end.
        revision: of its tables; None when it is damaged.
        pending: titles of the revisions that an upgrade would apply, oldest first.
        rows: by table.
        problems: what is broken.
    """

    store: str
    state: str
    revision: str | None
    pending: tuple[str, ...]
    rows: dict[str, int]
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the store can be worked with as it is."""
        return self.state == "current" and not self.problems


async def examine(address: str, *, full: bool) -> Examination:
    """Look at a store and change nothing.

    Args:
        address: the `--db` value.
        full: recompute every hash of every run, and hold what people read against seals and journal.

    Raises:
        StoreMissing: there is no store.
        StoreError: it cannot be opened, or is another program's or another version's.
    """
    url = parse_url(address)
    try:
        async with alone(url, snapshot=True) as connection:
            return await _examine_tables(connection, url, full=full)
    except StoreDamaged as error:
        return Examination(url.text, "damaged", None, (), {}, (str(error),))


async def _examine_tables(connection: AsyncConnection, url: StoreUrl, *, full: bool) -> Examination:
    found = await connection.run_sync(revision_state, url)
    if found.state == "empty":
        raise StoreMissing(f"store {url.text} is empty: `thinktwice db upgrade` makes its tables")
    problems = await health.file_problems(connection, url)
    problems += await health.head_problems(connection)
    problems += await health.chain_problems(connection) if full else []
    if full and found.state == "current":
        problems += await connection.run_sync(health.index_problems)
        problems += await store_problems(connection)
    rows = await health.row_counts(connection, found.tables)
    pending = migrate.pending(found.revision)
    return Examination(url.text, found.state, found.revision, pending, rows, tuple(problems))
