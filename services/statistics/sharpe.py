"""Sharpe-type figures of a cluster: shown beside the gate, never part of it.

    PSR(s*) = Phi((s - s*) sqrt(n - 1) / sqrt(1 - g3 s + (g4 - 1) / 4 s^2))
    MinTRL  = 1 + (1 - g3 s + (g4 - 1) / 4 s^2) (z / (s - s*))^2
    DSR     = PSR at s* = sqrt(V) [(1 - c) Phi^-1(1 - 1/N) + c Phi^-1(1 - 1/(N e))],   c = 0.5772

with s the Sharpe ratio per trade, g3 and g4 skewness and kurtosis, N every variant ever tried and V the
variance of their Sharpe ratios. Sources: Bailey and Lopez de Prado, "The Sharpe ratio efficient frontier"
(2012) and "The deflated Sharpe ratio" (2014). They hold for one look at a fixed n, and the moments of fat
tails are unstable; that is why no decision reads them.
"""

from dataclasses import dataclass
from math import e, sqrt
from statistics import NormalDist

import numpy as np

from services.statistics.blocks import Floats

EULER = 0.5772156649015329
MINIMUM_TRADES = 3
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Moments:
    """Sharpe ratio per trade with what its standard error needs; population moments."""

    n: int
    sharpe: float
    skewness: float
    kurtosis: float

    @property
    def variance(self) -> float:
        """1 - g3 s + (g4 - 1) / 4 s^2: variance of the Sharpe ratio times n - 1."""
        return 1.0 - self.skewness * self.sharpe + (self.kurtosis - 1.0) / 4.0 * self.sharpe**2


def moments(r: Floats) -> Moments | None:
    """Moments of outcomes in R; None for fewer than three, or without any spread."""
    values = np.sort(np.asarray(r, dtype=np.float64))
    if len(values) < MINIMUM_TRADES or values[0] == values[-1]:
        return None
    centred = values - values.mean()
    second = float((centred**2).mean())
    sharpe = float(values.mean()) / sqrt(second * len(values) / (len(values) - 1))
    third, fourth = (float((centred**power).mean()) for power in (3, 4))
    return Moments(len(values), sharpe, third / second**1.5, fourth / second**2)


def probabilistic_sharpe(found: Moments, benchmark: float = 0.0) -> float:
    """Probability that the true Sharpe ratio per trade exceeds `benchmark`."""
    return _NORMAL.cdf((found.sharpe - benchmark) * sqrt((found.n - 1) / found.variance))


def expected_best_sharpe(trials: int, variance: float) -> float:
    """Sharpe ratio that the best of `trials` worthless variants is expected to show; 0 for a single one."""
    if trials < 2:
        return 0.0
    first = _NORMAL.inv_cdf(1.0 - 1.0 / trials)
    second = _NORMAL.inv_cdf(1.0 - 1.0 / (trials * e))
    return sqrt(variance) * ((1.0 - EULER) * first + EULER * second)


def deflated_sharpe(found: Moments, trials: int, variance: float | None = None) -> float:
    """PSR against the best of `trials` worthless variants.

    Without the variance of the variants' Sharpe ratios, that of an estimate from n worthless trades stands
    in: 1 / (n - 1).
    """
    spread = 1.0 / (found.n - 1) if variance is None else variance
    return probabilistic_sharpe(found, expected_best_sharpe(trials, spread))


def minimum_track_record(found: Moments, benchmark: float = 0.0, level: float = 0.95) -> float | None:
    """Trades after which PSR against `benchmark` would reach `level`; None when it never will."""
    if found.sharpe <= benchmark:
        return None
    return 1.0 + found.variance * (_NORMAL.inv_cdf(level) / (found.sharpe - benchmark)) ** 2
