"""SQLAlchemy's own engine for SQLite, each transaction in a thread.

A repository awaits its statements. Handing each one to a thread costs more than the statement: `run` has a
thread do a whole transaction, whose coroutine waits for nothing but its statements.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread, get_ident
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Dialect, Engine, Result

from schemas.errors import InvariantViolation
from services.store.connections import AsyncConnection

Found = TypeVar("Found")
Work = Callable[[AsyncConnection], Coroutine[Any, Any, Found]]


class StoreThread:
    """A thread that makes one call after the other; waiting for a lock, it keeps no process from ending."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[asyncio.Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread = Thread(target=self._serve, daemon=True, name="store")
        self._thread.start()

    async def run(self, call: Callable[[], Found]) -> Found:
        """What a call returns; it is made even if nobody waits for it any more, before every later one."""
        if get_ident() == self._thread.ident:
            return call()
        answer: asyncio.Future[Found] = asyncio.get_running_loop().create_future()
        self._calls.put((answer, call))
        return await answer

    def end(self) -> None:
        """Let the thread end behind its last call."""
        self._calls.put(None)

    def _serve(self) -> None:
        while (request := self._calls.get()) is not None:
            answer, call = request
            try:
                settle: Callable[[], None] = partial(_settle, answer, call())
            except BaseException as error:  # noqa: BLE001 - whoever waits for the answer raises it
                settle = partial(_fail, answer, error)
            with suppress(RuntimeError):  # the loop is closed: nobody waits for the answer
                answer.get_loop().call_soon_threadsafe(settle)
            del request, answer, call, settle  # what they refer to would live until the next call


def _settle(answer: asyncio.Future[Found], found: Found) -> None:
    if not answer.done():
        answer.set_result(found)


def _fail(answer: asyncio.Future[Any], error: BaseException) -> None:
    if not answer.done():
        answer.set_exception(error)


class ThreadConnection:
    """What repositories use of an `AsyncConnection`, on a connection of a thread."""

    def __init__(self, connection: Connection, thread: StoreThread) -> None:
        self._connection = connection
        self._thread = thread

    @property
    def dialect(self) -> Dialect:
        """SQLite's."""
        return self._connection.dialect

    async def execute(self, statement: Any, parameters: Any = None) -> Result[Any]:
        """The result of a statement, with its rows in memory."""
        return await self._thread.run(lambda: _fetch(self._connection.execute(statement, parameters)))

    async def scalar(self, statement: Any, parameters: Any = None) -> Any:
        """The first column of the first row; None without one."""
        return await self._thread.run(lambda: self._connection.scalar(statement, parameters))

    async def run_sync(self, call: Callable[..., Found], *given: Any) -> Found:
        """What a function of the connection returns."""
        return await self._thread.run(lambda: call(self._connection, *given))


def _fetch(result: Result[Any]) -> Result[Any]:
    """The rows of a statement that has any; a cursor ends with its transaction."""
    return result.freeze()() if cast(Any, result).returns_rows else result


class SqliteEngine:
    """What repositories use of an `AsyncEngine`."""

    def __init__(self, engine: Engine, idle: list[StoreThread] | None = None) -> None:
        self._engine = engine
        self._idle = [] if idle is None else idle

    def execution_options(self, **options: Any) -> "SqliteEngine":
        """The same connections with other options of their transactions."""
        return SqliteEngine(self._engine.execution_options(**options), self._idle)

    async def run(self, work: Work[Found]) -> Found:
        """What `work` returns of a transaction that a thread does in one piece.

        Cancelled while it waits for its lock it does nothing; one that has begun is done all the same.

        Raises:
            InvariantViolation: it waits for something else than statements of its connection.
        """
        given_up = Event()
        with self._take_thread() as thread:
            try:
                return await thread.run(lambda: self._finish(work, thread, given_up))
            except asyncio.CancelledError:
                given_up.set()
                raise

    def _finish(self, work: Work[Found], thread: StoreThread, given_up: Event) -> Found:
        with self._engine.begin() as connection:
            if given_up.is_set():
                raise InvariantViolation("nobody waits for this transaction any more")
            doing = work(_as_async(connection, thread))
            try:
                doing.send(None)
            except StopIteration as done:
                return cast(Found, done.value)
            doing.close()
            raise InvariantViolation("a transaction of a thread waits for something else than its statements")

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """A connection in a transaction, which is committed at the end."""
        with self._take_thread() as thread:
            transaction = self._engine.begin()
            try:
                yield _as_async(await thread.run(transaction.__enter__), thread)
            except BaseException as error:
                await thread.run(partial(transaction.__exit__, type(error), error, error.__traceback__))
                raise
            await thread.run(partial(transaction.__exit__, None, None, None))

    async def dispose(self) -> None:
        """Close every connection that is not in use."""
        with self._take_thread() as thread:
            await thread.run(self._engine.dispose)
        while self._idle:
            self._idle.pop().end()

    @contextmanager
    def _take_thread(self) -> Iterator[StoreThread]:
        thread = self._idle.pop() if self._idle else StoreThread()
        try:
            yield thread
        finally:
            self._idle.append(thread)


def _as_async(connection: Connection, thread: StoreThread) -> AsyncConnection:
    return cast(AsyncConnection, ThreadConnection(connection, thread))
