"""The thread of a SQLite connection is asked once for each statement, and gives all rows however many."""

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import aiosqlite
import pytest
from sqlalchemy import Select, column, select, table, text
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.errors import InvariantViolation, StoreError
from services.store import open_store, sqlite_driver
from services.store.opening import alone
from services.store.repository import at_once
from services.store.urls import parse_url

NUMBERS = list(range(10))


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the threads of connections were asked for."""
    names, ask = list[str](), aiosqlite.Connection._execute

    async def shown(self: Any, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        names.append(function.__name__)
        return await ask(self, function, *given, **named)

    monkeypatch.setattr(aiosqlite.Connection, "_execute", shown)
    return names


def within(path: Any, work: Callable[[AsyncConnection], Awaitable[Any]], *, writes: bool = False) -> Any:
    """What a transaction on a file of ten numbers returns."""
    url = parse_url(f"sqlite:///{path}/numbers.db")

    async def run() -> Any:
        async with alone(url, create=True, writes=True) as connection:
            await connection.execute(text("CREATE TABLE IF NOT EXISTS numbers (n INTEGER PRIMARY KEY)"))
            rows = [{"n": n} for n in NUMBERS]
            await connection.execute(text("INSERT OR IGNORE INTO numbers VALUES (:n)"), rows)
        async with alone(url, writes=writes) as connection:
            return await work(connection)

    return asyncio.run(run())


def test_transaction_asks_its_thread_once_for_each_statement(tmp_path, requested) -> None:
    async def work(connection: AsyncConnection) -> Any:
        requested.clear()
        await connection.execute(text("UPDATE numbers SET n = -n"))
        found = list((await connection.execute(text("SELECT n FROM numbers ORDER BY n DESC"))).scalars())
        return found, list(requested)

    found, statements = within(tmp_path, work, writes=True)
    assert found == [-n for n in NUMBERS]
    assert len(statements) == 2
    assert requested[2:] == ["commit", "close"], "nothing is rolled back behind a commit"


def test_store_on_a_file_has_connections_that_ask_once(tmp_path) -> None:
    async def kind() -> type:
        async with (
            await open_store(f"sqlite:///{tmp_path}/x.db", create=True) as store,
            store._engine.connect() as connection,
        ):
            return type((await connection.get_raw_connection()).driver_connection)

    assert asyncio.run(kind()) is sqlite_driver.StoreConnection


@pytest.mark.parametrize("page", [1, 3, 5, 9, 10, 11])
def test_rows_of_every_page_come_in_order(tmp_path, monkeypatch, page) -> None:
    monkeypatch.setattr(sqlite_driver, "PAGE_ROWS", page)
    query: Select[Any] = select(column("n")).select_from(table("numbers")).order_by("n")

    async def work(connection: AsyncConnection) -> Any:
        whole = list((await connection.execute(query)).scalars())
        async with connection.stream(query.execution_options(yield_per=4)) as result:
            parts = [[n for (n,) in part] async for part in result.partitions()]
        async with connection.stream(query) as result:
            first = await result.fetchmany(2)
        return whole, parts, [n for (n,) in first]

    assert within(tmp_path, work) == (NUMBERS, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]], [0, 1])


def test_statement_that_fails_leaves_nothing_of_its_transaction(tmp_path) -> None:
    async def twice(connection: AsyncConnection) -> None:
        await connection.execute(text("DELETE FROM numbers WHERE n > 4"))
        await connection.execute(text("INSERT INTO numbers VALUES (0)"))

    with pytest.raises(StoreError, match="UNIQUE"):
        within(tmp_path, twice, writes=True)

    async def count(connection: AsyncConnection) -> Any:
        return await connection.scalar(text("SELECT COUNT(*) FROM numbers"))

    assert within(tmp_path, count) == len(NUMBERS)


def test_counts_and_new_rows_are_told_of_statements_that_return_rows_and_of_those_that_do_not(
    tmp_path,
) -> None:
    async def work(connection: AsyncConnection) -> Any:
        deleted = await connection.execute(text("DELETE FROM numbers WHERE n < 3"))
        back = await connection.execute(text("UPDATE numbers SET n = n + 100 WHERE n > 7 RETURNING n"))
        return deleted.rowcount, sorted(back.scalars())

    assert within(tmp_path, work, writes=True) == (3, [108, 109])


def test_writing_transaction_begins_with_its_first_statement_and_then_holds_the_lock(
    tmp_path, requested
) -> None:
    path = tmp_path / "x.db"

    def locked() -> bool:
        with closing(sqlite3.connect(path, timeout=0.0, isolation_level=None)) as other:
            try:
                other.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return True
            return False

    async def run() -> Any:
        async with await open_store(f"sqlite:///{path}", create=True) as store:
            assert await store.runs.all() == []
            requested.clear()
            async with store.runs._writer.begin() as connection:
                await connection.scalar(text("SELECT 1"))
                return list(requested), locked()

    statements, held = asyncio.run(run())
    assert (len(statements), held) == (1, True)
    assert not locked()


def test_thread_of_a_cancelled_statement_closes_its_connection_in_silence_behind_a_closed_loop(
    tmp_path, monkeypatch
) -> None:
    shown, released, running = list[Any](), threading.Event(), threading.Event()
    monkeypatch.setattr(threading, "excepthook", shown.append)
    held = list[Any]()

    def long_statement() -> None:
        running.set()
        released.wait(10)

    async def cancelled() -> None:
        connection = sqlite_driver.connect(str(tmp_path / "numbers.db"))
        held.append(connection)
        await connection
        task = asyncio.create_task(connection._execute(long_statement))
        await asyncio.to_thread(running.wait, 10)
        task.cancel()
        connection.stop()

    asyncio.run(cancelled())
    released.set()
    thread = held[0]._thread
    thread.join(10)
    assert not thread.is_alive()
    assert held[0]._connection is None, "its lock on the file ends"
    assert shown == []


# --- a transaction that is done at once


async def added(connection: AsyncConnection, *numbers: int) -> list[int]:
    for n in numbers:
        await connection.execute(text("INSERT INTO numbers VALUES (:n)"), {"n": n})
    return list((await connection.execute(text("SELECT n FROM numbers ORDER BY n"))).scalars())


def test_work_that_is_done_at_once_asks_its_thread_once(tmp_path, requested) -> None:
    async def work(connection: AsyncConnection) -> Any:
        requested.clear()
        return await at_once(connection, lambda: added(connection, 10, 11))

    assert within(tmp_path, work, writes=True) == [*NUMBERS, 10, 11]
    assert len(requested) == 3
    assert requested[1:] == ["commit", "close"]
    assert within(tmp_path, added) == [*NUMBERS, 10, 11], "and it is stored"


def test_work_that_fails_at_once_leaves_nothing_of_its_transaction(tmp_path) -> None:
    with pytest.raises(StoreError, match="UNIQUE"):
        within(tmp_path, lambda found: at_once(found, lambda: added(found, 10, 0)), writes=True)
    assert within(tmp_path, added) == NUMBERS


def test_work_that_waits_for_something_else_than_its_statements_is_refused(tmp_path) -> None:
    async def sleeping(connection: AsyncConnection) -> None:
        await added(connection, 10)
        await asyncio.sleep(0)

    with pytest.raises(InvariantViolation, match="waits for something else"):
        within(tmp_path, lambda found: at_once(found, lambda: sleeping(found)), writes=True)
    assert within(tmp_path, added) == NUMBERS


def test_cancelled_work_is_waited_for_before_its_connection_is_used_again(tmp_path) -> None:
    running, released = threading.Event(), threading.Event()

    async def held(connection: AsyncConnection) -> list[int]:
        await added(connection, 10)
        running.set()
        assert released.wait(10)
        return await added(connection, 11)

    async def work(connection: AsyncConnection) -> Any:
        task = asyncio.create_task(at_once(connection, lambda: held(connection)))
        await asyncio.to_thread(running.wait, 10)
        task.cancel()
        over, _ = await asyncio.wait({task}, timeout=0.1)
        released.set()
        await asyncio.wait({task})
        return bool(over), task.cancelled(), await added(connection)

    assert within(tmp_path, work, writes=True) == (False, True, [*NUMBERS, 10, 11])


def test_work_that_is_cancelled_twice_before_its_thread_begins_is_stored_whole_or_not_at_all(
    tmp_path,
) -> None:
    busy, released = threading.Event(), threading.Event()

    def long_statement() -> None:
        busy.set()
        assert released.wait(10)

    async def failing(connection: AsyncConnection) -> None:
        await added(connection, 10)
        raise ValueError("in the middle")

    async def run() -> Any:
        async with await open_store(f"sqlite:///{tmp_path}/x.db", create=True) as store:
            async with store.runs._write() as connection:
                await connection.execute(text("CREATE TABLE numbers (n INTEGER PRIMARY KEY)"))
                driver: Any = (await connection.get_raw_connection()).driver_connection
            before = asyncio.create_task(driver._execute(long_statement))
            await asyncio.to_thread(busy.wait, 10)
            task = asyncio.create_task(store.runs._run_write(failing))
            for _ in range(2):
                await asyncio.sleep(0.1)
                task.cancel()
            await asyncio.sleep(0.1)
            released.set()
            await asyncio.wait({task, before})
            return task.cancelled(), await store.runs._run_read(added)

    assert asyncio.run(run()) == (True, [])


def test_connection_that_is_stopped_while_it_closes_leaves_nobody_waiting(tmp_path) -> None:
    async def run() -> set[Any]:
        connection = sqlite_driver.connect(str(tmp_path / "numbers.db"))
        await connection
        closes = asyncio.create_task(connection.close())
        await asyncio.sleep(0)
        connection.stop()
        connection._thread.join(10)
        return (await asyncio.wait({closes}, timeout=1.0))[1]

    assert asyncio.run(run()) == set()
