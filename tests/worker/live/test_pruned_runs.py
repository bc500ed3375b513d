"""A pruned run: it goes on after a kill, replays, resolves, and what was cut beyond the pruning is found."""

from functools import cache

import pytest
from sqlalchemy import text

from schemas.settings import Settings
from services.journal.kinds import PRUNABLE_KINDS
from services.store import Store
from tests.worker.live.paper_runs import killed, read_requests, replayed, rows_stored, traded, waiting_feed
from tests.worker.shared_runs import run_on
from trading_core.bars import BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.review.verification import verify_run

LATE = 2**62


@cache
def bars() -> BarSeries:
    return make_world("reverting", seed=3, bars=160, symbols=2)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/paper.db"
    return request.getfixturevalue("postgres_url")


def prune(place, before=LATE):
    async def work(store: Store):
        return await store.retention.prune((await store.runs.find("latest")).run_id, before)

    return read_requests(place, work)


def verified(place):
    async def work(store: Store):
        return await verify_run(store, await store.runs.find("latest"))

    return read_requests(place, work)


def long_rows(place):
    return [row for row in rows_stored(place) if row.kind in PRUNABLE_KINDS]


def test_pruned_run_that_was_killed_goes_on_as_if_nothing_was_cut(place):
    assert killed(place, Settings(), waiting_feed(bars()), "committed", 120)
    cut = len(long_rows(place))
    done = prune(place)
    assert (done.rows, long_rows(place)) == (cut, [])
    assert cut > 5
    assert traded(place, Settings(), waiting_feed(bars())).record.status == "finished"
    report = replayed(place, Settings())
    assert (report.ok, report.problem) == (True, None)
    assert report.head_hash == run_on(bars()).document["journal"]["head_hash"]
    assert long_rows(place)[0].seq > done.checkpoint


def test_pruned_rows_are_no_dangling_ids_and_a_second_time_nothing_is_left(place):
    traded(place, Settings(), waiting_feed(bars()))
    rows = rows_stored(place)
    half = rows[len(rows) // 2].known_at
    done = prune(place, half)
    assert done.checkpoint == max(row.seq for row in rows if row.known_at < half)
    assert {row.seq for row in rows} - {row.seq for row in rows_stored(place)} == {
        row.seq for row in rows if row.known_at < half and row.kind in PRUNABLE_KINDS
    }
    assert (prune(place, half).rows, prune(place, 0).checkpoint) == (0, None)
    found = verified(place)
    assert (found["references"]["dangling"], found["stored"]["problems"]) == ((), [])
    assert found["references"]["pruned"] > 0
    assert found["chain"]["rows"] == len(rows)


@pytest.mark.parametrize("kind", ["policy_reflection", "policy_frozen"])
def test_text_that_is_cut_beyond_the_pruning_is_found(place, kind):
    traded(place, Settings(), waiting_feed(bars()))
    rows = rows_stored(place)
    prune(place, rows[len(rows) // 2].known_at)
    last = max(row.seq for row in rows if row.kind == kind)

    async def cut(store: Store):
        async with store.retention._write() as connection:
            await connection.execute(text("UPDATE journal SET payload = '' WHERE seq = :seq"), {"seq": last})

    read_requests(place, cut)
    found = verified(place)
    assert not found["ok"]
    problems = [*found["stored"]["problems"], str(found["chain"]["problem"])]
    assert any(f"row {last} " in problem for problem in problems)
