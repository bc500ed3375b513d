"""Savepoints of paper runs: what each one added, and the state of the newest.

A savepoint only saves time: whoever cannot use one plays the run from its first bar. Every text is sealed
with its hash, so that a damaged one is passed over and never believed.
"""

import hashlib
from dataclasses import dataclass

from sqlalchemy import delete, select, update

from schemas.errors import StoreError
from services.store.connections import AsyncConnection
from services.store.repository import Lease, Repository
from services.store.tables import savepoints

SEAL = hashlib.sha256().digest_size


class DamagedSavepoint(StoreError):
    """What is stored is not what was written."""


@dataclass(frozen=True)
class Savepoint:
    """A moment of a run between two rows of bars.

    Attributes:
        number: of this savepoint within its run.
        bars: rows of bars that were taken before it.
        events: journal rows before it.
        code: the program that wrote it.
        added: what it and the savepoints that it builds on have added, oldest first.
        state: what may have changed since the one before.
    """

    number: int
    bars: int
    events: int
    code: str
    added: tuple[bytes, ...]
    state: bytes


class SavepointRepository(Repository):
    """The newest savepoint of each run with what it builds on."""

    async def save(self, lease: Lease, run_id: str, point: Savepoint, *, whole: bool) -> None:
        """Store a savepoint; the state of older ones goes.

        One of this number may be stored already, by a call whose answer was lost: it gives way.

        Args:
            lease: of the writer; fenced.
            run_id: the run.
            point: with what it adds itself as the only item of `added`.
            whole: it builds on no other, and those go.

        Raises:
            LeaseLost: another process trades this run.
            StoreError: the store failed.
        """
        own = savepoints.c.run_id == run_id
        gives_way = delete(savepoints).where(own if whole else own & (savepoints.c.number >= point.number))
        values = {
            "run_id": run_id,
            "number": point.number,
            "bars": point.bars,
            "events": point.events,
            "code": point.code,
            "added": seal(point.added[0]),
            "state": seal(point.state),
        }

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(gives_way)
            await connection.execute(update(savepoints).where(own).values(state=None))
            await connection.execute(savepoints.insert(), values)

        await self._run_write(work, lease)

    async def newest(self, run_id: str) -> Savepoint | None:
        """The newest savepoint of a run; None when there is none.

        Raises:
            DamagedSavepoint: something in it is not what was written.
            StoreError: the store failed.
        """
        query = select(savepoints).where(savepoints.c.run_id == run_id).order_by(savepoints.c.number)
        found = (await self._select(query)).all()
        if not found:
            return None
        last = found[-1]
        added = tuple(unseal(row.added) for row in found)
        return Savepoint(last.number, last.bars, last.events, last.code, added, unseal(last.state))


def seal(text: bytes) -> bytes:
    """A text behind its hash."""
    return hashlib.sha256(text).digest() + text


def unseal(stored: bytes | None) -> bytes:
    """The text behind its hash.

    Raises:
        DamagedSavepoint: the two do not belong together.
    """
    if stored is None or hashlib.sha256(stored[SEAL:]).digest() != stored[:SEAL]:
        raise DamagedSavepoint("the savepoint in the store is damaged")
    return stored[SEAL:]
