"""Two guards on one store, of either dialect: what one decides binds the other."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest

from schemas.errors import OrderRefused
from schemas.guard import Account, GuardSettings, Order
from services.guard.desk import GuardDesk
from services.guard.recheck import recheck
from services.journal.chain import check_chain
from services.store import open_store

ACCOUNT = Account(equity=100_000.0)
NOW = 1_700_000_000_000_000_000


async def open_desk(address: str, times: "Iterator[int]", name: str = "guard") -> GuardDesk:
    return await GuardDesk.open(
        address, GuardSettings(), mode="enforce", name=name, clock=times.__next__, environment={}
    )


def order(quantity: float) -> Order:
    return Order(symbol="IBM", side="buy", quantity=quantity, price=100.0, stop=98.0)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/guard.sqlite"
    return request.getfixturevalue("postgres_url")


def test_two_guards_at_once_spend_each_verdict_once_and_keep_one_chain(address):
    async def scenario():
        times = itertools.count(NOW)
        desks = [await open_desk(address, times) for _ in range(2)]
        orders = [order(10.0 + n) for n in range(6)]
        verdicts = await asyncio.gather(
            *(desks[n % 2].check(order, ACCOUNT) for n, order in enumerate(orders))
        )

        async def spend(desk, number):
            try:
                await desk.spend(verdicts[number].id, orders[number])
            except OrderRefused:
                return 0
            return 1

        spent = await asyncio.gather(*(spend(desk, number) for number in range(6) for desk in desks))
        for desk in desks:
            await desk.close()
        async with await open_store(address, create=False) as store:
            run = await store.runs.find("latest")
            chain = await check_chain(
                store.journal.as_stored(run.run_id), events=run.events, head_hash=run.head_hash
            )
            rechecked = await recheck(store.journal.rows(run.run_id))
            return desks, sum(spent), chain, rechecked, len(await store.runs.all())

    desks, spent, chain, rechecked, runs = asyncio.run(scenario())
    assert desks[0].run_id == desks[1].run_id
    assert (spent, chain.ok, rechecked, runs) == (6, True, (chain.rows, None), 1)


def test_two_guards_whose_clocks_stand_at_one_time_use_a_verdict_once(address):
    async def scenario():
        desks = [await open_desk(address, itertools.repeat(NOW)) for _ in range(2)]
        verdicts = [await desk.check(order(10.0), ACCOUNT) for desk in desks]
        spent = []
        for desk in desks:  # both would write the same row
            try:
                await desk.spend(verdicts[0].id, order(10.0))
            except OrderRefused as refused:
                spent.append(str(refused)[-39:])
        for desk in desks:
            await desk.close()
        return [verdict.status for verdict in verdicts], verdicts[0].id != verdicts[1].id, spent

    statuses, differ, spent = asyncio.run(scenario())
    assert (statuses, differ) == (["pass", "block"], True)
    assert spent == ["was spent before: check the order again"]


def test_two_guards_that_are_opened_at_once_share_one_run(address):
    async def scenario():
        await (await open_store(address, create=True)).close()
        times = itertools.count(NOW)
        desks = await asyncio.gather(*(open_desk(address, times) for _ in range(3)))
        for desk in desks:
            await desk.close()
        return {desk.run_id for desk in desks}

    assert len(asyncio.run(scenario())) == 1


def test_guard_of_another_name_has_limits_of_its_own(address):
    async def scenario():
        times = itertools.count(NOW)
        first = await open_desk(address, times, "one")
        other = await open_desk(address, times, "two")
        verdicts = [await desk.check(order(10.0), ACCOUNT) for desk in (first, other)]
        for desk in (first, other):
            await desk.close()
        return [verdict.status for verdict in verdicts], first.run_id == other.run_id

    assert asyncio.run(scenario()) == (["pass", "pass"], False)
