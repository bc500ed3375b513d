"""Outcomes of single trades in R whose mean is known by construction, from standard normal drivers.

The driver carries the dependence between trades (a shared bet, a shock, autocorrelation) and the payoff its
marginal shape: a Gaussian copula. A larger driver is a better trade. `edge` is the true mean in R after
costs, of one trade or broadcast over all of them.

What can be set about a world, and its defaults.
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


@dataclass(frozen=True)
class Parameters:
    """Numbers that make a kind of world; each kind reads some of them.

    Attributes:
        per_week: bets a week and cell.
        target: R of a winner against losers of -1R; 0 draws Student's t(3) instead.
        symbols: trades that share one bet; `rho` is the correlation of their drivers.
        rho: correlation of trades that share something.
        rows_low: fewest rows of one bet; `rows_high` the most.
        rows_high: most rows of one bet.
        phi: correlation of a driver with the one before, of trades or of weeks.
        share: variance share of a common shock.
        span: weeks that one shock lasts, or a swing in one direction.
        swing: R by which a mean swings.
        hold_low: fewest days after which a position is closed at the latest; `hold_high` the most.
        hold_high: most days.
        win_hours: hours until a winner exits; `loss_hours` for a loser.
        loss_hours: hours until a loser exits.
        tail: index of the winners' Lomax tail.
        sigma: of a lognormal outcome.
        cost: R that every trade pays, inside its outcomes.
        crash_every: weeks from one crash to the next on average.
        crash_trades: trades at -1R in a crash week.
        calm: mean R of calm weeks.
    """

    per_week: float = 5.0
    target: float = 0.0
    symbols: int = 8
    rho: float = 0.9
    rows_low: int = 1
    rows_high: int = 15
    phi: float = 0.3
    share: float = 0.3
    span: int = 1
    swing: float = 0.4
    hold_low: int = 20
    hold_high: int = 60
    win_hours: float = 60.0
    loss_hours: float = 4.0
    tail: float = 2.2
    sigma: float = 1.0
    cost: float = 0.3
    crash_every: float = 13.0
    crash_trades: int = 30
    calm: float = 0.4

    @property
    def payoff(self) -> Payoff:
        """The bracket with that target, else Student's t."""
        return Bracket(self.target) if self.target > 0.0 else StudentT()

    @property
    def count(self) -> int:
        """Bets a week as a whole number."""
        return max(round(self.per_week), 1)
