"""Outcomes of single trades in R whose mean is known by construction, from standard normal drivers.

The driver carries the dependence between trades (a shared bet, a shock, autocorrelation) and the payoff its
marginal shape: a Gaussian copula. A larger driver is a better trade. `edge` is the true mean in R after
costs, of one trade or broadcast over all of them.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from services.statistics.blocks import Floats

FREEDOM = 3.0


class Payoff(Protocol):
    """A marginal shape."""

    def outcomes(self, driver: Floats, edge: Floats) -> Floats:
        """R of each trade, shaped like `driver`; its mean is `edge`."""


@dataclass(frozen=True)
class StudentT:
    """Student's t with three degrees of freedom, unit variance."""

    def outcomes(self, driver: Floats, edge: Floats) -> Floats:
        """Symmetric about the edge."""
        return np.asarray(stdtrit(FREEDOM, ndtr(driver)) / np.sqrt(FREEDOM) + edge)


@dataclass(frozen=True)
class Bracket:
    """A target and a stop, in R after costs; the win chance is (stop + edge) / (target + stop)."""

    target: float
    stop: float = 1.0

    def outcomes(self, driver: Floats, edge: Floats) -> Floats:
        """Either the target or minus the stop."""
        chance = np.clip((self.stop + edge) / (self.target + self.stop), 0.0, 1.0)
        return np.where(driver > -ndtri(chance), self.target, -self.stop)


@dataclass(frozen=True)
class FatWinners:
    """A trend follower: seven in ten lose 1R, the rest win a Lomax amount of the given tail index.

    The scale follows from the mean: edge = -(1 - chance) + chance x scale / (tail - 1).
    """

    tail: float
    chance: float = 0.3

    def outcomes(self, driver: Floats, edge: Floats) -> Floats:
        """Losers are alike; a tail of two or less has no variance."""
        scale = (edge + 1.0 - self.chance) * (self.tail - 1.0) / self.chance
        left = np.minimum(ndtr(-driver) / self.chance, 1.0)
        return np.where(left < 1.0, scale * (left ** (-1.0 / self.tail) - 1.0), -1.0)


@dataclass(frozen=True)
class Lognormal:
    """A multiple of what was staked: (1 + edge) exp(sigma z - sigma^2 / 2) - 1."""

    sigma: float

    def outcomes(self, driver: Floats, edge: Floats) -> Floats:
        """Never below -1R."""
        return np.asarray((1.0 + edge) * np.exp(self.sigma * driver - self.sigma**2 / 2.0) - 1.0)


@dataclass(frozen=True)
class ManyZeros:
    """Six in ten trades come out at nothing, losers at -0.5, -0.75 or -1R, winners at 1, 1.5 or 2R."""

    zeros: float = 0.6

    def outcomes(self, driver: Floats, edge: Floats) -> Floats:
        """A few values only; wins are 1.5R on average and losses 0.75R."""
        moved = 1.0 - self.zeros
        wins = np.clip((edge / moved + 0.75) / 2.25, 0.0, 1.0) * moved
        share = ndtr(driver)
        won, lost = (share - (1.0 - wins)) / np.maximum(wins, 1e-12), share / (moved - wins)
        third = np.minimum(np.floor(3.0 * np.clip(np.where(won >= 0.0, won, lost), 0.0, 1.0)), 2.0)
        return np.where(won >= 0.0, 1.0 + third / 2.0, np.where(lost < 1.0, third / 4.0 - 1.0, 0.0))
