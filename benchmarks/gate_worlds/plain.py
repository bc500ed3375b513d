"""Worlds of separate trades: independent, autocorrelated, shocked, of uneven volatility and counts.

Every maker takes a generator, the true mean of each cell and week (cells, weeks), and the parameters, and
returns the trades of each cell.

Some outcomes have odd shapes: fat winners, lognormal, heavy costs, many zeros, a GARCH market.
"""

import numpy as np

from benchmarks.gate_worlds.calendar import HOUR_NS, CellTrades, spread_over_week, times_in_week
from benchmarks.gate_worlds.payoffs import Bracket, FatWinners, Lognormal, ManyZeros, Parameters, Payoff
from services.statistics.blocks import Floats
from services.statistics.calendar_units import Integers

VOLATILITY_PHI, VOLATILITY_SPREAD = 0.9, 0.6
ALPHA, LEVERAGE, BETA = 0.05, 0.1, 0.82  # persistence .92: alpha + leverage / 2 + beta
FREEDOM = 5.0


def independent(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Independent outcomes, evenly spread."""
    week, entry = spread_over_week(edge.shape[1], given.count)
    return hourly(given.payoff, draw.standard_normal((len(edge), len(week))), edge, week, entry)


def hourly(payoff: Payoff, driver: Floats, edge: Floats, week: Integers, entry: Integers) -> list[CellTrades]:
    """Cells whose trades last an hour, from drivers (cells, n) at the same times."""
    r = payoff.outcomes(driver, edge[:, week])
    return [CellTrades(entry, entry + HOUR_NS, row) for row in r]


def autocorrelated(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Each outcome of a cell leans on the one before: no bet on the past is fair, though the mean is."""
    week, entry = spread_over_week(edge.shape[1], given.count)
    driver = draw.standard_normal((len(edge), len(week)))
    driver[:, 1:] *= np.sqrt(1.0 - given.phi**2)
    for t in range(1, len(week)):
        driver[:, t] += given.phi * driver[:, t - 1]
    return hourly(given.payoff, driver, edge, week, entry)


def shocked(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """All cells share one shock for `span` weeks; where shocks begin is random."""
    week, entry = spread_over_week(edge.shape[1], given.count)
    own = draw.standard_normal((len(edge), len(week)))
    phase = int(draw.integers(given.span))
    common = draw.standard_normal(edge.shape[1] + given.span)[(week + phase) // given.span]
    driver = np.sqrt(1.0 - given.share) * own + np.sqrt(given.share) * common
    return hourly(given.payoff, driver, edge, week, entry)


def volatile(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Calm and wild weeks of each cell: the logarithm of the spread is autocorrelated by .9 a week."""
    cells, weeks = edge.shape
    level = draw.standard_normal((cells, weeks))
    level[:, 1:] *= np.sqrt(1.0 - VOLATILITY_PHI**2)
    for t in range(1, weeks):
        level[:, t] += VOLATILITY_PHI * level[:, t - 1]
    week, entry = spread_over_week(weeks, given.count)
    spread = np.exp(VOLATILITY_SPREAD * level)[:, week]
    noise = given.payoff.outcomes(draw.standard_normal(spread.shape), np.zeros(1))
    return [CellTrades(entry, entry + HOUR_NS, row) for row in noise * spread + edge[:, week]]


def counted(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Poisson counts at random times; with few a week most blocks are empty."""
    return [_at_random_times(draw, row, given, np.full(len(row), given.per_week)) for row in edge]


def holidays(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Poisson counts, and no trade at all in the eighth and the twelfth month of thirteen."""
    month = np.arange(edge.shape[1]) // 4 % 13
    rate = np.where(np.isin(month, (7, 11)), 0.0, given.per_week)
    return [_at_random_times(draw, row, given, rate) for row in edge]


def _at_random_times(draw: np.random.Generator, edge: Floats, given: Parameters, rate: Floats) -> CellTrades:
    week = np.repeat(np.arange(len(edge)), draw.poisson(rate))
    entry = times_in_week(week, draw.random(len(week)) * 150.0)
    r = given.payoff.outcomes(draw.standard_normal(len(week)), edge[week])
    return CellTrades(entry, entry + HOUR_NS, r)


def crowded(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Few trades in good weeks, many in bad ones: a block's size tells its outcome, its sum is fair.

    Four weeks in five have 2 trades at +0.3R, one has 12 at -0.2R: 0.8 x 2 x 0.3 = 0.2 x 12 x 0.2.
    """
    return [_crowded_cell(draw, row, given) for row in edge]


def _crowded_cell(draw: np.random.Generator, edge: Floats, given: Parameters) -> CellTrades:
    busy = draw.random(len(edge)) < 0.2
    week = np.repeat(np.arange(len(edge)), np.where(busy, 12, 2))
    tilt = np.where(busy, -0.2, 0.3)
    entry = times_in_week(week, draw.random(len(week)) * 120.0)
    r = given.payoff.outcomes(draw.standard_normal(len(week)), (edge + tilt)[week])
    return CellTrades(entry, entry + HOUR_NS, r)


def fat_winners(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """A trend follower."""
    return _spread(draw, edge, given, FatWinners(given.tail))


def lognormal(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Multiples of the stake."""
    return _spread(draw, edge, given, Lognormal(given.sigma))


def many_zeros(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Most trades come out at nothing."""
    return _spread(draw, edge, given, ManyZeros())


def heavy_costs(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """A bracket that pays `cost` either way; its win chance makes up for it."""
    return _spread(draw, edge, given, cost_bracket(given))


def cost_bracket(given: Parameters) -> Bracket:
    """Target, or 2R where none is given, and stop of 1R, less the cost."""
    target = given.target if given.target > 0.0 else 2.0
    return Bracket(target - given.cost, 1.0 + given.cost)


def _spread(draw: np.random.Generator, edge: Floats, given: Parameters, payoff: Payoff) -> list[CellTrades]:
    week, entry = spread_over_week(edge.shape[1], given.count)
    cells = hourly(payoff, draw.standard_normal((len(edge), len(week))), edge, week, entry)
    return cells if given.per_week >= 1.0 else [_thin(draw, cell, given.per_week) for cell in cells]


def _thin(draw: np.random.Generator, cell: CellTrades, share: float) -> CellTrades:
    """That share of the trades of a cell, at random: fewer than one a week."""
    taken = draw.random(len(cell.r)) < share
    return CellTrades(cell.entry_ns[taken], cell.exit_ns[taken], cell.r[taken])


def garch(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """GARCH(1,1) with leverage and t(5) innovations: a loss makes the next trades wilder than a win does.

    Outcomes are martingale differences of unit variance about the edge.
    """
    week, entry = spread_over_week(edge.shape[1], given.count)
    unit = draw.standard_t(FREEDOM, (len(edge), len(week))) * np.sqrt((FREEDOM - 2.0) / FREEDOM)
    persistence = ALPHA + LEVERAGE / 2.0 + BETA
    variance = np.ones(len(edge))
    noise = np.empty_like(unit)
    for t in range(len(week)):
        noise[:, t] = np.sqrt(variance) * unit[:, t]
        heat = (ALPHA + LEVERAGE * (unit[:, t] < 0.0)) * noise[:, t] ** 2
        variance = (1.0 - persistence) + heat + BETA * variance
    return [CellTrades(entry, entry + HOUR_NS, row) for row in noise + edge[:, week]]
