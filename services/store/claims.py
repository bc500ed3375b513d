"""Claims: one row per (run, job, slot), made once, whoever comes first.

A claim that becomes a run keeps the whole request, so that a worker which takes over finishes the same
request and not a similar one. A skip is a claim that is over at once: a slot is skipped once.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import ColumnElement, Row, case, func, select, update

from schemas.canonical import canonical_json
from services.store.database_time import insert_once, now_ms
from services.store.repository import Lease, Repository
from services.store.tables import slot_claims


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


class ClaimRepository(Repository):
    """Makes and finishes claims, always under a lease."""

    async def claim(
        self, lease: Lease, key: SlotKey, request_hash: str, request: str, facts: dict[str, Any]
    ) -> bool:
        """Whether the slot is now this worker's to run; false when it was decided before.

        Raises:
            LeaseLost: the lease is another worker's by now.
        """
        values = {"state": "claimed", "attempts": 1, "request_hash": request_hash, "request": request}
        return await self._insert(lease, key, values | {"facts": canonical_json(facts)})

    async def skip(self, lease: Lease, key: SlotKey, reason: str, facts: dict[str, Any]) -> bool:
        """Whether this skip is the slot's first and only entry.

        Raises:
            LeaseLost: the lease is another worker's by now.
        """
        values = {"state": "skipped", "attempts": 0, "reason": reason}
        return await self._insert(lease, key, values | {"facts": canonical_json(facts)})

    async def resume(self, lease: Lease, claim: Claim) -> None:
        """Begin a claim again that another worker, or an earlier attempt, left unfinished.

        Raises:
            LeaseLost: the lease is another worker's by now.
        """
        await self._change(lease, claim.key, {"attempts": slot_claims.c.attempts + 1})

    async def fail(self, lease: Lease, key: SlotKey, reason: str) -> None:
        """Give up a claim; the slot stays without a report.

        Raises:
            LeaseLost: the lease is another worker's by now.
        """
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
        async with self._read() as connection:
            return ClaimState(*(await connection.execute(query)).one())

    async def get(self, key: SlotKey) -> Claim | None:
        """The claim of a slot."""
        async with self._read() as connection:
            row = (await connection.execute(select(slot_claims).where(_at(key)))).one_or_none()
        return None if row is None else _claim(row)

    async def all(self, run_id: str, job: str) -> list[Claim]:
        """Every claim of a job, by slot."""
        async with self._read() as connection:
            query = select(slot_claims).where(_of(run_id, job)).order_by(slot_claims.c.slot)
            found = (await connection.execute(query)).all()
        return [_claim(row) for row in found]

    async def _insert(self, lease: Lease, key: SlotKey, values: dict[str, Any]) -> bool:
        row = {**vars(key), **values, "owner": lease.owner, "epoch": lease.epoch}
        row["changed_ms"] = now_ms(self._url.dialect)
        async with self._write(lease) as connection:
            result = await connection.execute(insert_once(self._url.dialect, slot_claims).values(row))
            return result.rowcount == 1

    async def _change(self, lease: Lease, key: SlotKey, values: dict[str, Any]) -> None:
        values = {**values, "owner": lease.owner, "epoch": lease.epoch}
        values["changed_ms"] = now_ms(self._url.dialect)
        async with self._write(lease) as connection:
            await connection.execute(update(slot_claims).where(claimed_slot(key)).values(values))


def claimed_slot(key: SlotKey) -> ColumnElement[bool]:
    """The claim of a slot while it is under way."""
    return _at(key) & (slot_claims.c.state == "claimed")


def _at(key: SlotKey) -> ColumnElement[bool]:
    return _of(key.run_id, key.job) & (slot_claims.c.slot == key.slot)


def _of(run_id: str, job: str) -> ColumnElement[bool]:
    return (slot_claims.c.run_id == run_id) & (slot_claims.c.job == job)


def _claim(row: Row[Any]) -> Claim:
    values = dict(row._mapping)
    key = SlotKey(values.pop("run_id"), values.pop("job"), values.pop("slot"))
    values["facts"] = json.loads(values["facts"])
    return Claim(key=key, **values)
