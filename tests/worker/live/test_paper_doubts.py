"""Bars in doubt and conflicting data in runs: what is left out, what is told, what opens a boundary, what is
the same again after a restart, in a replay and in a backtest over the same bars."""

import asyncio
import json
from collections import Counter
from contextlib import nullcontext
from functools import cache
from typing import Any

import numpy as np
import pytest

from schemas.errors import DataError
from schemas.settings import DataSettings, Settings
from services.feeds.plausibility import LONGEST_DOUBT, SETTLED_BARS
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from services.journal.chain import JournalRow
from services.store import open_store
from tests.worker.live import bad_markets
from tests.worker.live.bad_markets import BAR_S, Run, clean_run, market, places
from tests.worker.live.memory_store import MemoryStore
from tests.worker.live.null_monitor import NullMonitor
from tests.worker.live.paper_runs import (
    Item,
    KillAt,
    Killed,
    RunningFeed,
    address,
    replayed,
    rows_of,
    traded,
    waiting_feed,
)
from tests.worker.live.virtual_time import run_virtually
from tests.worker.replays import paper_replay
from tests.worker.shared_runs import Run as Backtest
from tests.worker.shared_runs import embedded_bars, run_on
from trading_core.bars import COLUMNS, BarSeries
from worker.live.process import PaperProcess
from worker.live.process_inputs import Pace, ProcessInputs
from worker.runs.replay import ReplayReport

ALWAYS = Settings(data=DataSettings(plausibility="always"))
ROWS = 440


def changed(bars: BarSeries, factors: dict[tuple[int, int], float]) -> BarSeries:
    """The series with the prices of some bars times a factor; (row, column)."""
    columns = {name: getattr(bars, name).copy() for name in COLUMNS}
    for (row, column), factor in factors.items():
        for name in ("open", "high", "low", "close"):
            columns[name][row, column] *= factor
    return BarSeries(
        bars.times.copy(), bars.symbols, bars.timeframe, bars.label, present=bars.present.copy(), **columns
    )


@cache
def recorded() -> BarSeries:
    """Daily bars with slips of every kind: at the first bar, within, both symbols at once, and at the end."""
    bars = embedded_bars("2009-01-01", "2009-11-30").select(("AAPL", "IBM"))
    last = bars.shape[0] - 1
    slips = {(0, 0): 1e300, (5, 0): 10.0, (60, 0): 0.1, (60, 1): 1e200, (61, 1): 20.0, (last, 1): 10.0}
    split = {(row, 0): 0.1 for row in range(200, last + 1)}
    return changed(bars, slips | split)


@cache
def backtest() -> Backtest:
    return run_on(recorded(), ALWAYS)


def read_shown(rows: Any) -> list[tuple[str, int]]:
    """Symbol and label of each doubt."""
    found = [json.loads(row.payload) for row in rows if row.kind == "feed_anomaly"]
    return [
        (anomaly["symbol"], anomaly["bar_label"]) for anomaly in found if anomaly["anomaly"] == "implausible"
    ]


def test_backtest_that_always_guards_leaves_out_and_journals_the_bars_in_doubt() -> None:
    labels = recorded().times.tolist()
    expected = [
        (0, "AAPL"),
        (5, "AAPL"),
        (60, "AAPL"),
        (60, "IBM"),
        (61, "IBM"),
        (200, "AAPL"),
        (201, "AAPL"),
    ]
    last = (recorded().shape[0] - 1, "IBM")
    assert read_shown(backtest().rows) == [(symbol, labels[row]) for row, symbol in [*expected, last]]
    assert backtest().document["policy_loop"]["overrides"]["conflicting_data"] == 1, (
        "the rest lies in the warm-up"
    )
    bars = backtest().result.session.bars
    assert bars.shape[0] == recorded().shape[0] - 1, "one row held nothing but doubts"
    assert float(np.nanmax(bars.high)) < 500.0


def test_backtest_by_default_takes_recorded_bars_as_they_are() -> None:
    assert read_shown(run_on(recorded()).rows) == []


def test_paper_over_recorded_bars_has_the_head_of_the_backtest_when_both_always_guard(tmp_path) -> None:
    outcome = traded(tmp_path, ALWAYS, waiting_feed(recorded()))
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == backtest().document["journal"]["head_hash"]
    assert outcome.document["errors"] == 0
    report = replayed(tmp_path, ALWAYS)
    assert (report.ok, report.problem) == (True, None), "a replay guards nothing twice"


def test_paper_killed_among_doubts_goes_on_as_if_it_had_not_been(tmp_path) -> None:
    """Killed at its first bars, at a row in which both are in doubt, and between a split and its proof."""
    pace = Pace(events=10**9, rows=20, share=0.0)
    for rows in (6, 55, 140):
        points = KillAt("validated", rows)
        with pytest.raises(Killed):
            traded(tmp_path, ALWAYS, waiting_feed(recorded()), points=points, pace=pace)
    outcome = traded(tmp_path, ALWAYS, waiting_feed(recorded()), pace=pace)
    assert outcome.record.run_id == "r0001"
    assert outcome.document is not None
    assert (
        outcome.document["data"]["left_out"] == backtest().document["data"]["left_out"] == {"implausible": 8}
    )
    assert outcome.document["journal"]["head_hash"] == backtest().document["journal"]["head_hash"]


def test_backtest_of_nothing_but_doubts_says_what_to_set() -> None:
    bars = embedded_bars("2009-01-01", "2009-01-31").select(("IBM",))
    huge = changed(bars, {(row, 0): 1e200 for row in range(bars.shape[0])})
    with pytest.raises(DataError, match="data.plausibility = 'off'"):
        run_on(huge, ALWAYS)


# --- a feed that runs on, at default settings


@cache
def series() -> BarSeries:
    return market(3, ROWS)


@cache
def clean() -> Run:
    return clean_run(series(), rows_of(series()))


def live(bars: BarSeries, items: list[Item] | None = None, settings: Settings = bad_markets.SETTINGS) -> Run:
    """A run on a feed that does not wait, verified."""

    async def minute(number: int) -> None:
        await asyncio.sleep(BAR_S)

    return bad_markets.traded(RunningFeed(bars, minute, items), settings, verify=True)


def held() -> tuple[int, int, int]:
    """Entry, exit and column of a position that was held for a while."""
    for entry, column in places(clean(), series(), "entry_filled"):
        leaving = next(
            (
                row
                for row, other in places(clean(), series(), "exit_filled")
                if other == column and row >= entry
            ),
            0,
        )
        if leaving - entry > 5:
            return entry, leaving, column
    raise AssertionError("nothing was held")


@pytest.mark.parametrize("factor", [1e200, 10.0, 0.1])
def test_live_bad_tick_on_an_open_position_exits_nothing_and_opens_a_boundary(factor) -> None:
    entry, leaving, column = held()
    bad = entry + 3
    run = live(changed(series(), {(bad, column): factor}))
    symbol, labels = series().symbols[column], series().times.tolist()
    assert read_shown(run.journal) == [(symbol, labels[bad])]
    [doubt] = run.of("feed_anomaly")
    assert doubt["detail"]["bar"][3] == float(series().close[bad, column]) * factor
    assert (bad, column) not in places(run, series(), "exit_filled")
    exits = [row for row, other in places(run, series(), "exit_filled") if other == column and row > entry]
    assert exits[0] in (leaving, leaving + 1), "on good bars alone; a time stop counts one bar less"
    opened = [event for event in run.of("policy_event") if "conflicting_data" in event["overrides"]]
    assert [(trial["bar_label"], trial["state"], trial["evaluated"]) for trial in opened] == [
        (labels[bad + 1], "HOLD_LOCK", True)
    ]
    blocked = run.of("entries_blocked")
    assert [item["blocked"] for item in blocked] == [{symbol: "implausible bar"}, {}]
    assert [item["bar_label"] for item in blocked] == [labels[bad], labels[bad + 1]]
    assert run.verified


def test_live_bad_tick_is_traded_when_the_guard_is_off() -> None:
    off = bad_markets.SETTINGS.model_copy(update={"data": DataSettings(plausibility="off")})
    entry, _, column = held()
    run = live(changed(series(), {(entry + 3, column): 0.1}), settings=off)
    assert read_shown(run.journal) == []
    assert (entry + 3, column) in {
        *places(run, series(), "stop_breach"),
        *places(run, series(), "target_breach"),
    }


def test_live_split_is_traded_from_the_second_bar_that_confirms_it() -> None:
    run = live(changed(series(), {(row, 0): 0.1 for row in range(300, ROWS)}))
    symbol, labels = series().symbols[0], series().times.tolist()
    assert read_shown(run.journal) == [(symbol, labels[300]), (symbol, labels[301])]
    stored = run.outcome.result
    assert stored is not None
    assert stored.session.bars.present[298:304, 0].tolist() == [True, True, False, False, True, True]
    assert run.verified


def test_live_run_of_one_symbol_has_no_row_for_a_bar_in_doubt() -> None:
    one = series().select((series().symbols[0],))
    run = live(changed(one, {(300, 0): 1e250, (400, 0): 10.0}))
    assert read_shown(run.journal) == [(one.symbols[0], int(one.times[row])) for row in (300, 400)]
    assert run.outcome.result is not None
    assert run.outcome.result.session.bars.shape[0] == ROWS - 2
    assert run.verified


def crashing(bars: BarSeries, first: int, column: int, bars_of_crash: int = 9) -> BarSeries:
    """Each bar of a crash 60 percent below the one before it, and then no way back."""
    rows = range(first, bars.shape[0])
    return changed(bars, {(row, column): 0.4 ** min(row - first + 1, bars_of_crash) for row in rows})


def test_live_crash_that_never_settles_reaches_the_stop_and_blocks_entries_until_it_has() -> None:
    entry, _, column = held()
    first = entry + 3
    run = live(crashing(series(), first, column))
    symbol, labels = series().symbols[column], series().times.tolist()
    assert read_shown(run.journal) == [(symbol, label) for label in labels[first : first + LONGEST_DOUBT]]
    [taken] = [anomaly for anomaly in run.of("feed_anomaly") if anomaly["anomaly"] == "unsettled"]
    assert (taken["symbol"], taken["bar_label"]) == (symbol, labels[first + LONGEST_DOUBT])
    exits = [row for row, other in places(run, series(), "exit_filled") if other == column and row >= first]
    assert exits[0] == first + LONGEST_DOUBT, "the position is protected again"
    reasons = [(block["bar_label"], block["blocked"].get(symbol)) for block in run.of("entries_blocked")]
    expected: list[tuple[int, str | None]] = [
        (first, "implausible bar"),
        (first + LONGEST_DOUBT, "unsettled price"),
    ]
    expected.append((first + LONGEST_DOUBT + SETTLED_BARS + 1, None))
    assert reasons == [(labels[row], reason) for row, reason in expected]
    assert run.verified


@pytest.mark.parametrize("symbols", [1, 3])
def test_live_row_of_nothing_but_doubts_tells_who_may_not_enter(symbols) -> None:
    names = series().symbols[:symbols]
    bars = series().select(names)
    run = live(changed(bars, {(300, column): 10.0 for column in range(symbols)}))
    labels = bars.times.tolist()
    withheld = [anomaly for anomaly in run.of("feed_anomaly") if anomaly["anomaly"] == "withheld"]
    assert [row["bar_label"] for row in withheld] == [labels[300]]
    told_blocked = [(block["bar_label"], block["blocked"]) for block in run.of("entries_blocked")]
    assert told_blocked == [(labels[300], dict.fromkeys(names, "implausible bar")), (labels[301], {})]
    assert run.verified


def test_live_status_shows_who_is_blocked_by_a_row_of_nothing_but_doubts(tmp_path) -> None:
    one = series().select((series().symbols[0],))
    bars = changed(one, {(300, 0): 10.0})
    found: dict[str, str] = {}
    process: Any = None

    class Waits(RunningFeed):
        async def items(self, after: int | None):
            for row in rows_of(bars)[:301]:
                yield row
                await asyncio.sleep(0)
            for _ in range(1_000):
                await asyncio.sleep(0.01)
                found.update(process.traded.status.status().blocked)
                if found:
                    return

    async def run() -> None:
        nonlocal process
        async with await open_store(address(tmp_path), create=True) as store:
            bare = NullMonitor(lambda kind, detail: None)
            process = PaperProcess(
                ProcessInputs(bad_markets.SETTINGS, Waits(bars), store, "h:1:a", bare, look_s=0.05)
            )
            async with asyncio.timeout(120):
                await process.run("test")

    asyncio.run(run())
    assert found == {one.symbols[0]: "implausible bar"}


def test_swings_that_never_settle_give_one_head_in_backtest_paper_and_replay(tmp_path) -> None:
    bars = crashing(recorded().select(("IBM",)), 100, 0)
    whole = run_on(bars, ALWAYS)
    kinds = [json.loads(row.payload)["anomaly"] for row in whole.rows if row.kind == "feed_anomaly"]
    assert kinds.count("unsettled") == 1
    outcome = traded(tmp_path, ALWAYS, waiting_feed(bars))
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == whole.document["journal"]["head_hash"]
    assert replayed(tmp_path, ALWAYS).ok


@pytest.mark.parametrize(
    ("stops", "store"), [((80, 82, 235), "memory"), ((81, 233, 237), "memory"), ((234,), "file")]
)
@pytest.mark.parametrize(
    "pace", [Pace(), Pace(events=10**9, rows=20, share=0.0)], ids=["played", "savepoints"]
)
def test_live_restart_among_doubts_tells_each_once_and_goes_on_with_the_same_bars(
    tmp_path, stops, store, pace
) -> None:
    """The feed hands over again what is not stored: also rows that held nothing but doubts."""
    one = embedded_bars("2009-11-16", "2010-11-15").select(("AAPL",))
    split = {(row, 0): 0.1 for row in range(80, one.shape[0])}
    bars = crashing(changed(one, split | {(30, 0): 10.0, (180, 0): 1e250}), 230, 0)

    process: Any = None
    stored = MemoryStore()

    class Stops(RunningFeed):
        stops: int | None = None

        async def items(self, after: int | None):
            for row in rows_of(bars):
                if after is None or row.label > after:
                    yield row
                    await asyncio.sleep(0.002)
                if row.label == self.stops:
                    process.stop("SIGTERM")
                    await asyncio.Event().wait()

    async def opened() -> Any:
        if store == "memory":
            return nullcontext(stored.opened())
        return await open_store(address(tmp_path), create=True)

    async def run() -> tuple[list[JournalRow], ReplayReport]:
        nonlocal process
        for number, stop in enumerate((*stops, None)):
            async with await opened() as found:
                bare, feed, owner = NullMonitor(lambda kind, detail: None), Stops(bars), f"host:1:{number}"
                feed.stops = None if stop is None else int(bars.times[stop - 1])
                process = PaperProcess(
                    ProcessInputs(Settings(), feed, found, owner, bare, pace=pace, look_s=0.05)
                )
                outcome = await process.run("test")
        async with await opened() as found:
            rows = [row async for row in found.journal.rows(outcome.record.run_id)]
            return rows, await paper_replay(Settings(), found, outcome.record).compare()

    rows, report = run_virtually(run())
    labels = bars.times.tolist()
    doubted = (30, 80, 81, 180, *range(230, 235))
    assert read_shown(rows) == [("AAPL", labels[row]) for row in doubted]
    kinds = [json.loads(row.payload)["anomaly"] for row in rows if row.kind == "feed_anomaly"]
    assert (kinds.count("unsettled"), kinds.count("withheld")) == (1, 9), "each once"
    assert report.ok


# --- conflicting data


def conflict(symbol: str, label: int) -> FeedAnomaly:
    return FeedAnomaly(FeedAnomalyKind.CONFLICT, symbol, label, {"kept": [1.0], "dropped": [2.0]})


@pytest.mark.parametrize("state", ["THESIS_ARMED", "HOLD_LOCK", "IDLE"])
def test_live_conflict_opens_a_boundary_of_its_symbol_in_this_state_and_replays_to_its_head(state) -> None:
    kinds = {"THESIS_ARMED": "thesis_armed", "HOLD_LOCK": "entry_filled"}
    entry, _, column = held()
    if state == "THESIS_ARMED":
        ended = places(clean(), series(), "activation_triggered")
        entry, column = next(
            place
            for place in places(clean(), series(), kinds[state])
            if (place[0] + 1, place[1]) not in ended
        )
    row = {"HOLD_LOCK": entry + 1, "THESIS_ARMED": entry, "IDLE": 230}[state]
    symbol, labels = series().symbols[column], series().times.tolist()
    items: list[Item] = list(rows_of(series()))
    items.insert(row + 1, conflict(symbol, labels[row]))
    run = live(series(), items)
    opened = [
        (event["bar_label"], event["state"], event["evaluated"])
        for event in run.of("policy_event")
        if "conflicting_data" in event["overrides"]
    ]
    assert opened == [(labels[row + 1], state, True)]
    assert [
        line.symbol
        for line in run.journal
        if line.kind == "policy_event" and "conflicting_data" in line.payload
    ] == [symbol]
    assert run.outcome.document is not None
    assert run.outcome.document["policy_loop"]["overrides"]["conflicting_data"] == 1
    assert run.verified


def test_live_other_anomalies_open_no_boundary() -> None:
    items: list[Item] = list(rows_of(series()))
    symbol, labels = series().symbols[0], series().times.tolist()
    for kind in set(FeedAnomalyKind) - {FeedAnomalyKind.CONFLICT, FeedAnomalyKind.IMPLAUSIBLE}:
        items.insert(300, FeedAnomaly(kind, symbol, labels[299], {}))
    items.insert(300, conflict("NOBODY", labels[299]))
    counts = Counter(
        reason for event in live(series(), items).of("policy_event") for reason in event["overrides"]
    )
    assert counts["conflicting_data"] == 0
