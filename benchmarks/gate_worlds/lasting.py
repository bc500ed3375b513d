"""Worlds whose dependence outlasts a block: a lasting factor, a swinging mean, price paths held long."""

import numpy as np

from benchmarks.gate_worlds.calendar import DAY_NS, HOUR_NS, MONDAY_NS, CellTrades, spread_over_week
from benchmarks.gate_worlds.payoffs import Parameters
from benchmarks.gate_worlds.plain import hourly
from services.statistics.blocks import Floats
from services.statistics.calendar_units import Integers

TRADING_DAYS = 5
WILD, SWITCH = (
    2.5,
    1.0 / 40.0,
)  # spread of wild days against calm ones, and the chance that a day changes them
FREEDOM = 4.0
STOP_SPREADS, REWARD = 4.0, 2.0  # of the day of entry; the target in stops


def persistent(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """All cells share a weekly factor that leans on the one of the week before by `phi`."""
    week, entry = spread_over_week(edge.shape[1], given.count)
    factor = draw.standard_normal((1, edge.shape[1]))[0]
    factor[1:] *= np.sqrt(1.0 - given.phi**2)
    for t in range(1, len(factor)):
        factor[t] += given.phi * factor[t - 1]
    own = draw.standard_normal((len(edge), len(week)))
    driver = np.sqrt(1.0 - given.share) * own + np.sqrt(given.share) * factor[week]
    return hourly(given.payoff, driver, edge, week, entry)


def swinging(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """The mean of each cell lies `swing` above its edge for `span` weeks, then as far below, and so on."""
    week, entry = spread_over_week(edge.shape[1], given.count)
    phase = draw.integers(2 * given.span, size=(len(edge), 1))
    turns = (np.arange(edge.shape[1]) + phase) // given.span % 2
    moved = edge + given.swing * (1.0 - 2.0 * turns)
    return hourly(given.payoff, draw.standard_normal((len(edge), len(week))), moved, week, entry)


def paths(draw: np.random.Generator, edge: Floats, given: Parameters) -> list[CellTrades]:
    """Long positions on daily prices: a stop, a target of 2R, out after `hold_low` to `hold_high` days.

    Prices are sums of fair t(4) moves with calm and wild days; symbols are correlated by `rho`. Exits are at
    the close that is at or beyond the level, so the mean of a trade is its edge, whatever ends it.
    """
    days = edge.shape[1] * TRADING_DAYS
    moves, spread = _moves(draw, days + given.hold_high + 1, given)
    price = np.concatenate((np.zeros((1, given.symbols)), moves.cumsum(axis=0)))
    return [_held(draw, row, given, price, spread) for row in edge]


def _moves(draw: np.random.Generator, days: int, given: Parameters) -> tuple[Floats, Floats]:
    """Moves (days, symbols) and the spread of each day's, (days,)."""
    wild = (draw.random(days) < SWITCH).cumsum() % 2
    spread = np.where(wild == 1, WILD, 1.0)
    unit = np.sqrt((FREEDOM - 2.0) / FREEDOM)
    common = draw.standard_t(FREEDOM, (days, 1)) * unit
    own = draw.standard_t(FREEDOM, (days, given.symbols)) * unit
    return spread[:, None] * (np.sqrt(given.rho) * common + np.sqrt(1.0 - given.rho) * own), spread


def _held(
    draw: np.random.Generator, edge: Floats, given: Parameters, price: Floats, spread: Floats
) -> CellTrades:
    week = np.repeat(np.arange(len(edge)), given.count)
    day = week * TRADING_DAYS + draw.integers(TRADING_DAYS, size=len(week))
    symbol = draw.integers(given.symbols, size=len(week))
    longest = draw.integers(given.hold_low, given.hold_high, endpoint=True, size=len(week))
    step = np.arange(1, given.hold_high + 1)
    risk = STOP_SPREADS * spread[np.maximum(day - 1, 0)]
    r = (price[day[:, None] + step, symbol[:, None]] - price[day, symbol][:, None]) / risk[:, None]
    out = (r <= -1.0) | (r >= REWARD) | (step >= longest[:, None])
    held = out.argmax(axis=1)
    found = np.take_along_axis(r, held[:, None], axis=1)[:, 0]
    return CellTrades(_closes(day), _closes(day + held + 1) + HOUR_NS, found + edge[week])


def _closes(day: Integers) -> Integers:
    """Closes of trading days, five a week, ns."""
    week, place = np.divmod(day, TRADING_DAYS)
    return np.asarray(MONDAY_NS + (7 * week + place) * DAY_NS + 21 * HOUR_NS, dtype=np.int64)
