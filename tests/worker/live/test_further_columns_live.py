"""Rules of a paper run read further columns of the bars as a backtest does, over restarts and savepoints."""

import asyncio
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.playbooks.loader import parse_playbook
from services.store import open_store
from tests.worker.live.paper_runs import (
    KillAt,
    Killed,
    address,
    process_in,
    replayed,
    waiting_feed,
)
from tests.worker.shared_runs import Run, embedded_bars, run_on
from trading_core.bars import BarSeries
from worker.live.process import PaperOutcome
from worker.live.process_inputs import Pace

Shown = list[tuple[str, dict[str, Any]]]
FUNDING = """
id = "funding"
[rules.long]
setup = "x.funding < -0.5 and prev(x.funding, 2) < 0"
stop = "close - 2 * atr_14"
exit = "x.funding > 0.3"
"""


@cache
def bars() -> BarSeries:
    found = embedded_bars("2009-01-01", "2010-06-30").select(("AAPL", "IBM"))
    phase = np.arange(found.shape[0])[:, np.newaxis] / 9.0 + np.arange(2)
    values = np.where(np.arange(found.shape[0])[:, np.newaxis] % 17 == 5, np.nan, np.sin(phase))
    return replace(found, extra={"funding": values, "spare": np.full(found.shape, 1.0)})


@cache
def books() -> tuple[PlaybookDefinition, ...]:
    return (parse_playbook(FUNDING.encode(), Path("funding.toml")),)


@cache
def batch() -> Run:
    return run_on(bars(), definitions=books())


def traded(folder: Path, shown: Shown | None = None, **named: Any) -> PaperOutcome:
    lines = [] if shown is None else shown

    async def run() -> PaperOutcome:
        async with await open_store(address(folder), create=True) as store:
            pace = Pace(events=10**9, rows=50, share=0.0)
            feed = waiting_feed(bars())
            return await process_in(store, Settings(), feed, lines, definitions=books(), pace=pace, **named)

    return asyncio.run(run())


def test_paper_run_reads_further_columns_as_the_backtest_does_over_restarts(tmp_path):
    assert len(batch().of("exit_filled")) > 10
    head = batch().document["journal"]["head_hash"]
    for rows in (120, 90):
        with pytest.raises(Killed):
            traded(tmp_path, points=KillAt("validated", rows))
    outcome = traded(tmp_path)
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == head
    assert outcome.document["errors"] == 0
    assert replayed(tmp_path, Settings(), definitions=books()).ok


def test_savepoint_keeps_what_further_columns_said(tmp_path):
    with pytest.raises(Killed):
        traded(tmp_path, points=KillAt("validated", 140))
    shown: Shown = []
    outcome = traded(tmp_path, shown)
    (recovered,) = [detail for name, detail in shown if name == "recovered"]
    assert recovered["rows_played"] <= 50 < recovered["rows"]
    assert [name for name, _ in shown if name == "savepoint_not_used"] == []
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == batch().document["journal"]["head_hash"]
