"""What a trading process keeps, on every dialect: only under its own lease, and with no hole in its bars."""

import asyncio

import pytest

from schemas.errors import StoreError
from services.feeds.port import BarRow
from services.journal.chain import GENESIS_HASH, JournalRow
from services.journal.writer import JournalWriter
from services.store import open_store
from services.store.records import Closing
from services.store.repository import Lease, LeaseLost
from tests.services.store.stores import new_run
from trading_core.live.growing_bars import Bar

HOUR = 3_600_000
BARS = [(number, BarRow(number, {"X": Bar(1.0, 2.0, 0.5, 1.5, 10.0)})) for number in range(6)]


class Kept:
    """A sink that keeps what is written."""

    def __init__(self):
        self.rows: list[JournalRow] = []

    async def write(self, rows):
        self.rows += rows


def journal_rows(*kinds: str) -> list[JournalRow]:
    sink = Kept()
    journal = JournalWriter(sink)
    for number, kind in enumerate(kinds):
        journal.append(kind, ts_event=number, known_at=number, payload={"order_id": f"o{number}"})
    asyncio.run(journal.flush())
    return sink.rows


EVENTS = journal_rows("policy_skip", "policy_skip")
ORDERS = journal_rows("order_accepted", "exit_filled")


def of_run(address, scenario):
    async def opened():
        async with await open_store(address, create=True) as store:
            return await scenario(store, (await store.runs.create(new_run(mode="paper"))).run_id)

    return asyncio.run(opened())


async def stored(store, run_id):
    """Everything that a commit may have left."""
    record = await store.runs.find(run_id)
    return {
        "bars": [row async for row in store.trading.rows(run_id)],
        "journal": [row async for row in store.journal.rows(run_id)],
        "orders": [order.order_id for order in await store.trading.list_unacknowledged(run_id)],
        "head": (record.events, record.head_hash),
    }


NOTHING = {"bars": [], "journal": [], "orders": [], "head": (0, GENESIS_HASH)}


async def taken_over(store):
    held = await store.leases.take("trading", "me", 0)
    await store.leases.take("trading", "other", HOUR)
    return held


async def released(store):
    held = await store.leases.take("trading", "me", HOUR)
    await store.leases.release(held)
    await store.leases.take("trading", "other", HOUR)
    return held


async def of_an_earlier_tenure(store):
    held = await taken_over(store)
    await store.leases.release(await store.leases.holder("trading"))
    await store.leases.take("trading", "me", HOUR)
    return held


async def never_taken(store):
    return Lease("trading", "me", 1, HOUR)


@pytest.mark.parametrize("lease_of", [taken_over, released, of_an_earlier_tenure, never_taken])
@pytest.mark.parametrize(
    ("bars", "rows"),
    [(BARS, []), ([], EVENTS), ([], ORDERS), (BARS, ORDERS)],
    ids=["bars", "journal", "orders", "all"],
)
def test_commit_under_a_stale_lease_is_refused_and_stores_nothing(address, lease_of, bars, rows):
    async def scenario(store, run_id):
        stale = await lease_of(store)
        with pytest.raises(LeaseLost, match="lease 'trading'"):
            await store.trading.commit(stale, run_id, bars, rows)
        return await stored(store, run_id)

    assert of_run(address, scenario) == NOTHING


@pytest.mark.parametrize("lease_of", [taken_over, never_taken])
def test_run_is_neither_closed_nor_reopened_nor_spoken_for_under_a_stale_lease(address, lease_of):
    async def scenario(store, run_id):
        stale = await lease_of(store)
        with pytest.raises(LeaseLost):
            await store.trading.commit(stale, run_id, [], [], Closing("finished", {"errors": 0}))
        with pytest.raises(LeaseLost):
            await store.trading.say(stale, run_id, {"state": "running"})
        before = (await store.runs.find(run_id)).status
        await store.runs.close(run_id, "interrupted")
        with pytest.raises(LeaseLost):
            await store.runs.reopen(run_id, stale)
        return before, (await store.runs.find(run_id)).status, await store.trading.last_seen(run_id)

    assert of_run(address, scenario) == ("running", "interrupted", None)


def test_run_that_is_closed_with_its_last_rows_is_closed_once_however_often_it_is_said(address):
    async def scenario(store, run_id):
        held = await store.leases.take("trading", "me", HOUR)
        for _ in range(2):
            await store.trading.commit(held, run_id, BARS, EVENTS, Closing("finished", {"errors": 0}))
        with pytest.raises(StoreError, match="nothing can be appended"):
            await store.trading.commit(held, run_id, [], ORDERS)
        return await stored(store, run_id), await store.runs.find(run_id)

    found, record = of_run(address, scenario)
    assert (len(found["bars"]), found["head"]) == (len(BARS), (2, EVENTS[-1].hash))
    assert (record.status, record.document) == ("finished", {"errors": 0})


def test_commit_under_its_lease_stores_bars_journal_and_orders_once(address):
    async def scenario(store, run_id):
        lease = await store.leases.take("trading", "me", HOUR)
        for _ in range(2):
            await store.trading.commit(lease, run_id, BARS, ORDERS)
        return await stored(store, run_id)

    assert of_run(address, scenario) == {
        "bars": [row for _, row in BARS],
        "journal": ORDERS,
        "orders": ["o0", "o1"],
        "head": (2, ORDERS[-1].hash),
    }


def test_commit_whose_journal_does_not_fit_leaves_none_of_its_bars(address):
    async def scenario(store, run_id):
        lease = await store.leases.take("trading", "me", HOUR)
        with pytest.raises(StoreError, match="row 1 would leave a gap"):
            await store.trading.commit(lease, run_id, BARS, EVENTS[1:])
        return await stored(store, run_id)

    assert of_run(address, scenario) == NOTHING


async def read(rows, seen):
    async for row in rows:
        seen.append(row.label)


@pytest.mark.parametrize(("start", "missing"), [(0, 0), (0, 1), (0, 3), (2, 2), (2, 4)])
def test_rows_of_bars_with_a_hole_are_refused_at_the_hole(address, start, missing):
    async def scenario(store, run_id):
        lease = await store.leases.take("trading", "me", HOUR)
        await store.trading.commit(lease, run_id, [bar for bar in BARS if bar[0] != missing], [])
        seen: list[int] = []
        with pytest.raises(StoreError, match=f"run '{run_id}': row {missing} of its bars is missing"):
            await read(store.trading.rows(run_id, start), seen)
        return seen

    assert of_run(address, scenario) == list(range(start, missing))
