"""The trading loop under clocks that jump, drift, change their zone or stand still: bars keep their own time.

A wall clock that is wrong is journalled once and keeps everybody from entering until the feed agrees again;
it moves no bar and no stop.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.worker.feeds import planted_exchange, planted_file
from tests.worker.feeds.planted import Offset, Plan, right
from tests.worker.feeds.planted_exchange import PlannedMarket
from tests.worker.feeds.planted_file import PlannedFile
from tests.worker.live.bad_markets import BAR_S, NS, SETTINGS, Run, clean_run, market, places, traded
from tests.worker.live.virtual_time import run_virtually
from tests.worker.live.wall_clocks import Everything, read_by_the_scheduler
from trading_core.bars import COLUMNS, BarSeries
from worker.feeds.sample_data.worlds import make_world
from worker.slow_worker.waker import Waker

HISTORY, BARS = 200, 350
HOUR_S = 3_600.0
FEEDS = ["file", "exchange"]


@cache
def series(begin: int = 0) -> BarSeries:
    """Bars without faults; their history ends at `begin`, ns, where that is given."""
    made = market(3, BARS)
    shift = begin - int(made.close_times[HISTORY - 1]) if begin else 0
    arrays = {name: getattr(made, name) for name in (*COLUMNS, "present")}
    return BarSeries(made.times + np.int64(shift), made.symbols, made.timeframe, made.label, **arrays)


def run_on(kind: str, folder: Path, bars: BarSeries, offset: Offset = right) -> Run:
    plan = Plan(bars, HISTORY)
    if kind == "file":
        return traded(PlannedFile(folder / "bars.csv", plan, offset=offset), verify=offset is not right)
    return traded(PlannedMarket(plan, offset=offset))


@cache
def clean() -> Run:
    """The run whose clocks are right."""
    return clean_run(series(), Plan(series(), HISTORY).rows(planted_file.SETTINGS))


@cache
def trade() -> tuple[int, int, int]:
    """Rows of an entry and of its exit, and the column: one that is held for a while."""
    exits = places(clean(), series(), "exit_filled")
    trades = [
        (entry, min(row for row, of in exits if row >= entry and of == column), column)
        for entry, column in places(clean(), series(), "entry_filled")
    ]
    return next(pair for pair in trades if pair[1] - pair[0] > 2 and pair[1] < BARS - 20)


@pytest.mark.parametrize("kind", FEEDS)
@pytest.mark.parametrize("hours", [1.0, -1.0])
def test_paper_wall_clock_that_jumps_is_told_once_and_stops_only_entries(tmp_path, kind, hours) -> None:
    entry, leaving, column = trade()
    begin, end = ((row - HISTORY + 1.4) * BAR_S for row in (entry, leaving + 5))

    def wrong_for_a_while(seconds: float) -> float:
        return hours * HOUR_S if begin <= seconds < end else 0.0

    run = run_on(kind, tmp_path, series(), wrong_for_a_while)
    assert [(row.label, row.bars) for row in run.rows] == [(row.label, row.bars) for row in clean().rows]
    clocks = [
        anomaly["detail"]["reason"] for anomaly in run.of("feed_anomaly") if anomaly["anomaly"] == "clock"
    ]
    assert clocks == ["jump", "jump", "source agrees"], "away, back, and believed again"
    shut = [number for number, row in enumerate(run.rows) if set(row.blocked) == set(series().symbols)]
    assert shut[:1] == [entry + 1]
    assert shut == list(range(shut[0], shut[-1] + 1))
    assert leaving + 4 <= shut[-1] <= leaving + 6
    assert run.blocked("order_accepted") == []
    assert (leaving, column) in places(run, series(), "exit_filled"), "where the right clock leaves it"
    assert run.decisions() == clean_run(series(), run.rows).decisions()
    shown = [anomaly["anomaly"] for anomaly in run.of("feed_anomaly")]
    assert shown.count("stale") == shown.count("fresh") == (3 if hours > 0 else 0), "an hour without bars"
    assert run.verified or kind == "exchange"


def test_paper_wall_clock_that_is_wrong_at_the_start_blocks_until_it_is_right(tmp_path) -> None:
    entry = places(clean(), series(), "order_accepted")[0][0]
    end = (entry - HISTORY + 1.4) * BAR_S
    run = run_on("exchange", tmp_path, series(), lambda now: HOUR_S if now < end else 0.0)
    clocks = [
        anomaly["detail"]["reason"] for anomaly in run.of("feed_anomaly") if anomaly["anomaly"] == "clock"
    ]
    assert clocks == ["source differs", "jump", "source agrees"]
    assert [number for number, row in enumerate(run.rows) if row.blocked] == list(range(HISTORY, entry + 1))
    assert run.blocked("order_accepted") == []
    assert run.blocked("activation_triggered")
    assert run.decisions() == clean_run(series(), run.rows).decisions()


@pytest.mark.parametrize(
    ("kind", "leap"), [("file", "smeared"), ("file", "stepped"), ("exchange", "smeared")]
)
def test_paper_leap_second_changes_nothing(tmp_path, kind, leap) -> None:
    length = (BARS - HISTORY) * BAR_S
    offsets: dict[str, Callable[[float], float]] = {
        "smeared": lambda seconds: -min(1.0, 2.0 * seconds / length),
        "stepped": lambda seconds: -1.0 if seconds > length / 2 else 0.0,
    }
    run = run_on(kind, tmp_path, series(), offsets[leap])
    assert run.of("feed_anomaly", "entries_blocked") == []
    assert run.decisions() == clean().decisions()


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Sets the zone of this machine."""

    def chosen(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield chosen
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("change", ["2024-03-10T07:00", "2024-11-03T06:00"])
def test_paper_zone_of_the_machine_and_its_summer_time_change_no_hash(tmp_path, zone, change) -> None:
    at = datetime.fromisoformat(change).replace(tzinfo=UTC)
    bars = series(round(at.timestamp() - 60 * BAR_S) * NS)  # the change comes an hour into the run
    heads = {}
    for name in ("UTC", "America/New_York"):
        zone(name)
        folder = tmp_path / name.replace("/", "-")
        folder.mkdir()
        run = run_on("file", folder, bars)
        assert len(run.rows) == BARS
        heads[name] = run.outcome.record.head_hash
        hours = [time.localtime(at.timestamp() + second).tm_hour for second in (-1, 0)]
    assert hours[1] - hours[0] != 1, "in New York"
    assert heads["UTC"] == heads["America/New_York"]
    assert run.of("feed_anomaly") == []
    assert run.of("episode")


DAY_NS = 86_400 * NS
TWELVE_DAYS_S = 12 * 86_400.0
ASLEEP_ROWS = round(TWELVE_DAYS_S / HOUR_S)


@cache
def hours() -> BarSeries:
    """Bars of an hour."""
    return make_world("reverting", seed=3, bars=450, symbols=3, timeframe="1h")


def test_paper_machine_that_sleeps_for_twelve_days_stops_at_its_stop_and_decides_one_slot(tmp_path) -> None:
    history = 100
    settings = planted_exchange.SETTINGS
    plan = Plan(hours(), history)
    rows = plan.rows(settings)
    awake = clean_run(hours(), rows[: len(rows) - ASLEEP_ROWS])
    exits = places(awake, hours(), "exit_filled")
    entry, leaving, column = next(
        (row, *pair)
        for row, of in places(awake, hours(), "entry_filled")
        for pair in exits
        if pair[1] == of and row > history + 24 and 1 < pair[0] - row < 40
    )
    falls_asleep = (entry - history + 1.4) * HOUR_S
    feed = PlannedMarket(plan, settings, sleep=(falls_asleep, TWELVE_DAYS_S), look_s=300.0)
    both = Everything(tmp_path, feed, SETTINGS)
    run = both.run

    assert [(row.label, row.bars) for row in run.rows] == [(row.label, row.bars) for row in rows]
    late = [number for number, row in enumerate(run.rows) if row.blocked]
    assert late == list(range(entry + 1, entry + ASLEEP_ROWS)), "but the last, which is fresh"
    assert run.blocked("order_accepted") == []
    assert (leaving, column) in places(run, hours(), "exit_filled"), "where it would have been awake"
    clocks = [
        anomaly["detail"]["reason"] for anomaly in run.of("feed_anomaly") if anomaly["anomaly"] == "clock"
    ]
    assert clocks == ["jump", "source agrees"]
    assert run.verified

    slept = feed.exchange.begin + round(falls_asleep * NS)
    woke = slept + round(TWELVE_DAYS_S * NS)
    decided = [claim.key.slot for claim in both.claims]
    assert len(decided) == len(set(decided)) > 1
    assert [slot for slot in decided if slept < slot <= woke] == [woke - woke % DAY_NS]
    assert {kind for kind, _ in both.notes}.isdisjoint({"died", "worker_died", "slot_failed", "waker_silent"})


@pytest.mark.parametrize("ahead", [1.0, 288.0, -1.0])
def test_slow_loop_beside_a_wall_clock_that_jumps_is_woken_on(ahead) -> None:
    period_s, jump_at_s = 30.0, 100.0

    async def scenario() -> tuple[list[float], bool]:
        loop, looks = asyncio.get_running_loop(), list[float]()

        def wall() -> int:
            hours = ahead if loop.time() > jump_at_s else 0.0
            return round((1.7e9 + loop.time() + hours * HOUR_S) * NS)

        async def look() -> None:
            looks.append(loop.time())

        with read_by_the_scheduler(wall):
            waker = Waker(look, period_s, lambda kind, detail: None, timer=loop.time)
            waker.start()
            watching = asyncio.create_task(waker.watch())
            await asyncio.wait({watching}, timeout=1_000.0)
            given_up = watching.done()
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await waker.stop()
        return looks, given_up

    looks, given_up = run_virtually(scenario())
    assert not given_up
    assert max(after - before for before, after in pairwise(looks)) <= 6 * period_s
    assert looks[-1] > 1_000.0 - period_s
