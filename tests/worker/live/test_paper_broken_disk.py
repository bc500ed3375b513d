"""The disk under a paper run fills up, is write-protected, or loses a file: it ends in words and recovers."""

import asyncio
import sqlite3
from contextlib import closing
from functools import cache
from typing import Any

import pytest
from sqlalchemy import text

from schemas.errors import StoreError
from schemas.settings import Settings
from services.journal.chain import check_chain
from services.store import open_store
from tests.worker.live.paper_runs import address, process_in, read_requests, traded, waiting_feed
from tests.worker.shared_runs import embedded_bars, run_on
from trading_core.bars import BarSeries

AT_ROW = 120


@cache
def bars() -> BarSeries:
    return embedded_bars("2009-01-01", "2009-12-31").select(("AAPL", "IBM"))


@cache
def head_of_the_backtest() -> str:
    return str(run_on(bars()).document["journal"]["head_hash"])


class BreaksAt:
    """Breaks the database when so many rows of bars are validated."""

    def __init__(self, statement: str) -> None:
        self._statement = statement
        self._rows = 0
        self.store: Any = None

    def reach(self, point: str) -> None:
        self._rows += point == "validated"

    @property
    def due(self) -> bool:
        return self._rows == AT_ROW


async def _broken(folder: Any, statement: str) -> None:
    """Trade until the statement was said to the connection of the store."""
    async with await open_store(address(folder), create=True) as store:
        point = BreaksAt(statement)
        trading: Any = store.trading
        commit = trading.commit

        async def breaking(*given: Any) -> None:
            if point.due:
                async with store._engine.begin() as connection:
                    await connection.execute(text(statement))
            await commit(*given)

        trading.commit = breaking
        await process_in(store, Settings(), waiting_feed(bars()), [], points=point)


async def _whole(store: Any) -> bool:
    record = await store.runs.find("latest")
    rows = store.journal.rows(record.run_id)
    return (await check_chain(rows, events=record.events, head_hash=record.head_hash)).ok


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("PRAGMA max_page_count = 1", "the disk is full"),
        ("PRAGMA query_only = 1", "is read-only"),
    ],
)
def test_paper_run_on_a_disk_that_takes_nothing_ends_in_words_and_goes_on_later(
    tmp_path, statement, problem
) -> None:
    with pytest.raises(StoreError, match=problem) as ended:
        asyncio.run(_broken(tmp_path, statement))
    assert not ended.value.retryable
    assert read_requests(tmp_path, _whole), "no half event"
    outcome = traded(tmp_path, Settings(), waiting_feed(bars()))
    assert outcome.document is not None
    assert outcome.record.run_id == "r0001"
    assert outcome.document["journal"]["head_hash"] == head_of_the_backtest()


def test_paper_run_whose_write_ahead_log_is_gone_goes_on_from_what_is_left(tmp_path) -> None:
    from tests.worker.live.paper_runs import killed

    assert killed(tmp_path, Settings(), waiting_feed(bars()), "committed", AT_ROW)
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert killed(tmp_path, Settings(), waiting_feed(bars()), "committed", AT_ROW // 2)
    for name in ("paper.db-wal", "paper.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    assert read_requests(tmp_path, _whole), "no half event"
    outcome = traded(tmp_path, Settings(), waiting_feed(bars()))
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == head_of_the_backtest()
