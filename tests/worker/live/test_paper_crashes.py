"""A paper process may die between any two steps: the next one goes on, and nothing shows in the journal."""

from functools import cache

import pytest

from schemas.settings import Settings
from tests.worker.live.paper_runs import killed, read_requests, traded, waiting_feed
from tests.worker.shared_runs import embedded_bars, run_on
from trading_core.bars import BarSeries
from worker.live.committer import CRASH_POINTS

TIMES = {
    "validated": (1, 120, 90),
    "committed": (1, 120, 90),
    "intended": (1, 2, 3),
    "sent": (1, 3, 5),
    "acknowledged": (1, 2, 4),
}


@cache
def bars() -> BarSeries:
    return embedded_bars("2009-01-01", "2009-12-31").select(("AAPL", "IBM"))


@cache
def head_of_the_backtest() -> str:
    return str(run_on(bars()).document["journal"]["head_hash"])


async def _venue(store) -> dict[str, int]:
    run_id = (await store.runs.find("latest")).run_id
    sent: dict[str, int] = await store.trading.at_venue(f"paper/{run_id}")
    return sent


async def _orders(store) -> list[str]:
    run_id = (await store.runs.find("latest")).run_id
    kinds = {"order_accepted", "exit_filled", "scale_out_filled"}
    return [row.seq async for row in store.journal.rows(run_id, kinds=kinds)]


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_paper_process_killed_at_a_point_goes_on_to_the_same_head(tmp_path, point) -> None:
    feed = waiting_feed(bars())
    for time in TIMES[point]:
        assert killed(tmp_path, Settings(), feed, point, time), "it has to die for this to mean something"
    outcome = traded(tmp_path, Settings(), feed)
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == head_of_the_backtest()
    assert outcome.record.run_id == "r0001"
    sent, orders = read_requests(tmp_path, _venue), read_requests(tmp_path, _orders)
    assert len(sent) == len(orders) > 4, "none is lost and none is new"
    again = sum(count - 1 for count in sent.values())
    assert (again > 0) == (point == "sent"), "sent again only where nobody could know"


def test_paper_restart_twice_changes_nothing(tmp_path) -> None:
    feed = waiting_feed(bars())
    assert killed(tmp_path, Settings(), feed, "committed", 200)

    async def standing(store):
        record = await store.runs.find("latest")
        return record.events, record.head_hash, await _venue(store)

    before = read_requests(tmp_path, standing)
    for _ in range(2):
        assert killed(tmp_path, Settings(), feed, "validated", 1), "it dies before anything new is stored"
        assert read_requests(tmp_path, standing) == before
