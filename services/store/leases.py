"""Leases: who may act for a name, until when, and under which epoch.

One statement takes a lease, so of any number of takers exactly one gets it. The epoch rises by each
takeover; whoever writes an artefact shows the epoch in the same transaction, so that a worker which slept
through its own replacement cannot write any more. Expiry is judged by the database's clock.
"""

from sqlalchemy import ColumnElement, case, select, update

from services.store.database_time import insert_into, now_ms
from services.store.repository import Lease, Repository
from services.store.tables import leases


class LeaseRepository(Repository):
    """Takes, renews and releases leases."""

    async def take(self, name: str, owner: str, ttl_ms: int) -> Lease | None:
        """The lease for `ttl_ms` from now; None while another owner holds it.

        The present owner renews: its epoch stays. `owner` must be unique among processes, restarts included.
        """
        now = now_ms(self._url.dialect)
        first = insert_into(self._url.dialect, leases).values(
            name=name, owner=owner, epoch=1, until_ms=now + ttl_ms
        )
        own = leases.c.owner == owner
        statement = first.on_conflict_do_update(
            index_elements=[leases.c.name],
            set_={
                "owner": owner,
                "epoch": case((own, leases.c.epoch), else_=leases.c.epoch + 1),
                "until_ms": now + ttl_ms,
            },
            where=own | (leases.c.until_ms <= now),
        ).returning(leases.c.epoch, leases.c.until_ms)
        row = (await self._run_write(lambda connection: connection.execute(statement))).one_or_none()
        return None if row is None else Lease(name, owner, row.epoch, row.until_ms)

    async def release(self, lease: Lease) -> None:
        """Let any process take the lease at once; nothing happens when it has another owner already."""
        own = (leases.c.name == lease.name) & _tenure(lease)
        freed = update(leases).where(own).values(until_ms=0)
        await self._run_write(lambda connection: connection.execute(freed))

    async def list_in_force(self, prefix: str) -> list[Lease]:
        """The leases whose names begin so and that have not run out, by name."""
        named = leases.c.name.startswith(prefix, autoescape=True)
        query = select(leases).where(named, leases.c.until_ms > now_ms(self._url.dialect))
        async with self._read() as connection:
            return [Lease(*row) for row in await connection.execute(query.order_by(leases.c.name))]

    async def probe(self) -> None:
        """Write nothing, as a writer: whether the store would take a row now.

        Raises:
            StoreError: it would not.
        """
        await self.release(Lease("", "", 0, 0))

    async def holder(self, name: str) -> Lease | None:
        """The last owner of a lease; it has run out when `until_ms` lies in the past."""
        async with self._read() as connection:
            row = (await connection.execute(select(leases).where(leases.c.name == name))).one_or_none()
        return None if row is None else Lease(*row)


def _tenure(lease: Lease) -> ColumnElement[bool]:
    return (leases.c.owner == lease.owner) & (leases.c.epoch == lease.epoch)
