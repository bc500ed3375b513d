"""Worlds whose outcomes have odd shapes: fat winners, lognormal, heavy costs, many zeros, a GARCH market."""

import numpy as np

from services.statistics.blocks import Floats
from worker.studies.worlds.calendar import HOUR_NS, CellTrades, spread_over_week
from worker.studies.worlds.parameters import Parameters
from worker.studies.worlds.payoffs import Bracket, FatWinners, Lognormal, ManyZeros, Payoff
from worker.studies.worlds.plain import hourly

ALPHA, LEVERAGE, BETA = 0.05, 0.1, 0.82  # persistence .92: alpha + leverage / 2 + beta
FREEDOM = 5.0


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
    return hourly(payoff, draw.standard_normal((len(edge), len(week))), edge, week, entry)


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
