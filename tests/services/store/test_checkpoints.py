"""Savepoints in the store: the newest with what it builds on, fenced, and never believed when damaged."""

import asyncio
from dataclasses import replace

import pytest
from sqlalchemy import update

from services.store import open_store
from services.store.checkpoints import DamagedSavepoint, Savepoint
from services.store.records import Closing
from services.store.repository import LeaseLost
from services.store.tables import savepoints
from tests.services.store.stores import new_run

HOUR = 3_600_000


def point(number: int) -> Savepoint:
    return Savepoint(number, 10 * number, 100 * number, "code", (b"added %d" % number,), b"state %d" % number)


def with_run(address, scenario):
    async def opened():
        async with await open_store(address, create=True) as store:
            run_id = (await store.runs.create(new_run())).run_id
            lease = await store.leases.take("trading", "me", HOUR)
            return await scenario(store, run_id, lease)

    return asyncio.run(opened())


async def count(store) -> int:
    async with store._engine.begin() as connection:
        return len((await connection.execute(savepoints.select())).all())


def test_savepoint_whose_answer_was_lost_gives_way_to_the_next_of_its_number(address):
    async def scenario(store, run_id, lease):
        for number in (0, 1):
            await store.savepoints.save(lease, run_id, point(number), whole=number == 0)
        more = replace(point(1), bars=15, added=(b"added 1 and 2",), state=b"later")
        await store.savepoints.save(lease, run_id, more, whole=False)
        return await store.savepoints.newest(run_id), await count(store)

    found, stored = with_run(address, scenario)
    assert found == replace(point(1), bars=15, added=(b"added 0", b"added 1 and 2"), state=b"later")
    assert stored == 2


def test_savepoint_newest_has_its_state_and_what_every_one_before_added(address):
    async def scenario(store, run_id, lease):
        assert await store.savepoints.newest(run_id) is None
        for number in range(3):
            await store.savepoints.save(lease, run_id, point(number), whole=number == 0)
        return await store.savepoints.newest(run_id), await count(store)

    found, stored = with_run(address, scenario)
    assert found == replace(point(2), added=(b"added 0", b"added 1", b"added 2"))
    assert stored == 3


def test_savepoint_that_is_whole_replaces_those_before_it(address):
    async def scenario(store, run_id, lease):
        for number in range(3):
            await store.savepoints.save(lease, run_id, point(number), whole=number != 1)
        return await store.savepoints.newest(run_id), await count(store)

    found, stored = with_run(address, scenario)
    assert found == point(2)
    assert stored == 1


def test_savepoint_of_a_process_that_lost_its_lease_is_refused(address):
    async def scenario(store, run_id, lease):
        await store.savepoints.save(lease, run_id, point(0), whole=True)
        await store.leases.release(lease)
        await store.leases.take("trading", "other", HOUR)
        with pytest.raises(LeaseLost):
            await store.savepoints.save(lease, run_id, point(1), whole=True)
        return await store.savepoints.newest(run_id)

    assert with_run(address, scenario) == point(0)


@pytest.mark.parametrize("column", ["added", "state"])
def test_savepoint_with_a_changed_byte_is_not_believed(address, column):
    async def scenario(store, run_id, lease):
        await store.savepoints.save(lease, run_id, point(0), whole=True)
        async with store._engine.begin() as connection:
            stored = (await connection.execute(savepoints.select())).one()._mapping[column]
            changed = stored[:-1] + bytes([stored[-1] ^ 1])
            await connection.execute(update(savepoints).values({column: changed}))
        with pytest.raises(DamagedSavepoint, match="is damaged"):
            await store.savepoints.newest(run_id)

    with_run(address, scenario)


@pytest.mark.parametrize(("status", "left"), [("finished", 0), ("interrupted", 1)])
def test_savepoint_of_a_run_that_is_over_goes_with_its_end(address, status, left):
    async def scenario(store, run_id, lease):
        await store.savepoints.save(lease, run_id, point(0), whole=True)
        await store.trading.commit(lease, run_id, [], [], Closing(status))
        return await count(store)

    assert with_run(address, scenario) == left
