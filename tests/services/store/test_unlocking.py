"""A connection to a SQLite file that is closed in the middle of its transaction keeps no lock."""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from services.store import open_store
from services.store.engine import Unlocking


def _closed_midway(path, factory):
    """Close a connection within a transaction while somebody still holds an unfinished statement."""
    connection = sqlite3.connect(path, factory=factory, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")  # as in a store
    connection.execute("CREATE TABLE IF NOT EXISTS numbers (n INTEGER)")
    connection.execute("INSERT INTO numbers VALUES (1), (2)")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO numbers VALUES (3)")
    reading = connection.execute("SELECT n FROM numbers")
    reading.fetchone()
    connection.close()
    return reading


def _written(path):
    with closing(sqlite3.connect(path, timeout=0.0, isolation_level=None)) as other:
        other.execute("INSERT INTO numbers VALUES (4)")
        return [n for (n,) in other.execute("SELECT n FROM numbers ORDER BY n")]


def test_connection_closed_within_a_transaction_gives_its_lock_up(tmp_path):
    path = tmp_path / "x.db"
    reading = _closed_midway(path, Unlocking)
    assert _written(path) == [1, 2, 4], "nothing of the transaction is left"
    del reading


def test_connection_of_the_standard_library_keeps_its_lock_as_long_as_a_statement_lives(tmp_path):
    """The reason for the class; where this no longer holds, it can go."""
    path = tmp_path / "x.db"
    reading = _closed_midway(path, sqlite3.Connection)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        _written(path)
    del reading
    assert _written(path) == [1, 2, 4]


def test_store_on_a_file_uses_connections_that_unlock(tmp_path):
    async def kind():
        async with (
            await open_store(f"sqlite:///{tmp_path}/x.db", create=True) as store,
            store._engine.begin() as connection,
        ):
            return await connection.run_sync(lambda found: type(found.connection.driver_connection))

    assert asyncio.run(kind()) is Unlocking


def test_connection_is_closed_a_second_time_in_silence(tmp_path):
    connection = sqlite3.connect(tmp_path / "x.db", factory=Unlocking)
    connection.close()
    connection.close()
