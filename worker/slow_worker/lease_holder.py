"""Holding a lease: taken at the start of a look, kept alive while it lasts, released when the worker ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from schemas.errors import StoreError
from services.store.claims import LeaseRepository
from services.store.repository import Lease
from worker.operations.logs import EventSink


class LeaseHolder:
    """One worker's claim to one lease."""

    def __init__(self, leases: LeaseRepository, name: str, owner: str, ttl_ms: int, note: EventSink) -> None:
        self._leases = leases
        self._name = name
        self._owner = owner
        self._ttl_ms = ttl_ms
        self._note = note
        self._standing_by = False
        self.held: Lease | None = None

    async def take(self) -> Lease | None:
        """The lease, new or renewed; None while another worker holds it. Each change of hands is noted."""
        lease = await self._leases.take(self._name, self._owner, self._ttl_ms)
        if lease is None and not self._standing_by:
            holder = await self._leases.holder(self._name)
            self._note(
                "standing_by", {"lease": self._name, "held_by": None if holder is None else holder.owner}
            )
        elif lease is not None and (self.held is None or lease.epoch != self.held.epoch):
            self._note("lease_taken", {"lease": self._name, "owner": self._owner, "epoch": lease.epoch})
        self._standing_by = lease is None
        self.held = lease
        return lease

    @asynccontextmanager
    async def keep_alive(self, lease: Lease) -> AsyncIterator[None]:
        """Renew while the block runs. A lease that is lost meanwhile is noticed by the fence, not here."""
        over = asyncio.Event()

        async def renew() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), self._ttl_ms / 3_000)
                if not over.is_set():
                    with suppress(StoreError):
                        await self._leases.take(lease.name, lease.owner, self._ttl_ms)

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            over.set()
            await renewing

    async def release(self) -> None:
        """Let others go on at once."""
        if self.held is not None:
            await self._leases.release(self.held)
            self._note("lease_released", {"lease": self._name, "epoch": self.held.epoch})
            self.held = None
