"""A SQLite connection in a thread of its own that is asked once for each statement, rows and all.

`aiosqlite` asks for the cursor, the statement, its rows and its end one after the other, and each time both
threads wait for one another: that costs more than most statements do. A transaction of many statements is
asked for once.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread, get_ident
from typing import Any, TypeVar

import aiosqlite
from aiosqlite.core import _STOP_RUNNING_SENTINEL, _connection_worker_thread

from schemas.errors import InvariantViolation

CLOSED = "Event loop is closed"
Found = TypeVar("Found")

PAGE_ROWS = 10_000  # what a statement finds beyond them stays in the database until it is asked for


def connect(database: str, **named: Any) -> "StoreConnection":
    """What `aiosqlite.connect` returns, for SQLAlchemy's adapter."""
    return StoreConnection(lambda: sqlite3.connect(database, **named))


class StoreConnection(aiosqlite.Connection):
    """A connection whose statements ask its thread once each."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, PAGE_ROWS)
        # One that waits for a lock keeps no process from ending.
        self._thread = Thread(target=_serve, args=(self._tx,), daemon=True, name="store")
        self._is_over = False
        self._beginning: tuple[str, ...] = ()

    def begin(self, text: str) -> None:
        """Have a transaction begin with the next statement."""
        self._beginning = (text,)

    def take_begin(self) -> tuple[str, ...]:
        """What the next statement has to begin with, once."""
        beginning, self._beginning = self._beginning, ()
        return beginning

    def stop(self) -> asyncio.Future[Any] | None:
        """End the thread once it has done what it was asked for, also where its answers are lost.

        Nothing is returned to wait for the second time: a thread that has ended answers nobody.
        """
        if not self._running:
            return None
        stopped: asyncio.Future[Any] | None = super().stop()
        self._tx.put_nowait((None, lambda: _STOP_RUNNING_SENTINEL))
        return stopped

    def cursor(self) -> "Statement":  # type: ignore[override]  # nothing is asked before the statement
        """A statement to be."""
        return Statement(self)

    async def at_once(self, work: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
        """What `work` returns, done by the thread in one piece.

        Raises:
            InvariantViolation: it waits for something else than statements of this connection.
        """
        try:
            return await self._execute(_finish, work)  # type: ignore[no-any-return]
        except asyncio.CancelledError:
            await self._through()  # what is asked next is asked of a thread that is through with it
            raise

    async def _through(self) -> None:
        """Until the thread has done what it was asked for, however often that is cancelled."""
        if not self._running:
            return
        answered = asyncio.get_running_loop().create_future()
        self._tx.put_nowait((answered, int))
        while not answered.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({answered})

    async def _execute(self, fn: Any, *args: Any, **kwargs: Any) -> Any:
        self._is_over = False
        if get_ident() == self._thread.ident:
            return fn(*args, **kwargs)
        return await super()._execute(fn, *args, **kwargs)  # type: ignore[no-untyped-call]

    async def commit(self) -> None:
        """End the transaction."""
        self._beginning = ()
        await super().commit()
        self._is_over = True

    async def rollback(self) -> None:
        """Give up the transaction; SQLAlchemy asks for it behind every commit, too, where there is none."""
        self._beginning = ()
        if not self._is_over:
            await super().rollback()
            self._is_over = True


class Statement(aiosqlite.Cursor):
    """A statement with its rows, or with the first of many."""

    def __init__(self, connection: StoreConnection) -> None:
        self._conn: StoreConnection = connection
        self._rows: list[Any] = []
        self._has_more = False

    async def execute(self, sql: str, parameters: Any = ()) -> "Statement":
        """Run it once."""
        return await self._run(sqlite3.Cursor.execute, sql, parameters)

    async def executemany(self, sql: str, parameters: Any) -> "Statement":
        """Run it once for each of these parameters."""
        return await self._run(sqlite3.Cursor.executemany, sql, parameters)

    async def _run(self, *given: Any) -> "Statement":
        connection = self._conn
        shown = await connection._execute(_ran, connection._conn, connection.take_begin(), *given)
        self._cursor, self._rows, self._has_more = shown
        return self

    async def fetchmany(self, size: int | None = None) -> Sequence[Any]:
        """The next rows, at most `size`."""
        size = size or self.arraysize
        if len(self._rows) < size and self._has_more:
            self._rows += await super().fetchmany(max(size, PAGE_ROWS))
        found, self._rows = self._rows[:size], self._rows[size:]
        return found

    async def fetchall(self) -> Sequence[Any]:
        """The rows that are left."""
        if self._has_more:
            self._rows += await super().fetchall()
        found, self._rows = self._rows, []
        return found

    async def close(self) -> None:
        """Let the rows be that were not fetched."""
        if self._has_more:
            self._has_more = False
            await super().close()


def _serve(request: SimpleQueue[Any]) -> None:
    """Do what a connection is asked for until it is closed.

    A command that was cancelled closes its event loop while a statement still runs: nobody waits for the
    answer then, and the connection is closed all the same, so that its lock on the file ends.
    """
    while True:
        try:
            return _connection_worker_thread(request)  # type: ignore[no-any-return]
        except RuntimeError as error:  # the functions themselves raise nothing here
            if str(error) != CLOSED:
                raise


def _finish(work: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
    doing = work()
    try:
        doing.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    doing.close()
    raise InvariantViolation(
        "a transaction that is done at once waits for something else than its statements"
    )


def _ran(
    database: sqlite3.Connection, beginning: Sequence[str], run: Callable[..., Any], *given: Any
) -> tuple[sqlite3.Cursor, list[Any], bool]:
    cursor, rows, has_more = database.cursor(), list[Any](), False
    try:
        for text in beginning:
            cursor.execute(text)
        run(cursor, *given)
        rows = cursor.fetchmany(PAGE_ROWS) if cursor.description else []
        has_more = len(rows) == PAGE_ROWS
    finally:
        if not has_more:
            cursor.close()
    return cursor, rows, has_more
