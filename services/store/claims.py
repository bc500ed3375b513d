"""Who may act for a name, and what became of each slot of a job: leases and claims.

One statement takes a lease, so of any number of takers exactly one gets it. The epoch rises by each
takeover; whoever writes an artefact shows the epoch in the same transaction, so that a worker which slept
through its own replacement cannot write any more. Expiry is judged by the database's clock.

A claim is one row per (run, job, slot), made once, whoever comes first. One that becomes a run keeps the
whole request, so that a worker which takes over finishes the same request and not a similar one. A skip is a
claim that is over at once: a slot is skipped once.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, Table, and_, case, func, select, update

from schemas.canonical import canonical_json
from services.store.database_time import insert_into, insert_once, now_ms
from services.store.repository import Lease, Repository
from services.store.tables import leases, slot_claims


@dataclass(frozen=True)
class SlotKey:
    """What a claim, a report and a verdict belong to. `slot` in ns."""

    run_id: str
    job: str
    slot: int


@dataclass(frozen=True)
class Claim:
    """What became of one slot.

    Attributes:
        key: the slot.
        state: claimed (under way, or its worker died), done, skipped or failed.
        owner: the worker that changed it last, under `epoch`.
        attempts: how often its run was begun.
        reason: why it was skipped or how it failed.
        facts: what decided, for people.
        request: canonical JSON of the request; None for a skip.
    """

    key: SlotKey
    state: Literal["claimed", "done", "skipped", "failed"]
    owner: str
    epoch: int
    attempts: int
    changed_ms: int
    reason: str | None
    facts: dict[str, Any]
    request_hash: str | None
    request: str | None


@dataclass(frozen=True)
class ClaimState:
    """Where the claims of a job stand: its newest slots, by what became of them, and its oldest open one."""

    newest: int | None
    newest_done: int | None
    newest_failed: int | None
    oldest_open: int | None


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
        tenure = (leases.c.owner == lease.owner) & (leases.c.epoch == lease.epoch)
        freed = update(leases).where(leases.c.name == lease.name, tenure).values(until_ms=0)
        await self._run_write(lambda connection: connection.execute(freed))

    async def list_in_force(self, prefix: str) -> list[Lease]:
        """The leases whose names begin so and that have not run out, by name."""
        named = leases.c.name.startswith(prefix, autoescape=True)
        query = select(leases).where(named, leases.c.until_ms > now_ms(self._url.dialect))
        return [Lease(*row) for row in await self._select(query.order_by(leases.c.name))]

    async def probe(self) -> None:
        """Write nothing, as a writer: whether the store would take a row now.

        Raises:
            StoreError: it would not.
        """
        await self.release(Lease("", "", 0, 0))

    async def holder(self, name: str) -> Lease | None:
        """The last owner of a lease; it has run out when `until_ms` lies in the past."""
        row = (await self._select(select(leases).where(leases.c.name == name))).one_or_none()
        return None if row is None else Lease(*row)


class ClaimRepository(Repository):
    """Makes and finishes claims, always under a lease.

    Whatever writes raises `LeaseLost` where the lease is another worker's by now.
    """

    async def claim(
        self, lease: Lease, key: SlotKey, request_hash: str, request: str, facts: dict[str, Any]
    ) -> bool:
        """Whether the slot is now this worker's to run; false when it was decided before."""
        values = {"state": "claimed", "attempts": 1, "request_hash": request_hash, "request": request}
        return await self._insert(lease, key, values | {"facts": canonical_json(facts)})

    async def skip(self, lease: Lease, key: SlotKey, reason: str, facts: dict[str, Any]) -> bool:
        """Whether this skip is the slot's first and only entry."""
        values = {"state": "skipped", "attempts": 0, "reason": reason}
        return await self._insert(lease, key, values | {"facts": canonical_json(facts)})

    async def resume(self, lease: Lease, claim: Claim) -> None:
        """Begin a claim again that another worker, or an earlier attempt, left unfinished."""
        await self._change(lease, claim.key, {"attempts": slot_claims.c.attempts + 1})

    async def fail(self, lease: Lease, key: SlotKey, reason: str) -> None:
        """Give up a claim; the slot stays without a report."""
        await self._change(lease, key, {"state": "failed", "reason": reason})

    async def newest_state(self, run_id: str, job: str) -> ClaimState:
        """Where the claims of a job stand, in one question."""
        slot, state = slot_claims.c.slot, slot_claims.c.state
        query = select(
            func.max(slot),
            func.max(case((state == "done", slot))),
            func.max(case((state == "failed", slot))),
            func.min(case((state == "claimed", slot))),
        ).where(_of(run_id, job))
        return ClaimState(*(await self._select(query)).one())

    async def get(self, key: SlotKey) -> Claim | None:
        """The claim of a slot."""
        row = (await self._select(select(slot_claims).where(at_slot(slot_claims, key)))).one_or_none()
        return None if row is None else _claim(row)

    async def all(self, run_id: str, job: str) -> list[Claim]:
        """Every claim of a job, by slot."""
        query = select(slot_claims).where(_of(run_id, job)).order_by(slot_claims.c.slot)
        return [_claim(row) for row in await self._select(query)]

    async def _insert(self, lease: Lease, key: SlotKey, values: dict[str, Any]) -> bool:
        row = {**vars(key), **values, **self._by(lease)}
        async with self._write(lease) as connection:
            result = await connection.execute(insert_once(self._url.dialect, slot_claims).values(row))
            return result.rowcount == 1

    async def _change(self, lease: Lease, key: SlotKey, values: dict[str, Any]) -> None:
        values = values | self._by(lease)
        async with self._write(lease) as connection:
            await connection.execute(update(slot_claims).where(claimed_slot(key)).values(values))

    def _by(self, lease: Lease) -> dict[str, Any]:
        return {"owner": lease.owner, "epoch": lease.epoch, "changed_ms": now_ms(self._url.dialect)}


def claimed_slot(key: SlotKey) -> ColumnElement[bool]:
    """The claim of a slot while it is under way."""
    return at_slot(slot_claims, key) & (slot_claims.c.state == "claimed")


def at_slot(table: Table, key: SlotKey) -> ColumnElement[bool]:
    """The row of a slot in a table."""
    return and_(table.c.run_id == key.run_id, table.c.job == key.job, table.c.slot == key.slot)


def _of(run_id: str, job: str) -> ColumnElement[bool]:
    return (slot_claims.c.run_id == run_id) & (slot_claims.c.job == job)


def _claim(row: Row[Any]) -> Claim:
    values = dict(row._mapping)
    key = SlotKey(values.pop("run_id"), values.pop("job"), values.pop("slot"))
    values["facts"] = json.loads(values["facts"])
    return Claim(key=key, **values)
