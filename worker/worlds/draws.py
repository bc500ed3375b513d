"""Seeded outcomes of worlds whose truth is known, as tables of trades like anybody's.

Every cell trades five times a week. `walk` is a random walk between a stop at -1R and a target at +2R with
costs, `t3` has the fat tails of Student's t with three degrees of freedom, `ar1` lets each outcome of a cell
lean on the one before, and in `shock` all cells share one shock a week.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from services.high_level.trade_table import TradeTable

World = Literal["walk", "t3", "ar1", "shock"]
Floats = NDArray[np.float64]

WORLDS: tuple[World, ...] = get_args(World)
PER_WEEK = 5
REGIMES = ("sideways/low", "sideways/mid", "up/low", "up/mid")
TARGET_R = 2.0
COST_R = 0.05
AR1_PHI = 0.2
SHOCK_SHARE = 0.3
RUNS_AT_ONCE = 50
HOUR_NS = 3_600_000_000_000
WEEK_NS = 7 * 24 * HOUR_NS
MONDAY_NS = 19_723 * 24 * HOUR_NS  # 2024-01-01


@dataclass(frozen=True)
class Grid:
    """Which cells a world has: `playbooks` names and the `regimes` of each, traded for `weeks`."""

    playbooks: int
    regimes: int
    weeks: int

    @property
    def cells(self) -> int:
        """Number of cells, playbook after playbook."""
        return self.playbooks * self.regimes

    @property
    def trades(self) -> int:
        """Trades of one cell in all weeks."""
        return self.weeks * PER_WEEK

    @property
    def looks(self) -> tuple[int, ...]:
        """The end of every week, ns."""
        return tuple(MONDAY_NS + (week + 1) * WEEK_NS for week in range(self.weeks))


def cost_of(world: World) -> float:
    """What a trade of a null world loses on average, in R."""
    return COST_R if world == "walk" else 0.0


def batches(world: World, grid: Grid, mean: Floats, runs: int, seed: int) -> Iterator[Floats]:
    """Outcomes in R after costs, some runs at a time, shape (runs, cells, trades).

    Args:
        world: how outcomes vary.
        grid: the cells.
        mean: what is added to each cell's edge, broadcast to (cells, trades).
        runs: number of runs in all; more runs begin with the fewer.
        seed: same seed, same outcomes.
    """
    for batch, first in enumerate(range(0, runs, RUNS_AT_ONCE)):
        key = [seed, WORLDS.index(world), grid.cells, grid.weeks, batch]
        draw = np.random.Generator(np.random.PCG64(key))
        shape = (RUNS_AT_ONCE, grid.cells, grid.trades)
        edge = np.broadcast_to(mean, shape[1:])
        yield _outcomes(world, draw, shape, edge)[: runs - first]


def _outcomes(world: World, draw: np.random.Generator, shape: tuple[int, int, int], edge: Floats) -> Floats:
    if world == "walk":
        # A walk without drift reaches +2R before -1R with chance 1/3; a drift is a better or worse chance.
        chance = (1.0 + edge) / (1.0 + TARGET_R)
        return np.where(draw.random(shape) < chance, TARGET_R, -1.0) - COST_R
    noise = draw.standard_t(3, shape) / np.sqrt(3.0)
    if world == "ar1":
        noise[..., 1:] *= np.sqrt(1.0 - AR1_PHI**2)
        for t in range(1, shape[-1]):
            noise[..., t] += AR1_PHI * noise[..., t - 1]
    if world == "shock":
        weekly = draw.standard_normal((shape[0], 1, shape[2] // PER_WEEK))
        noise = np.sqrt(1.0 - SHOCK_SHARE) * noise + np.sqrt(SHOCK_SHARE) * np.repeat(
            weekly, PER_WEEK, axis=2
        )
    return np.asarray(noise + edge)


def table_of(r: Floats, grid: Grid, reference: float) -> TradeTable:
    """One run's outcomes (cells, trades) as a table: on the five first days of each week, an hour each."""
    week, day = np.divmod(np.arange(grid.trades), PER_WEEK)
    cell = np.arange(grid.cells)[:, None]
    entry = np.asarray(
        MONDAY_NS + week * WEEK_NS + (day * 24 + 1) * HOUR_NS + cell * HOUR_NS // 2, dtype=np.int64
    )
    books, regimes = np.divmod(np.repeat(np.arange(grid.cells), grid.trades), grid.regimes)
    return TradeTable(
        entry_ns=entry.ravel(),
        exit_ns=entry.ravel() + HOUR_NS,
        r=r.ravel(),
        playbook=books,
        regime=regimes,
        timeframe=np.zeros(r.size, dtype=np.int64),
        playbooks=tuple(f"playbook_{index:02d}" for index in range(grid.playbooks)),
        regimes=REGIMES[: grid.regimes],
        timeframes=("1h",),
        bar_s=(3_600,),
        references=(reference,) * grid.playbooks,
    )
