"""A symbol without a bar while a position of it is open: what waits for it is told with its cause."""

import asyncio
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from services.journal.index import JournalIndex
from tests.services.journal.rows import stream
from tests.worker.shared_runs import Run, embedded_bars, run_on
from worker.pages.report_html import report_html
from worker.pages.report_markdown import report_markdown
from worker.pages.run_marks import ENTRY_KINDS, document_of_entry, report_entries
from worker.pages.run_summary import RunSummary
from worker.review.pictured import picture_of

LAST = np.datetime64("2005-03-18", "ns").astype(np.int64)  # the day after an entry
STOPPED = (
    "squeeze_breakout: its short IBM is open since 2005-03-17, and IBM has no bar after 2005-03-18: no trade "
    "that the playbook entered from 2005-03-01 on counts at the gate before it is closed"
)


@cache
def stopped_run() -> Run:
    """The embedded bars of three and a half years, those of IBM up to the second bar of a position."""
    bars = embedded_bars("2003-01-01", "2006-06-30")
    present = bars.present.copy()
    present[bars.times > LAST, bars.symbols.index("IBM")] = False
    open_, high, low, close, volume = (
        np.where(present, column, np.nan)
        for column in (bars.open, bars.high, bars.low, bars.close, bars.volume)
    )
    left = replace(bars, present=present, open=open_, high=high, low=low, close=close, volume=volume)
    return run_on(left)


def index_of(run: Run) -> JournalIndex:
    return asyncio.run(JournalIndex.read(stream(run.rows)))


def entries(run: Run) -> list[dict[str, Any]]:
    rows = [event for event in index_of(run).events if event.row.kind in ENTRY_KINDS]
    return report_entries((event.row, event.payload) for event in rows)


def test_open_position_of_a_symbol_that_stopped_trading_is_told_with_what_waits_for_it():
    run = stopped_run()
    assert run.result.stale_positions == [STOPPED]
    assert STOPPED in RunSummary(picture_of("r", "finished", run.result, index_of(run))).notices


def test_report_names_the_position_that_trades_wait_for():
    entry = entries(stopped_run())[-1]
    shown = [line for line in entry["waiting"] if "squeeze_breakout" in line]
    assert len(shown) == 1
    assert shown[0].endswith(
        "Its position short IBM is open since 2005-03-17: no trade entered in the month of that day or "
        "later counts before that one is closed."
    )
    (cluster,) = (
        found
        for found in entry["report"]["clusters"]
        if (found["playbook_id"], found["regime"], found["timeframe"]) == ("squeeze_breakout", None, None)
    )
    waiting = cluster["n"] - cluster["counted"]
    assert shown[0].startswith(
        f"{waiting} of {cluster['n']} trades of squeeze_breakout do not count yet: a month"
    )
    page = report_markdown(entry)
    assert f"- {shown[0]}\n" in page
    assert "not complete" not in page
    assert shown[0] in report_html(entry)
    assert "waiting" not in document_of_entry(entry)


def test_report_tells_of_every_playbook_whose_trades_wait_and_of_no_other():
    for entry in entries(stopped_run()):
        waits = [
            f"{found['n'] - found['counted']} of {found['n']} trades of {found['playbook_id']}"
            for found in entry["report"]["clusters"]
            if found["regime"] is None and found["timeframe"] is None and found["counted"] < found["n"]
        ]
        assert [line.partition(" do not")[0] for line in entry["waiting"]] == waits
