"""One transaction at a checked address: what opening, upgrading, checking and copying a store begin with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.errors import StoreError
from services.store.engine import WRITES, StoreEngine, build_engine
from services.store.failures import StoreMissing, store_errors
from services.store.urls import StoreUrl

SCHEMA_LOCK = 7_246_109_001
LONG_S = 60.0


@asynccontextmanager
async def transaction(
    engine: StoreEngine, url: StoreUrl, *, writes: bool = False, snapshot: bool = False
) -> AsyncIterator[AsyncConnection]:
    """A connection in a transaction.

    Args:
        engine: of the address.
        url: the address.
        writes: no other process makes or changes tables meanwhile.
        snapshot: every statement sees the store as it was at the first.
    """
    options: dict[str, Any] = {WRITES: writes}
    if snapshot and url.dialect == "postgresql":
        options["isolation_level"] = "REPEATABLE READ"
    with store_errors(url):
        async with engine.execution_options(**options).begin() as connection:
            if writes and url.dialect == "postgresql":
                await connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})
            yield connection


@asynccontextmanager
async def alone(
    url: StoreUrl, *, create: bool = False, writes: bool = False, snapshot: bool = False
) -> AsyncIterator[AsyncConnection]:
    """A transaction on an engine of its own, with time for work on every row.

    Raises:
        StoreMissing: there is no SQLite file and `create` is false.
        StoreError: the store cannot be opened.
    """
    check_file(url, create=create)
    engine = build_engine(url, create=create, timeout_s=LONG_S)
    try:
        async with transaction(engine, url, writes=writes, snapshot=snapshot) as connection:
            yield connection
    finally:
        await engine.dispose()


def check_file(url: StoreUrl, *, create: bool) -> None:
    """Refuse an address that cannot hold a SQLite store, before anything is made.

    Raises:
        StoreMissing: there is no file and `create` is false.
        StoreError: it is a directory, or lies in none.
    """
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
