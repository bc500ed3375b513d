"""A run whose account is gone ends there: journal, document and one line say so, and no figure is odd."""

import asyncio
import json
import math
from functools import cache
from typing import Any

import pandas as pd
import pytest

import thinktwice as tt
from services.store import open_store
from tests.worker.live.paper_runs import (
    KillAt,
    Killed,
    RunningFeed,
    process_in,
    read_requests,
    replayed,
    rows_stored,
    traded,
    waiting_feed,
)
from tests.worker.replays import backtest_replay
from tests.worker.ruined_worlds import bold, levered_settings, ruined_bars
from tests.worker.shared_runs import Run, run_on
from worker.cli.outcome import show_run
from worker.runs.backtest import run_backtest
from worker.runs.store_run import new_run, record_run
from worker.studies.ablation.arms import Arm, ArmResult

SIDES = pytest.mark.parametrize("side", ["long", "short"])
GONE = "account_gone"


@cache
def ruined(side: str) -> Run:
    return run_on(ruined_bars(side), levered_settings(), [bold(side)])


def odd_figures(value: Any, path: str = "") -> list[str]:
    """Paths of the numbers that are not finite."""
    if isinstance(value, dict):
        return [found for name, part in value.items() for found in odd_figures(part, f"{path}.{name}")]
    if isinstance(value, list):
        return [found for k, part in enumerate(value) for found in odd_figures(part, f"{path}[{k}]")]
    return [] if not isinstance(value, float) or math.isfinite(value) else [path]


@SIDES
def test_run_whose_account_is_gone_ends_by_that_name_with_finite_figures(side):
    run, bars = ruined(side), ruined_bars(side)
    document, figures = run.document, run.document["performance"]
    assert document["ended_early"]["reason"] == GONE
    assert (document["errors"], odd_figures(document)) == (0, [])
    assert figures["total_return"] <= -1.0
    assert (figures["max_drawdown"], figures["cagr"]) == (1.0, -1.0)
    rows = run.result.bars.shape[0]
    assert 0 < rows < bars.shape[0]
    assert document["data"]["bars"] == run.result.bars.bar_count
    last = json.loads(run.rows[-1].payload)
    assert (run.rows[-1].kind, last["ended_early"], last["end"]) == (
        "run_finished",
        GONE,
        int(bars.times[rows - 1]),
    )
    assert run.of("envelope_breach")[-1]["limit"] == GONE
    assert len(run.result.equity[1]) == rows
    assert run.result.equity[1][-1] <= 0.0 < min(run.result.equity[1][:-1])


@SIDES
def test_run_whose_account_is_gone_says_so_in_one_line(side):
    run, bars = ruined(side), ruined_bars(side)
    message = run.document["ended_early"]["message"]
    rows = run.result.bars.shape[0]
    assert message.startswith("the account is gone: its equity is -")
    assert f"{bars.shape[0] - rows:,} rows of bars before their end" in message
    assert "envelope.max_gross_exposure" in message
    assert message.isprintable()


@pytest.mark.parametrize("as_json", [True, False])
def test_command_of_a_run_whose_account_is_gone_writes_the_line_to_stderr_and_is_done(as_json, capsys):
    """It returns: an exit code of its own would be an exception."""
    document = ruined("short").document
    show_run(document, json=as_json)
    out, err = capsys.readouterr()
    assert " ".join(err.split()).endswith(document["ended_early"]["message"])
    assert err.count("\n") == 1
    assert not as_json or json.loads(out)["ended_early"] == document["ended_early"]


def test_run_that_keeps_its_account_names_no_early_end():
    bars, rows = ruined_bars("long"), ruined("long").result.bars.shape[0]
    run = run_on(bars.select(end_ns=int(bars.times[rows - 2])), levered_settings(), [bold("long")])
    assert run.document["ended_early"] is None
    assert "ended_early" not in json.loads(run.rows[-1].payload)


@SIDES
def test_stored_run_whose_account_is_gone_verifies_with_its_document(side, tmp_path):
    bars, settings, books = ruined_bars(side), levered_settings(), [bold(side)]

    async def replay() -> Any:
        async with await open_store(f"sqlite:///{tmp_path}/runs.db", create=True) as store:
            row = new_run(settings, "ruin", "backtest", {"path": None, "sha256": bars.sha256})
            done = await record_run(run_backtest, settings, bars, store, row, definitions=books)
            return done, await backtest_replay(settings, bars, store, done.record, books).compare()

    done, report = asyncio.run(replay())
    assert (done.record.status, done.document["ended_early"]["reason"]) == ("finished", GONE)
    assert (report.ok, report.problem, report.document) == (True, None, ())


def head(folder: Any) -> tuple[str, str, str]:
    """Status, reason and head hash of the newest run."""
    record = read_requests(folder, lambda store: store.runs.find("latest"))
    return record.status, record.document["ended_early"]["reason"], record.head_hash


@SIDES
def test_paper_run_whose_account_is_gone_ends_as_the_backtest_and_takes_no_more_bars(side, tmp_path):
    outcome = traded(tmp_path, levered_settings(), waiting_feed(ruined_bars(side)), definitions=[bold(side)])
    assert (outcome.stopped, head(tmp_path)) == (
        None,
        ("finished", GONE, ruined(side).document["journal"]["head_hash"]),
    )
    assert replayed(tmp_path, levered_settings(), definitions=[bold(side)]).ok


@pytest.mark.parametrize("point", ["validated", "committed"])
def test_paper_run_that_dies_on_the_bar_that_ruins_it_ends_there_when_it_is_started_again(point, tmp_path):
    """Before the bar is stored, and between the bar and the end of the run: nothing is traded in between."""
    bars, books, rows = ruined_bars("short"), [bold("short")], ruined("short").result.bars.shape[0]
    with pytest.raises(Killed):
        traded(
            tmp_path, levered_settings(), waiting_feed(bars), definitions=books, points=KillAt(point, rows)
        )
    traded(tmp_path, levered_settings(), waiting_feed(bars), definitions=books)
    assert head(tmp_path) == ("finished", GONE, ruined("short").document["journal"]["head_hash"])


def test_paper_run_on_a_feed_that_runs_on_ends_when_its_account_is_gone(tmp_path):
    bars, books = ruined_bars("short"), [bold("short")]
    notes: list[tuple[str, dict[str, Any]]] = []

    async def between(number: int) -> None:
        await asyncio.sleep(0)

    async def trade() -> Any:
        async with await open_store(f"sqlite:///{tmp_path}/paper.db", create=True) as store:
            feed = RunningFeed(bars, between)
            return await process_in(store, levered_settings(), feed, notes, definitions=books)

    outcome = asyncio.run(trade())
    if outcome.document["ended_early"] is None:
        pytest.fail(f"the account lives: {outcome.document['performance']['total_return']}")
    assert head(tmp_path)[:2] == ("finished", GONE)
    assert [row for row in rows_stored(tmp_path) if row.kind == "error"] == []
    assert [detail["reason"] for kind, detail in notes if kind == "ended_early"] == [GONE]
    assert replayed(tmp_path, levered_settings(), definitions=books).ok


def test_arm_whose_account_is_gone_stays_lost_in_every_later_block():
    run, bars = ruined("short"), ruined_bars("short")
    result = ArmResult.of(Arm.NO_REFLECTION, run.result, levered_settings(), None, None)
    returns = result.block_returns("week")
    assert odd_figures([*returns.tolist(), result.mean_gross, result.exposure]) == []
    assert len(result.labels) == bars.shape[0]
    assert returns.min() <= -1.0
    assert set(returns[int(returns.argmin()) + 1 :].tolist()) == {0.0}


def test_library_result_of_an_account_that_is_gone_shows_the_line_and_a_drawdown_of_one():
    bars = ruined_bars("short")
    columns = {
        f"{symbol}_{name}": getattr(bars, name)[:, s]
        for s, symbol in enumerate(bars.symbols)
        for name in ("open", "high", "low", "close", "volume")
    }
    frame = pd.DataFrame(columns, index=pd.to_datetime(bars.times, utc=True))
    result = tt.backtest(frame, playbooks=[bold("short")], settings=levered_settings())
    assert result.document["ended_early"]["reason"] == GONE
    assert "the account is gone" in repr(result)
    assert (result.drawdown.min(), result.drawdown.max()) == (0.0, 1.0)
