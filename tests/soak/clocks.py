"""F9: a machine that trades on an exchange sleeps for twelve days, with its slow loop beside it."""

import logging
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from services.statistics.slots import last_slot, next_slot
from tests.soak.findings import Finding
from tests.worker.feeds import planted_exchange
from tests.worker.feeds.planted import Plan
from tests.worker.feeds.planted_exchange import PlannedMarket
from tests.worker.live.bad_markets import NS, SETTINGS, Run, clean_run, places
from tests.worker.live.wall_clocks import Everything
from trading_core.bars import COLUMNS, BarSeries
from worker.feeds.sample_data.worlds import make_world

SYMBOLS, HISTORY, AWAKE, ASLEEP, AFTER = 12, 120, 138, 288, 24
HOUR_S = 3_600.0
BEGIN = datetime(2020, 1, 7, 1, tzinfo=UTC)  # a Tuesday; the next two Mondays are slept through
LOOKS_S = 6 * 86_400.0  # the slow loop looks when the run begins, and hours after its machine woke up


def bars() -> BarSeries:
    """Bars of an hour; the history ends at `BEGIN`."""
    rows = HISTORY + AWAKE + ASLEEP + AFTER
    made = make_world("reverting", seed=3, bars=rows, symbols=SYMBOLS, timeframe="1h")
    shift = round(BEGIN.timestamp()) * NS - int(made.close_times[HISTORY - 1])
    arrays = {name: getattr(made, name) for name in (*COLUMNS, "present")}
    return BarSeries(made.times + shift, made.symbols, made.timeframe, made.label, **arrays)


def check() -> list[Finding]:
    """One night of twelve days."""
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    feed_settings = planted_exchange.SETTINGS
    weekly = SETTINGS.high_level.model_copy(update={"interval": "weekly"})
    settings = SETTINGS.model_copy(update={"high_level": weekly})
    plan = Plan(bars(), HISTORY)
    falls_s, sleeps_s = (AWAKE + 0.4) * HOUR_S, ASLEEP * HOUR_S
    feed = PlannedMarket(plan, feed_settings, sleep=(falls_s, sleeps_s), look_s=300.0)
    with tempfile.TemporaryDirectory() as folder:
        both = Everything(Path(folder), feed, settings, LOOKS_S)
    falls = feed.exchange.begin + round(falls_s * NS)
    awake = clean_run(plan.series, plan.rows(feed_settings), settings)
    return [_finding(both, awake, plan, falls, falls + round(sleeps_s * NS))]


def _finding(both: Everything, awake: Run, plan: Plan, falls: int, wakes: int) -> Finding:
    run, series = both.run, plan.series
    decided = [claim for claim in both.claims if falls < claim.key.slot <= wakes]
    missed = (last_slot(wakes, "weekly") - next_slot(falls, "weekly")) // (7 * 86_400 * NS) + 1
    reports = [report for report in both.reports if falls < report.key.slot <= wakes]
    heard = [arrived["report_id"] for arrived in run.of("report_arrived")]
    held = open_at(awake, series, HISTORY + AWAKE - 1)
    left = held & set(places(run, series, "exit_filled"))
    bad = {"died", "worker_died", "slot_failed", "waker_silent"}
    rules = {
        "the newest slot alone": [claim.key.slot for claim in decided] == [last_slot(wakes, "weekly")],
        "one report": len(reports) == 1,
        "each report heard once": len(heard) == len(set(heard)) == len(both.reports),
        "each position left where it would have been": held == left,
        "no entry on what came late": not run.blocked("order_accepted"),
        "rows in their order, none lost": [row.label for row in run.rows] == series.times.tolist(),
        "nobody died": bad.isdisjoint(kind for kind, _ in both.notes),
        "the run comes out again": run.verified,
    }
    breaks = tuple(f"not so: {rule}" for rule, holds in rules.items() if not holds)
    late = sum(bool(row.blocked) for row in run.rows)
    return Finding(
        "F9",
        f"12 days of sleep under both loops in one process on an exchange; {SYMBOLS} symbols, hourly bars",
        "no slot decided twice, no stop missed, one report for all slots that were slept through",
        f"{missed} slots slept through, decided: {len(decided)}, reports: {len(reports)}, over "
        f"{sum(report.report.n_episodes for report in reports)} episodes and heard once; {late} rows came "
        "late, "
        f"{len(run.blocked('order_accepted'))} entries on them; {len(left)} of {len(held)} open positions "
        "left at the bar where a machine that is awake leaves them",
        not breaks,
        breaks,
    )


def open_at(run: Run, series: BarSeries, row: int) -> set[tuple[int, int]]:
    """Row and column of the exits of the positions that are open at a row."""
    exits = places(run, series, "exit_filled")
    found = set()
    for entry, column in places(run, series, "entry_filled"):
        leaving = min((at for at, of in exits if of == column and at >= entry), default=None)
        if entry <= row and leaving is not None and leaving > row:
            found.add((leaving, column))
    return found
