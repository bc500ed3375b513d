"""The engine and its transactions: one writer at a time on SQLite, bounded waits on PostgreSQL."""

import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, ExceptionContext, create_engine, event, text

from schemas.errors import InvariantViolation, StoreError
from services.store.connections import AsyncConnection, AsyncEngine
from services.store.failures import READ_ONLY, StoreMissing, store_errors
from services.store.identity import Identity, StoreFile
from services.store.packed_text import bring_unpack
from services.store.sqlite_engine import Found, SqliteEngine, Work
from services.store.urls import StoreUrl

WRITES = "thinktwice_writes"
PAGE_BYTES = 16_384  # of a new file: long rows leave less of a page empty
SCHEMA_LOCK = 7_246_109_001
LONG_S = 60.0  # of a transaction that reads or writes every row
LOG_BYTES = 4 << 20  # the log is written back into the file when it is that long

StoreEngine = AsyncEngine | SqliteEngine


async def run_transaction(engine: StoreEngine, work: Work[Found]) -> Found:
    """What `work` returns of a transaction, which is committed behind it.

    Args:
        engine: with the options of the transaction.
        work: waits for nothing but statements of the connection that it is given.
    """
    if isinstance(engine, SqliteEngine):
        return await engine.run(work)
    async with engine.begin() as connection:
        return await work(connection)


def build_engine(
    url: StoreUrl,
    *,
    create: bool,
    timeout_s: float,
    command_s: float | None = None,
    read_only: bool = False,
) -> StoreEngine:
    """Engine of a store; nothing is opened yet.

    Args:
        url: the checked address.
        create: whether a missing SQLite file may be made.
        timeout_s: longest wait for a lock (SQLite) or for a connection (PostgreSQL).
        command_s: longest wait for the answer to one command (PostgreSQL); None: twelve times `timeout_s`.
        read_only: the database refuses every statement that writes.
    """
    at_rest = not create and url.is_at_rest
    address = url.engine_url(create=create, read_only=read_only, at_rest=at_rest)
    if url.dialect == "postgresql":
        from sqlalchemy.ext.asyncio import create_async_engine  # see services/store/connections.py

        command_s = command_s or 12 * timeout_s
        server = create_async_engine(
            address,
            pool_pre_ping=True,  # a server that was started again meanwhile costs no failed command
            pool_timeout=timeout_s,
            connect_args={"timeout": min(timeout_s, command_s), "command_timeout": command_s}
            | ({"server_settings": {"default_transaction_read_only": "on"}} if read_only else {}),
        )
        event.listen(server.sync_engine, "handle_error", _leave_a_standby)
        return server
    if url.path is None:
        raise InvariantViolation(f"store {url.text} has neither a server nor a file")
    factory = partial(_open, StoreFile(url.path), create)
    file_args = {"timeout": timeout_s, "isolation_level": None, "factory": factory}
    engine = create_engine(address, connect_args=file_args)
    event.listen(engine, "connect", _reading_only if read_only else _journal_mode if create else _set_up)
    event.listen(engine, "begin", _begin)
    if at_rest:
        event.listen(engine, "begin", partial(_require_rest, url))
    return SqliteEngine(engine)


def _require_rest(url: StoreUrl, _connection: Connection) -> None:
    # A connection to a file that nobody writes sees no log: what it reads beside a writer may be torn.
    if not url.is_at_rest:
        raise StoreError(f"store {url.text} is written by another process by now: run the command again")


def _leave_a_standby(failure: ExceptionContext) -> None:
    # After a failover the address names another server; open connections stay with the one that only reads.
    if getattr(failure.original_exception, "sqlstate", None) == READ_ONLY:
        failure.is_disconnect = True


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
    url: StoreUrl,
    *,
    create: bool = False,
    writes: bool = False,
    snapshot: bool = False,
    timeout_s: float = LONG_S,
) -> AsyncIterator[AsyncConnection]:
    """A transaction on an engine of its own, by default with time for work on every row.

    Raises:
        StoreMissing: there is no SQLite file and `create` is false.
        StoreError: the store cannot be opened.
    """
    check_file(url, create=create)
    engine = build_engine(url, create=create, timeout_s=timeout_s)
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


class StoreConnection(sqlite3.Connection):
    """A connection that knows the files that it has open."""

    file: StoreFile | None = None
    _companions: Mapping[Path, Identity] = MappingProxyType({})

    def commit(self) -> None:
        """Commit, unless the files of the store are not there any more.

        Raises:
            FileLost: they are gone or others; what was committed last may be gone with them.
        """
        if self.file is None or not self.in_transaction:
            return super().commit()
        self.file.check(self._companions)
        super().commit()
        self._companions = self.file.check(self._companions)


def _open(file: StoreFile, create: bool, *args: Any, **named: Any) -> StoreConnection:
    """A connection to the file that the others have open; never to another one that lies there by now."""
    file.open(create=create)
    connection = StoreConnection(*args, **named)
    connection.file = file
    return connection


def _set_up(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute(f"PRAGMA wal_autocheckpoint={LOG_BYTES // PAGE_BYTES}")
    bring_unpack(connection)


def _reading_only(connection: Any, record: Any) -> None:
    _set_up(connection, record)
    connection.execute("PRAGMA query_only=ON")


def _journal_mode(connection: Any, record: Any) -> None:
    _set_up(connection, record)
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin(connection: Connection) -> None:
    # A deferred transaction that reads and then writes fails at once when another process wrote in between.
    writes = connection.get_execution_options().get(WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
