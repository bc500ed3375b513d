"""Who may act: one statement decides among any number of takers, on every dialect."""

import asyncio

import pytest

from services.store import open_store
from services.store.repository import LeaseLost
from tests.services.store.artefacts import key
from tests.services.store.stores import new_run

HOUR = 3_600_000
EXPIRED = 0


def of_store(address, scenario):
    async def opened():
        async with await open_store(address, create=True) as store:
            return await scenario(store)

    return asyncio.run(opened())


def test_lease_taken_by_many_at_once_has_one_holder(address):
    async def scenario(store):
        async with await open_store(address, create=True) as other:
            takers = [(store, other)[n % 2].leases.take("x", f"w{n}", HOUR) for n in range(20)]
            return [lease for lease in await asyncio.gather(*takers) if lease is not None]

    held = of_store(address, scenario)
    assert len(held) == 1
    assert held[0].epoch == 1


def test_lease_renewed_by_its_owner_keeps_its_epoch_and_lasts_longer(address):
    async def scenario(store):
        first = await store.leases.take("x", "a", HOUR)
        return first, await store.leases.take("x", "b", HOUR), await store.leases.take("x", "a", 2 * HOUR)

    first, other, renewed = of_store(address, scenario)
    assert other is None
    assert renewed.epoch == first.epoch
    assert renewed.until_ms >= first.until_ms + HOUR


def test_lease_that_ran_out_is_taken_over_under_the_next_epoch(address):
    async def scenario(store):
        taken = [await store.leases.take("x", owner, EXPIRED) for owner in "abca"]
        return [(lease.owner, lease.epoch) for lease in taken], await store.leases.holder("x")

    tenures, holder = of_store(address, scenario)
    assert tenures == [("a", 1), ("b", 2), ("c", 3), ("a", 4)]
    assert (holder.owner, holder.epoch) == ("a", 4)


def test_lease_released_is_free_at_once_and_only_by_its_holder(address):
    async def scenario(store):
        old = await store.leases.take("x", "a", EXPIRED)
        present = await store.leases.take("x", "b", HOUR)
        await store.leases.release(old)
        refused = await store.leases.take("x", "c", HOUR)
        await store.leases.release(present)
        return refused, await store.leases.take("x", "c", HOUR)

    refused, taken = of_store(address, scenario)
    assert refused is None
    assert taken.epoch == 3


def test_leases_in_force_are_those_of_such_names_that_have_not_run_out(address):
    async def scenario(store):
        for name, ttl in (("a_/2", HOUR), ("a_/1", HOUR), ("a_/0", EXPIRED), ("ab/3", HOUR), ("b", HOUR)):
            await store.leases.take(name, f"owner of {name}", ttl)
        await store.leases.release(await store.leases.take("a_/4", "x", HOUR))
        return [(lease.name, lease.owner) for lease in await store.leases.list_in_force("a_/")]

    assert of_store(address, scenario) == [("a_/1", "owner of a_/1"), ("a_/2", "owner of a_/2")]


def test_lease_of_one_name_says_nothing_about_another(address):
    async def scenario(store):
        return await store.leases.take("x", "a", HOUR), await store.leases.take("y", "b", HOUR)

    assert None not in of_store(address, scenario)


@pytest.mark.parametrize("taken_over", [False, True])
def test_write_under_a_stale_epoch_is_refused_and_leaves_nothing(address, taken_over):
    async def scenario(store):
        run_id = (await store.runs.create(new_run())).run_id
        lease = await store.leases.take("x", "a", EXPIRED)
        if taken_over:
            await store.leases.take("x", "b", HOUR)
            with pytest.raises(LeaseLost, match="is at epoch 2, this worker held epoch 1"):
                await store.claims.skip(lease, key(run_id), "disabled", {})
        else:
            await store.claims.skip(lease, key(run_id), "disabled", {})
        return await store.claims.all(run_id, "slow_loop")

    assert len(of_store(address, scenario)) == (0 if taken_over else 1)
