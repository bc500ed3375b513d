"""Worlds in which trades are one bet, or nearly: symbols, fills and copies, a factor, a dominating symbol."""

import numpy as np

from services.statistics.blocks import Floats
from services.statistics.calendar_units import Integers
from worker.studies.worlds.calendar import HOUR_NS, CellTrades, spread_over_week, times_in_week
from worker.studies.worlds.parameters import Parameters
from worker.studies.worlds.plain import hourly

MINUTE_NS = HOUR_NS // 60
DOMINATING, OTHERS = 10, 4


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
