"""A paper run that is over is asked like any other: its session is made again from what it took in."""

import json
import sqlite3
from contextlib import closing
from functools import cache
from typing import Any

import pytest

from schemas.errors import ConfigError
from schemas.settings import Settings
from services.store import Store
from tests.worker.live.paper_runs import read_requests, traded, waiting_feed
from tests.worker.replays import paper_replay
from tests.worker.shared_runs import embedded_bars
from trading_core.bars import BarSeries
from worker.runs.replay import Rebuilt


@cache
def bars() -> BarSeries:
    return embedded_bars("2009-01-01", "2009-12-31").select(("AAPL", "IBM"))


def rebuilt(folder: Any, at: int | None = None) -> Rebuilt:
    async def ask(store: Store) -> Rebuilt:
        return await paper_replay(Settings(), store, await store.runs.find("latest")).rebuild(at)

    found: Rebuilt = read_requests(folder, ask)
    return found


def test_paper_run_is_rebuilt_to_its_end_or_to_a_time(tmp_path) -> None:
    outcome = traded(tmp_path, Settings(), waiting_feed(bars()))
    assert outcome.result is not None
    whole = rebuilt(tmp_path)
    assert whole.row == bars().shape[0] - 1
    assert whole.session.slow_loop.facts.episodes == outcome.result.trades
    assert whole.compared > 100
    middle = int(bars().close_times[120])
    part = rebuilt(tmp_path, middle + 1)
    assert (part.row, part.known_at) == (120, middle)
    assert part.session.journal.events < whole.session.journal.events
    with pytest.raises(ConfigError, match="had not closed a bar"):
        rebuilt(tmp_path, int(bars().close_times[0]) - 1)


def test_paper_run_whose_bars_were_changed_is_not_answered_for(tmp_path) -> None:
    traded(tmp_path, Settings(), waiting_feed(bars()))
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store:
        (text,) = store.execute("select bars from paper_bars where number = 100").fetchone()
        row = json.loads(text)
        row["bars"]["IBM"] = [1.01 * value for value in row["bars"]["IBM"]]
        store.execute("update paper_bars set bars = ? where number = 100", (json.dumps(row),))
        store.commit()
    with pytest.raises(ConfigError, match="thinktwice verify"):
        rebuilt(tmp_path)
