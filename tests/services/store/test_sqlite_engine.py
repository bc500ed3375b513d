"""A transaction on SQLite is done by a thread in one piece, and none is left open by a cancellation."""

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.errors import InvariantViolation
from services.store.engine import WRITES, build_engine, run_transaction
from services.store.sqlite_engine import StoreThread
from services.store.urls import parse_url

NUMBERS = list(range(10))
ALL = text("SELECT n FROM numbers ORDER BY n")


@asynccontextmanager
async def opened(folder):
    """An engine whose transactions write, on a file of ten numbers."""
    url = parse_url(f"sqlite:///{folder}/numbers.db")
    engine = build_engine(url, create=True, timeout_s=0.0).execution_options(**{WRITES: True})
    async with engine.begin() as connection:
        await connection.execute(text("CREATE TABLE IF NOT EXISTS numbers (n INTEGER PRIMARY KEY)"))
        rows = [{"n": n} for n in NUMBERS]
        await connection.execute(text("INSERT OR IGNORE INTO numbers VALUES (:n)"), rows)
    try:
        yield engine
    finally:
        await engine.dispose()


def done(folder, scenario: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    async def run():
        async with opened(folder) as engine:
            return await scenario(engine)

    return asyncio.run(run())


async def added(connection: AsyncConnection, *numbers: int) -> list[int]:
    for n in numbers:
        await connection.execute(text("INSERT INTO numbers VALUES (:n)"), {"n": n})
    return list((await connection.execute(ALL)).scalars())


def stored(folder) -> list[int]:
    """What another connection finds, which no lock keeps from writing."""
    with closing(sqlite3.connect(f"{folder}/numbers.db", timeout=0.0, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        return [n for (n,) in other.execute("SELECT n FROM numbers ORDER BY n")]


def is_locked(folder) -> bool:
    with suppress(sqlite3.OperationalError):
        stored(folder)
        return False
    return True


def test_work_is_handed_to_a_thread_once_and_stored(tmp_path, monkeypatch):
    handed, put = [], StoreThread.run

    async def run(self, call):
        handed.append(threading.current_thread() is threading.main_thread())
        return await put(self, call)

    async def scenario(engine):
        monkeypatch.setattr(StoreThread, "run", run)
        found = await run_transaction(engine, lambda connection: added(connection, 10, 11))
        return found, handed.count(True), handed.count(False)

    assert done(tmp_path, scenario) == ([*NUMBERS, 10, 11], 1, 3)
    assert stored(tmp_path) == [*NUMBERS, 10, 11]


def test_rows_and_counts_are_there_behind_the_transaction(tmp_path):
    async def scenario(engine):
        found = await run_transaction(engine, lambda connection: connection.execute(ALL))
        deleted = await run_transaction(
            engine, lambda connection: connection.execute(text("DELETE FROM numbers WHERE n < 3"))
        )
        changed = text("UPDATE numbers SET n = n + 100 WHERE n > 7 RETURNING n")
        async with engine.begin() as connection:
            rows = (await connection.execute(changed)).scalars()
            last = await connection.scalar(text("SELECT max(n) FROM numbers"))
        return list(found.scalars()), deleted.rowcount, sorted(rows), last

    assert done(tmp_path, scenario) == (NUMBERS, 3, [108, 109], 109)


@pytest.mark.parametrize("piecewise", [True, False])
def test_work_that_fails_leaves_nothing_of_its_transaction(tmp_path, piecewise):
    async def write(engine):
        if not piecewise:
            return await run_transaction(engine, lambda connection: added(connection, 10, 0))
        async with engine.begin() as connection:
            return await added(connection, 10, 0)

    async def scenario(engine):
        with pytest.raises(IntegrityError, match="UNIQUE"):
            await write(engine)
        return is_locked(tmp_path)

    assert done(tmp_path, scenario) is False
    assert stored(tmp_path) == NUMBERS


def test_transaction_that_writes_holds_the_lock_from_its_beginning(tmp_path):
    async def scenario(engine):
        async with engine.begin():
            return is_locked(tmp_path)

    assert done(tmp_path, scenario) is True
    assert not is_locked(tmp_path)


def test_work_that_waits_for_something_else_than_its_statements_is_refused(tmp_path):
    async def sleeping(connection):
        await added(connection, 10)
        await asyncio.sleep(0)

    with pytest.raises(InvariantViolation, match="waits for something else"):
        done(tmp_path, lambda engine: run_transaction(engine, sleeping))
    assert stored(tmp_path) == NUMBERS


def test_work_that_is_cancelled_is_stored_whole_before_its_thread_does_anything_else(tmp_path):
    running, released = threading.Event(), threading.Event()

    async def held(connection):
        await added(connection, 10)
        running.set()
        assert released.wait(10)
        return await added(connection, 11)

    async def scenario(engine):
        task = asyncio.create_task(run_transaction(engine, held))
        await asyncio.to_thread(running.wait, 10)
        for _ in range(2):
            task.cancel()
            await asyncio.wait({task}, timeout=0.05)
        later = asyncio.create_task(run_transaction(engine, added))
        await asyncio.wait({later}, timeout=0.05)
        released.set()
        return task.cancelled(), await later

    assert done(tmp_path, scenario) == (True, [*NUMBERS, 10, 11])


def test_transaction_that_is_cancelled_between_and_within_statements_keeps_no_lock(tmp_path):
    async def written(engine, begun):
        async with engine.begin() as connection:
            begun.set()
            while True:
                await added(connection, 10)
                await connection.execute(text("DELETE FROM numbers WHERE n = 10"))

    async def scenario(engine):
        for turns in range(30):
            begun = asyncio.Event()
            task = asyncio.create_task(written(engine, begun))
            for _ in range(turns):  # the first ones are cancelled before they have begun
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait({task})
            assert task.cancelled()
            assert not is_locked(tmp_path), turns
        return await run_transaction(engine, added)

    assert done(tmp_path, scenario) == NUMBERS


def test_thread_whose_loop_is_closed_ends_in_silence(tmp_path, monkeypatch):
    shown, running, released = list[Any](), threading.Event(), threading.Event()
    monkeypatch.setattr(threading, "excepthook", shown.append)
    threads = list[StoreThread]()

    def long_call():
        running.set()
        assert released.wait(10)

    async def scenario():
        threads.append(StoreThread())
        task = asyncio.create_task(threads[0].run(long_call))
        await asyncio.to_thread(running.wait, 10)
        task.cancel()

    asyncio.run(scenario())
    threads[0].end()
    released.set()
    threads[0]._thread.join(10)
    assert not threads[0]._thread.is_alive()
    assert shown == []


def test_engine_that_is_closed_leaves_no_thread_and_no_log(tmp_path):
    def count():
        return sum(thread.name == "store" for thread in threading.enumerate())

    before = count()

    async def scenario(engine):
        await asyncio.gather(
            *(run_transaction(engine.execution_options(**{WRITES: False}), added) for _ in range(3))
        )
        threads = [thread for thread in threading.enumerate() if thread.name == "store"]
        await engine.dispose()
        for thread in threads[-3:]:
            thread.join(10)
        return count()

    assert done(tmp_path, scenario) <= before + 1
    assert [path.name for path in tmp_path.iterdir()] == ["numbers.db"]
