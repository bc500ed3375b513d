"""Worlds in which time tells something: durations tied to outcomes, bursts, weekends between blocks."""

import numpy as np

from services.statistics.blocks import Floats
from worker.studies.worlds.calendar import (
    HOUR_NS,
    MONDAY_NS,
    WEEK_NS,
    CellTrades,
    spread_over_week,
    times_in_week,
)
from worker.studies.worlds.parameters import Parameters
from worker.studies.worlds.payoffs import StudentT
from worker.studies.worlds.shared import in_groups

PAUSE_HOURS = 1.0


def sequential(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """A cell enters an hour after its last exit; winners take `win_hours`, losers `loss_hours`.

    The edge is that of the first week: one position after the other has no week to change in.
    """
    return [_one_after_the_other(draw, row, given) for row in edge]


def _one_after_the_other(draw: np.random.Generator, edge: Floats, given: Parameters) -> CellTrades:
    hours = len(edge) * WEEK_NS / HOUR_NS
    most = int(hours / (min(given.win_hours, given.loss_hours) + PAUSE_HOURS)) + 1
    r = given.payoff.outcomes(draw.standard_normal(most), edge[:1])
    held = np.where(r > 0.0, given.win_hours, given.loss_hours)
    exits = (held + PAUSE_HOURS).cumsum()
    entries = exits - held
    kept = entries < hours
    begin = MONDAY_NS + (entries[kept] * HOUR_NS).astype(np.int64)
    return CellTrades(begin, begin + (held[kept] * HOUR_NS).astype(np.int64), r[kept])


def bursts(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Two trades in a calm week at `calm` on average; in a crash week only `crash_trades` trades at -1R.

    Crashes come by chance, one week in `crash_every`. `edge` is added to calm weeks.
    """
    return [_bursting(draw, row, given) for row in edge]


def _bursting(draw: np.random.Generator, edge: Floats, given: Parameters) -> CellTrades:
    crash = draw.random(len(edge)) < 1.0 / given.crash_every
    week = np.repeat(np.arange(len(edge)), np.where(crash, given.crash_trades, 2))
    calm = StudentT().outcomes(draw.standard_normal(len(week)), given.calm + edge[week])
    entry = times_in_week(week, np.sort(draw.random(len(week))) * 100.0)
    return CellTrades(entry, entry + HOUR_NS, np.where(crash[week], -1.0, calm))


def burst_mean(given: Parameters) -> float:
    """The true mean a trade of `bursts`, R."""
    calm_weeks = given.crash_every - 1.0
    trades = 2.0 * calm_weeks + given.crash_trades
    return (2.0 * calm_weeks * given.calm - given.crash_trades) / trades


def weekends(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Entered on Friday, out on Monday: the trades of a week share its weekend and exit in the next block."""
    week, _ = spread_over_week(edge.shape[1], given.count)
    entry = times_in_week(week, np.full(len(week), 110.0))
    driver = in_groups(draw, len(edge), week, given.rho)
    r = given.payoff.outcomes(driver, edge[:, week])
    return [CellTrades(entry, entry + 62 * HOUR_NS, row) for row in r]
