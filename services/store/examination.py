"""What `thinktwice db check` tells of a store: how old its tables are, what it holds, what is broken."""

from dataclasses import dataclass

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.errors import StoreError
from services.store import health, migrate
from services.store.failures import StoreDamaged, StoreMissing
from services.store.integrity import list_unsealed, store_problems
from services.store.opening import alone
from services.store.revision import RevisionState, revision_state
from services.store.urls import StoreUrl, parse_url


@dataclass(frozen=True)
class Examination:
    """A store as it was found.

    Attributes:
        store: its address, without a password.
        state: unmarked, behind, current, ahead, or damaged when it cannot be read to its end.
        revision: of its tables; None when they are those of no revision.
        pending: titles of the revisions that an upgrade would apply, oldest first.
        rows: by table.
        problems: what is broken.
        uncovered: runs whose documents and bars are not sealed; told by a full examination.
    """

    store: str
    state: str
    revision: str | None
    pending: tuple[str, ...]
    rows: dict[str, int]
    problems: tuple[str, ...]
    uncovered: tuple[str, ...] = ()

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
        StoreError: it cannot be opened, or is another program's.
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
    revision, problems = await connection.run_sync(_age, url, found)
    problems += await health.file_problems(connection, url)
    problems += await health.head_problems(connection)
    problems += await health.chain_problems(connection) if full else []
    problems += await store_problems(connection, found.tables) if full else []
    rows = await health.row_counts(connection, found.tables)
    pending = () if revision is None else tuple(migrate.title(later) for later in migrate.pending(revision))
    uncovered = await list_unsealed(connection, found.tables) if full else []
    return Examination(url.text, found.state, revision, pending, rows, tuple(problems), tuple(uncovered))


def _age(connection: Connection, url: StoreUrl, found: RevisionState) -> tuple[str | None, list[str]]:
    try:
        return migrate.revision_of(connection, url, found), []
    except StoreError as error:
        return None, [str(error)]
