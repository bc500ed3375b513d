"""A paper run over recorded bars is the backtest over the same bars, row by row of the journal."""

import json
import shutil
import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest

from schemas.settings import Settings
from services.store.failures import StoreDamaged
from tests.worker.live.paper_runs import read_requests, replayed, traded, waiting_feed
from tests.worker.shared_runs import Run, embedded_bars, run_on
from worker.live.process import PaperOutcome

BARS = ("2009-01-01", "2011-06-30")


@cache
def backtest() -> Run:
    return run_on(embedded_bars(*BARS))


@pytest.fixture(scope="module")
def paper(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PaperOutcome]:
    """The folder of a paper run over these bars, and what it came to."""
    folder = tmp_path_factory.mktemp("paper")
    return folder, traded(folder, Settings(), waiting_feed(embedded_bars(*BARS)))


def test_paper_replay_has_the_decisions_fills_episodes_and_head_hash_of_the_backtest(paper) -> None:
    expected = backtest()
    _, outcome = paper
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == expected.document["journal"]["head_hash"]
    assert len(expected.of("episode")) > 20
    assert expected.of("high_level_report")
    unlike = {"run_id", "journal", "timing", "policy_loop", "memory", "high_level"}  # latencies among them
    assert {k: v for k, v in outcome.document.items() if k not in unlike} == {
        k: v for k, v in expected.document.items() if k not in unlike
    }
    assert outcome.document["errors"] == 0


def test_paper_run_keeps_what_verify_needs(paper) -> None:
    report = replayed(paper[0], Settings())
    assert (report.ok, report.problem) == (True, None)
    assert report.compared == report.stored == len(backtest().rows)


def test_paper_bar_that_was_changed_in_the_store_does_not_verify(paper, tmp_path) -> None:
    shutil.copytree(paper[0], tmp_path, dirs_exist_ok=True)
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store:
        (text,) = store.execute("select bars from paper_bars where number = 300").fetchone()
        row = json.loads(text)
        row["bars"]["AAPL"] = [1.01 * value for value in row["bars"]["AAPL"]]
        store.execute("update paper_bars set bars = ? where number = 300", (json.dumps(row),))
        store.commit()
    report = replayed(tmp_path, Settings())
    assert not report.ok
    assert "row 300 of its bars is damaged" in str(report.problem)
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store:
        store.execute("update runs set description_hash = ''")
        store.commit()
    with pytest.raises(StoreDamaged, match="its description .* was changed"):
        replayed(tmp_path, Settings())


def test_paper_orders_reach_the_venue_once_each(paper) -> None:
    folder, outcome = paper

    async def venue(store) -> dict[str, int]:
        sent: dict[str, int] = await store.trading.at_venue(f"paper/{outcome.record.run_id}")
        return sent

    sent = read_requests(folder, venue)
    expected = backtest().of("order_accepted", "exit_filled", "scale_out_filled")
    assert sorted(sent) == sorted(order["order_id"] for order in expected)
    assert set(sent.values()) == {1}
