"""Worlds in which trades are one bet, or nearly: symbols, fills and copies, a factor, a dominating symbol.

Worlds in which time tells something: durations tied to outcomes, bursts, weekends between blocks.
"""

import numpy as np

from services.statistics.blocks import Floats
from services.statistics.calendar_units import Integers
from worker.studies.worlds.calendar import (
    HOUR_NS,
    MONDAY_NS,
    WEEK_NS,
    CellTrades,
    spread_over_week,
    times_in_week,
)
from worker.studies.worlds.payoffs import Parameters, StudentT
from worker.studies.worlds.plain import hourly

MINUTE_NS = HOUR_NS // 60
DOMINATING, OTHERS = 10, 4
PAUSE_HOURS = 1.0


def same_bar(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Each bet is taken in `symbols` symbols at once; their drivers are correlated by `rho`."""
    week, entry = spread_over_week(edge.shape[1], given.count)
    week, entry = np.repeat(week, given.symbols), np.repeat(entry, given.symbols)
    driver = in_groups(draw, len(edge), np.arange(len(week)) // given.symbols, given.rho)
    return hourly(given.payoff, driver, edge, week, entry)


def in_groups(draw: np.random.Generator, cells: int, group: Integers, rho: float) -> Floats:
    """Drivers (cells, n) correlated by `rho` within each group of trades, separate between cells."""
    common = draw.standard_normal((cells, int(group.max(initial=-1)) + 1))[:, group]
    return np.asarray(np.sqrt(rho) * common + np.sqrt(1.0 - rho) * draw.standard_normal((cells, len(group))))


def copies(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Each bet is `rows_low` to `rows_high` rows with the same outcome, a minute apart."""
    week, entry = spread_over_week(edge.shape[1], given.count)
    found = []
    for row in edge:
        bets = draw.integers(given.rows_low, given.rows_high, endpoint=True, size=len(week))
        bet = np.repeat(np.arange(len(week)), bets)
        fill = np.arange(len(bet)) - np.repeat(bets.cumsum() - bets, bets)
        begin = entry[bet] + fill * MINUTE_NS
        r = given.payoff.outcomes(draw.standard_normal(len(week)), row[week])
        found.append(CellTrades(begin, begin + HOUR_NS, r[bet]))
    return found


def common_factor(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """`symbols` trades a week that do not overlap and share one factor of the week."""
    week, entry = spread_over_week(edge.shape[1], given.symbols)
    return hourly(given.payoff, in_groups(draw, len(edge), week, given.rho), edge, week, entry)


def dominated(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """One symbol makes ten of fourteen trades a week, all on one view of it; four others go their own way."""
    weeks = edge.shape[1]
    week, place = np.divmod(np.arange(weeks * (DOMINATING + OTHERS)), DOMINATING + OTHERS)
    # The view is a group of its own each week; every other trade stands alone.
    alone = weeks + np.arange(len(week))
    group = np.where(place < DOMINATING, week, alone)
    driver = in_groups(draw, len(edge), group, given.rho)
    entry = times_in_week(week, (place + 0.5) * 120.0 / (DOMINATING + OTHERS))
    return hourly(given.payoff, driver, edge, week, entry)


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
