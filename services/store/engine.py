"""The engine: one writer transaction at a time on SQLite, bounded waits on PostgreSQL."""

import sqlite3
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, ExceptionContext, event
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from schemas.errors import InvariantViolation
from services.store.failures import READ_ONLY
from services.store.file_watch import FileWatch, made_private
from services.store.packed_text import bring_unpack
from services.store.urls import StoreUrl

WRITES = "thinktwice_writes"
PAGE_BYTES = 16_384  # of a new file: long rows leave less of a page empty


def build_engine(
    url: StoreUrl,
    *,
    create: bool,
    timeout_s: float,
    command_s: float | None = None,
    read_only: bool = False,
) -> AsyncEngine:
    """Engine of a store; nothing is opened yet.

    Args:
        url: the checked address.
        create: whether a missing SQLite file may be made.
        timeout_s: longest wait for a lock (SQLite) or for a connection (PostgreSQL).
        command_s: longest wait for the answer to one command (PostgreSQL); None: twelve times `timeout_s`.
        read_only: the database refuses every statement that writes.
    """
    address = url.engine_url(create=create, read_only=read_only)
    if url.dialect == "postgresql":
        command_s = command_s or 12 * timeout_s
        engine = create_async_engine(
            address,
            pool_pre_ping=True,  # a server that was started again meanwhile costs no failed command
            pool_timeout=timeout_s,
            connect_args={"timeout": min(timeout_s, command_s), "command_timeout": command_s}
            | ({"server_settings": {"default_transaction_read_only": "on"}} if read_only else {}),
        )
        event.listen(engine.sync_engine, "handle_error", _leave_a_standby)
        return engine
    if url.path is None:
        raise InvariantViolation(f"store {url.text} has neither a server nor a file")
    watch = FileWatch(url.path)
    factory = partial(_open, watch, url.path if create else None)
    from services.store.sqlite_driver import connect  # loads what few commands need

    file_args = {
        "timeout": timeout_s, "isolation_level": None, "factory": factory, "async_creator_fn": connect,
    }  # fmt: skip
    engine = create_async_engine(address, connect_args=file_args)
    prepared = _reading_only if read_only else _journal_mode if create else _foreign_keys
    event.listen(engine.sync_engine, "connect", prepared)
    event.listen(engine.sync_engine, "begin", _begin)
    return engine


def _leave_a_standby(failure: ExceptionContext) -> None:
    # After a failover the address names another server; open connections stay with the one that only reads.
    if getattr(failure.original_exception, "sqlstate", None) == READ_ONLY:
        failure.is_disconnect = True


class Unlocking(sqlite3.Connection):
    """A connection that gives up its transaction before it is closed, and knows the files that it has open.

    SQLite keeps a closed connection, with its lock on the file, for as long as anything refers to one of its
    statements; after a cancelled call that is until the next collection of garbage, and every writer waits.
    """

    watch: FileWatch | None = None
    _is_closed = False

    def cursor(self, *args: Any, **named: Any) -> Any:
        """A cursor; for what begins a transaction only while the files are those that were opened.

        Raises:
            FileLost: they are not, and whatever is read from them says nothing of the store.
        """
        if self.watch is not None and not self.in_transaction:
            self.watch.check()
        return super().cursor(*args, **named)

    def commit(self) -> None:
        """Commit, unless the files of the store are not there any more.

        Raises:
            FileLost: they are gone or others; what was committed last may be gone with them.
        """
        if self.watch is None or not self.in_transaction:
            return super().commit()
        self.watch.check(self)
        super().commit()
        self.watch.check(self)

    def close(self) -> None:
        """Roll back what was not committed, and close; a second time does nothing."""
        if self._is_closed:
            return
        with nullcontext() if self.watch is None else self.watch.leaving(self):
            if self.in_transaction:
                self.rollback()
            super().close()
        self._is_closed = True


def _open(watch: FileWatch, new: Path | None, *args: Any, **named: Any) -> Unlocking:
    """A connection to the file that the others have open; never to another one that lies there by now."""
    watch.check()
    if new is not None:
        made_private(new)
    connection = Unlocking(*args, **named)
    connection.watch = watch
    return connection


def _foreign_keys(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA foreign_keys=ON")
    bring_unpack(connection)


def _reading_only(connection: Any, record: Any) -> None:
    _foreign_keys(connection, record)
    connection.execute("PRAGMA query_only=ON")


def _journal_mode(connection: Any, record: Any) -> None:
    _foreign_keys(connection, record)
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def _begin(connection: Connection) -> None:
    # A deferred transaction that reads and then writes fails at once when another process wrote in between.
    writes = connection.get_execution_options().get(WRITES, False)
    driver: Any = connection.connection.driver_connection
    driver.begin("BEGIN IMMEDIATE" if writes else "BEGIN")
