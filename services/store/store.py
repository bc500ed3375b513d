"""Open a store: check what lies at the address before anything is read from it or written to it."""

from types import TracebackType
from typing import Self

from sqlalchemy import Connection, inspect, text
from sqlalchemy.ext.asyncio import AsyncEngine

from schemas.errors import StoreError
from services.store.claims import ClaimRepository
from services.store.engine import WRITES, build_engine
from services.store.failures import StoreMissing, store_errors
from services.store.journal_repository import JournalRepository
from services.store.leases import LeaseRepository
from services.store.reports import ReportRepository
from services.store.run_repository import RunRepository
from services.store.tables import CORE, metadata
from services.store.urls import StoreUrl, parse_url

SCHEMA_LOCK = 7_246_109_001


class Store:
    """An open store with its repositories; close it, or use it as an async context manager.

    `has_worker_tables` is false for a store that no worker has opened yet: it holds runs and no reports.
    """

    def __init__(self, engine: AsyncEngine, url: StoreUrl, *, has_worker_tables: bool = True) -> None:
        self._engine = engine
        self.url = url.text
        self.has_worker_tables = has_worker_tables
        self.runs = RunRepository(engine, url)
        self.journal = JournalRepository(engine, url)
        self.leases = LeaseRepository(engine, url)
        self.claims = ClaimRepository(engine, url)
        self.reports = ReportRepository(engine, url)

    async def close(self) -> None:
        """Release every connection."""
        await self._engine.dispose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def open_store(address: str, *, create: bool, timeout_s: float = 5.0) -> Store:
    """The store at `sqlite:///PATH` or `postgresql://...`.

    Args:
        address: the `--db` value.
        create: make the file and the tables when they are missing; false opens for reading what is there.
        timeout_s: longest wait for a lock or a connection.

    Raises:
        ConfigError: the address is not one.
        StoreMissing: nothing is there and `create` is false.
        StoreError: locked, damaged, foreign, unreachable or not writable.
    """
    url = parse_url(address)
    _check_file(url, create=create)
    engine = build_engine(url, create=create, timeout_s=timeout_s)
    try:
        with store_errors(url):
            async with engine.execution_options(**{WRITES: create}).begin() as connection:
                if create and url.dialect == "postgresql":
                    await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})
                complete = await connection.run_sync(_check_tables, url, create)
    except BaseException:
        await engine.dispose()
        raise
    return Store(engine, url, has_worker_tables=complete)


def _check_file(url: StoreUrl, *, create: bool) -> None:
    if url.path is None:
        return
    if url.path.is_dir():
        raise StoreError(
            f"store {url.text} is a directory: name a file in it, for example {url.text}/thinktwice.db"
        )
    if url.path.exists():
        return
    if not create:
        raise StoreMissing(
            f"there is no store at {url.text}: `thinktwice backtest` makes one, or give another --db"
        )
    if not url.path.parent.is_dir():
        raise StoreError(f"the directory of store {url.text} does not exist: create it, or give another --db")


def _check_tables(connection: Connection, url: StoreUrl, create: bool) -> bool:
    """Whether every table is there; makes the missing ones, of a store that is ours or empty, on `create`."""
    inspector = inspect(connection)
    present = set(inspector.get_table_names())
    ours = set(metadata.tables)
    if present >= CORE:
        _check_columns(connection, url, ours & present)
    elif ours & present or (present and url.dialect == "sqlite"):
        others = ", ".join(sorted(present)[:3])
        raise StoreError(f"store {url.text} holds other tables ({others}), not ours: give another --db")
    elif not create:
        raise StoreMissing(f"store {url.text} is empty: `thinktwice backtest` fills it, or give another --db")
    if create and not ours <= present:
        metadata.create_all(connection)
    return create or ours <= present


def _check_columns(connection: Connection, url: StoreUrl, names: set[str]) -> None:
    inspector = inspect(connection)
    for name in sorted(names):
        columns = {column["name"] for column in inspector.get_columns(name)}
        if columns != set(metadata.tables[name].c.keys()):
            raise StoreError(
                f"store {url.text} was made by another version (table {name!r}): give another --db"
            )
