"""The trading loop on real feeds whose sources misbehave by plan, against one on bars that come as they are.

What is mended before its row goes changes nothing. What is lost changes what follows from the loss, and
nothing else. Each planted fault stands in the journal once, and nobody enters on what is missing, stale or
contradicted.
"""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.worker.feeds import planted_file
from tests.worker.feeds.planted import Fault, Plan, Shares, planted
from tests.worker.feeds.planted_exchange import PlannedMarket
from tests.worker.feeds.planted_file import PlannedFile
from tests.worker.live.bad_markets import Run, clean_run, market, places, traded
from trading_core.bars import BarSeries

HISTORY, BARS = 200, 440
HEALED = Shares(twice=0.02, disordered=0.02, withheld=0.02, outages=0.008)
SPOILED = Shares(twice=0.01, late=0.01, lost=0.01, contradicted=0.01, disputed=0.01, silences=0.004)
LONG_OUTAGE_S = 200.0
LATE = "known too late"


@cache
def series() -> BarSeries:
    return market(3, BARS)


def opened(kind: str, folder: Path, plan: Plan) -> Any:
    return PlannedFile(folder / "bars.csv", plan) if kind == "file" else PlannedMarket(plan)


@cache
def clean() -> Run:
    """The run on bars that come as they are."""
    return clean_run(series(), Plan(series(), HISTORY).rows(planted_file.SETTINGS))


@pytest.mark.parametrize("kind", ["file", "exchange"])
def test_paper_faults_that_are_mended_before_their_row_goes_change_no_decision(tmp_path, kind) -> None:
    plan = planted(series(), 1, HEALED, HISTORY)
    assert set(plan.counts()) == {"twice", "disordered", "withheld", "outages"}
    assert min(plan.counts().values()) > 1, "else this says nothing"
    feed = opened(kind, tmp_path, plan)
    run = traded(feed, verify=kind == "exchange")
    assert run.rows == clean().rows
    assert run.shown() == feed.shown(), "each fault once, and nothing else"
    assert run.decisions() == clean().decisions()
    assert run.of("entries_blocked") == []
    assert run.verified or kind == "file"
    assert len(run.of("episode")) > 3, "else this says nothing"


@pytest.mark.parametrize("kind", ["file", "exchange"])
def test_paper_bars_that_are_lost_leave_the_decisions_of_a_feed_that_never_had_them(tmp_path, kind) -> None:
    plan = planted(series(), 2, SPOILED, HISTORY)
    assert min(plan.counts()[name] for name in ("twice", "late", "lost", "contradicted", "disputed")) > 1
    feed = opened(kind, tmp_path, plan)
    run = traded(feed, verify=True)
    expected = plan.rows(feed.settings)
    assert run.rows == expected
    assert run.shown() == feed.shown(), "each fault once, and nothing else"
    without = clean_run(series(), run.traded)
    assert run.decisions("feed_anomaly") == without.decisions("feed_anomaly")
    conflicts = [event for event in run.of("policy_event") if "conflicting_data" in event["overrides"]]
    assert conflicts, "conflicting data is an override"
    assert conflicts == [
        event for event in without.of("policy_event") if "conflicting_data" in event["overrides"]
    ]
    assert run.blocked("order_accepted") == []
    assert {"stale", "missing bar", "conflicting bars"} <= {
        reason for row in run.rows for reason in row.blocked.values()
    }
    assert run.decisions() != clean().decisions(), "else the faults did not matter"
    assert run.verified


def contradicted_at(folder: Path, row: int, column: int) -> Run:
    """The run of a file in which one bar is contradicted after its row has gone."""
    plan = Plan(series(), HISTORY, {(row, column): Fault.CONTRADICTED})
    return traded(opened("file", folder, plan))


def test_paper_symbol_with_contradicted_bars_is_not_entered_though_its_trigger_fires(tmp_path) -> None:
    row, column = places(clean(), series(), "order_accepted")[0]
    run = contradicted_at(tmp_path, row - 1, column)
    assert (row, column) in places(run, series(), "activation_triggered")
    assert (row, column) not in places(run, series(), "order_accepted")
    assert run.blocked("activation_triggered")[0] == "conflicting bars"
    assert run.blocked("order_accepted") == []


def test_paper_position_in_contradicted_bars_is_left_where_it_would_have_been(tmp_path) -> None:
    exits = places(clean(), series(), "exit_filled")
    entry, leaving = next(
        (place, other)
        for place in places(clean(), series(), "entry_filled")
        for other in exits
        if place[1] == other[1] and 0 < other[0] - place[0] < planted_file.SETTINGS.quarantine_bars
    )
    run = contradicted_at(tmp_path, *entry)
    assert leaving in places(run, series(), "exit_filled")
    assert "conflicting bars" in run.blocked("exit_filled")


def test_paper_rows_that_come_long_after_an_outage_are_traded_by_exits_alone() -> None:
    plan = planted(series(), 1, Shares(outages=0.01), HISTORY)
    run = traded(PlannedMarket(plan, outage_s=LONG_OUTAGE_S))
    assert [(row.label, row.bars) for row in run.rows] == [(row.label, row.bars) for row in clean().rows]
    shut = [number for number, row in enumerate(run.rows) if row.blocked]
    away = sorted(plan.outages)
    assert away
    assert shut == [row + later for row in away for later in (1, 2, 3)]
    assert {reason for number in shut for reason in run.rows[number].blocked.values()} == {LATE}
    assert run.blocked("order_accepted") == []
    assert run.decisions() == clean_run(series(), run.rows).decisions(), "at once or one a minute"
    shown = [anomaly["anomaly"] for anomaly in run.of("feed_anomaly")]
    assert shown.count("disconnected") == shown.count("reconnected") == len(away)
    assert shown.count("stale") == shown.count("fresh") == len(away) * len(series().symbols)
