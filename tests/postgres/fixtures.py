"""One server for the whole test session, started by the first test that wants it, and databases on it."""

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit, urlunsplit

import asyncpg  # type: ignore[import-untyped]  # ships no types
import pytest

from tests.postgres.binaries import OPT_OUT, SERVER, find
from tests.postgres.server import running

# Others may still be connected: a test that failed, or a process that it killed.
EMPTY = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid();
DROP SCHEMA public CASCADE;
CREATE SCHEMA public;
"""


class Databases:
    """Empty databases under names that no other test process uses; a test gives them back, emptied.

    Making a database copies megabytes, emptying one takes 40 ms.
    """

    def __init__(self, admin: str) -> None:
        self._admin = admin
        self._idle: list[str] = []
        self._made = 0

    def take(self) -> str:
        """The address of an empty database."""
        if self._idle:
            return self._idle.pop()
        self._made += 1
        name = self._name(self._made)
        asyncio.run(read_text(self._admin, f"CREATE DATABASE {name} TEMPLATE template0"))
        return urlunsplit(urlsplit(self._admin)._replace(path=f"/{name}"))

    def give_back(self, address: str) -> None:
        """Empty a database for the next test."""
        asyncio.run(read_text(address, EMPTY))
        self._idle.append(address)

    def drop(self) -> None:
        """Remove every database that was made."""
        for number in range(1, self._made + 1):
            asyncio.run(read_text(self._admin, f"DROP DATABASE IF EXISTS {self._name(number)} WITH (FORCE)"))

    def _name(self, number: int) -> str:
        return f"thinktwice_test_{os.getpid()}_{number}"


async def read_text(address: str, statements: str) -> None:
    """Run statements on a connection of their own."""
    connection = await asyncpg.connect(address)
    try:
        await connection.execute(statements)
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def postgres_databases() -> Iterator[Databases]:
    """Databases on the server that `TEST_DATABASE_URL` names, else on our own."""
    if os.environ.get(OPT_OUT):
        pytest.skip(f"{OPT_OUT} is set")
    if SERVER in os.environ:
        databases = Databases(os.environ[SERVER])
        yield databases
        databases.drop()
        return
    with running(find(os.environ)) as server:
        yield Databases(server.url())


@pytest.fixture
def fresh_postgres(postgres_databases: Databases) -> Iterator[Callable[[], str]]:
    """Gives the address of another empty database at each call."""
    with ExitStack() as after:

        def fresh() -> str:
            address = postgres_databases.take()
            after.callback(postgres_databases.give_back, address)
            return address

        yield fresh


@pytest.fixture
def postgres_url(fresh_postgres: Callable[[], str]) -> str:
    """The address of an empty database."""
    return fresh_postgres()
