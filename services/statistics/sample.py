"""One cluster's trades as a sample that can be tested: blocks, mean and e-value, in a unit that carries them.

Blocks that still depend on each other are widened to the next coarser unit, and again while they are flagged.
The e-value of a widened sample is the smallest of all units looked at: choosing a unit after seeing the
outcomes can then only cost evidence, never make it. The slow loop, `thinktwice gate` and the worlds all
measure here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from services.statistics.dependence import Dependence, diagnose
from services.statistics.eprocess import e_value, log_e_two_sided
from services.statistics.expectancy import COARSER, BetUnit, Observations, Trades, observe, winsorise


@dataclass(frozen=True)
class Widening:
    """A unit that was left because its blocks depend on each other."""

    unit: BetUnit
    dependence: Dependence


@dataclass(frozen=True)
class Sample:
    """What one cluster has shown before any grade; R winsorised.

    Attributes:
        n: trades.
        mean_r: winsorised mean over trades; None without any.
        units: observations in each unit looked at, the declared one first; the last is in force.
        unit: the unit in force.
        widened: the units left, in order.
        log_e: log of the smallest two-sided e-value over `units`.
    """

    n: int
    mean_r: float | None
    units: tuple[Observations, ...]
    unit: BetUnit
    widened: tuple[Widening, ...]
    log_e: float

    @property
    def declared(self) -> Observations:
        """Blocks in the unit that the settings declare."""
        return self.units[0]

    @property
    def observations(self) -> Observations:
        """Blocks in the unit in force."""
        return self.units[-1]

    @cached_property
    def e_value(self) -> float:
        """Two-sided e-value, to nine significant digits."""
        return e_value(self.log_e)

    @property
    def note(self) -> str:
        """Why the unit was widened; empty when it was not."""
        if not self.widened:
            return ""
        first = self.widened[0]
        seen = (
            f"autocorrelation {first.dependence.lag_one:.2f}, Ljung-Box p {first.dependence.ljung_box_p:.2g}"
        )
        return f"unit widened from {first.unit} to {self.unit}: {seen} over {first.dependence.blocks} blocks"


def sample(trades: Trades, unit: BetUnit, low: float, high: float, reference: float) -> Sample:
    """The sample of one cluster's trades, in a unit that is already resolved.

    Raises:
        DataError: the reference does not lie strictly between the winsor bounds.
    """
    clipped = np.sort(winsorise(trades.r, low, high))
    mean = round(float(clipped.mean()), 9) if len(clipped) else None
    return weigh(lambda one: observe(trades, one, low, high, reference), unit, len(clipped), mean)


def weigh(blocks: Callable[[BetUnit], Observations], unit: BetUnit, n: int, mean_r: float | None) -> Sample:
    """The sample of `n` trades whose blocks in any unit come from `blocks`."""
    units = [blocks(unit)]
    widened: list[Widening] = []
    while unit in COARSER:
        seen = diagnose(units[-1].values)
        if not seen.flagged:
            break
        widened.append(Widening(unit, seen))
        unit = COARSER[unit]
        units.append(blocks(unit))
    log_e = min(float(log_e_two_sided(one.values, one.low, one.high, one.reference)) for one in units)
    return Sample(n, mean_r, tuple(units), unit, tuple(widened), log_e)
