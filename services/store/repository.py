"""Transactions of a repository: reading, and writing under the lease of one process."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Executable, Result, bindparam, select

from schemas.errors import StoreError
from services.store.connections import AsyncConnection
from services.store.engine import WRITES, StoreEngine, run_transaction, transaction
from services.store.failures import store_errors
from services.store.sqlite_engine import Found, Work
from services.store.tables import leases
from services.store.urls import StoreUrl

TENURE = select(leases.c.owner, leases.c.epoch).where(leases.c.name == bindparam("name")).with_for_update()


class LeaseLost(StoreError):
    """The lease has another epoch by now: another worker took over, and nothing may be written."""


@dataclass(frozen=True)
class Lease:
    """A lease as it was taken or last renewed. `epoch` names this tenure; `until_ms` is database time."""

    name: str
    owner: str
    epoch: int
    until_ms: int


class Repository:
    """Rows of a store; what fails in one of its transactions is told as a `StoreError`."""

    def __init__(self, engine: StoreEngine, url: StoreUrl) -> None:
        self._engine = engine
        self._writer = engine.execution_options(**{WRITES: True})
        self._url = url

    def _read(self, *, snapshot: bool = False) -> AbstractAsyncContextManager[AsyncConnection]:
        """A transaction; in a `snapshot` every statement sees the store as it was at the first."""
        return transaction(self._engine, self._url, snapshot=snapshot)

    @asynccontextmanager
    async def _write(self, lease: Lease | None = None) -> AsyncIterator[AsyncConnection]:
        """A transaction that writes; with a lease only while it holds.

        Raises:
            LeaseLost: another worker took the lease over.
        """
        with store_errors(self._url):
            async with self._writer.begin() as connection:
                if lease is not None:
                    await demand_tenure(connection, lease)
                yield connection

    async def _run_write(self, work: Work[Found], lease: Lease | None = None) -> Found:
        """What `work` returns of a transaction that writes; see `run_transaction`.

        Raises:
            LeaseLost: another worker took the lease over.
        """

        async def write_fenced(connection: AsyncConnection) -> Found:
            if lease is not None:
                await demand_tenure(connection, lease)
            return await work(connection)

        with store_errors(self._url):
            return await run_transaction(self._writer, write_fenced)

    async def _select(self, query: Executable) -> Result[*tuple[Any, ...]]:
        """The rows of one statement that reads."""
        return await self._run_read(lambda connection: connection.execute(query))

    async def _run_read(self, work: Work[Found]) -> Found:
        """What `work` returns of a transaction that reads; see `run_transaction`."""
        with store_errors(self._url):
            return await run_transaction(self._engine, work)


async def demand_tenure(connection: AsyncConnection, lease: Lease) -> None:
    """Fence a writing transaction: the lease row is locked until it ends, and its epoch is the writer's.

    Raises:
        LeaseLost: another worker took the lease over.
    """
    row = (await connection.execute(TENURE, {"name": lease.name})).one_or_none()
    if row is None or (row.owner, row.epoch) != (lease.owner, lease.epoch):
        found = "is gone" if row is None else f"is at epoch {row.epoch}"
        raise LeaseLost(
            f"lease {lease.name!r} {found}, this worker held epoch {lease.epoch}: another worker took over "
            "and goes on from here"
        )
