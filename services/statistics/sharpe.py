"""Sharpe-type figures of a cluster: shown with the gate's, never part of it.

    PSR(s*) = Phi((s - s*) sqrt(n - 1) / sqrt(1 - g3 s + (g4 - 1) / 4 s^2))
    MinTRL  = 1 + (1 - g3 s + (g4 - 1) / 4 s^2) (z / (s - s*))^2
    DSR     = PSR at s* = sqrt(V) [(1 - c) Phi^-1(1 - 1/N) + c Phi^-1(1 - 1/(N e))],   c = 0.5772

with s the Sharpe ratio of an observation, g3 and g4 skewness and kurtosis of n of them, N every variant ever
tried and V the variance of the Sharpe ratios that were measured. An observation is the sum of a block, since
the trades of a block may be one bet. Sources: Bailey and Lopez de Prado, "The Sharpe ratio efficient
frontier" (2012) and "The deflated Sharpe ratio" (2014). They hold for one look at a fixed n, and the moments
of fat tails are unstable; that is why no decision reads them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from math import e, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from schemas.vocabulary import Claim
from services.statistics.blocks import Floats
from services.statistics.sample import Sample
from services.statistics.track import FIXED_TIME_BLOCKS, Track

EULER = 0.5772156649015329
MINIMUM = 3
LEVEL = 0.95
DIGITS = 6
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Moments:
    """Sharpe ratio of an observation with what its standard error needs; population moments."""

    n: int
    sharpe: float
    skewness: float
    kurtosis: float

    @property
    def variance(self) -> float:
        """1 - g3 s + (g4 - 1) / 4 s^2: variance of the Sharpe ratio times n - 1."""
        found = 1.0 - self.skewness * self.sharpe + (self.kurtosis - 1.0) / 4.0 * self.sharpe**2
        return max(found, 1e-12)  # 0 where two values alone came: rounding may take it below


def moments(r: Floats) -> Moments | None:
    """Moments of observations in R; None for fewer than three, or without any spread."""
    values = np.sort(np.asarray(r, dtype=np.float64))
    if len(values) < MINIMUM or values[0] == values[-1]:
        return None
    centred = values - values.mean()
    second = float((centred**2).mean())
    sharpe = float(values.mean()) / sqrt(second * len(values) / (len(values) - 1))
    third, fourth = (float((centred**power).mean()) for power in (3, 4))
    return Moments(len(values), sharpe, third / second**1.5, fourth / second**2)


def probabilistic_sharpe(found: Moments, benchmark: float = 0.0) -> float:
    """Probability that the true Sharpe ratio of an observation exceeds `benchmark`."""
    return _NORMAL.cdf((found.sharpe - benchmark) * sqrt((found.n - 1) / found.variance))


def expected_best_sharpe(trials: int, variance: float) -> float:
    """Sharpe ratio that the best of `trials` worthless variants is expected to show; 0 for a single one."""
    if trials < 2:
        return 0.0
    first = _NORMAL.inv_cdf(1.0 - 1.0 / trials)
    second = _NORMAL.inv_cdf(1.0 - 1.0 / (trials * e))
    return sqrt(variance) * ((1.0 - EULER) * first + EULER * second)


def minimum_track_record(found: Moments, benchmark: float = 0.0, level: float = LEVEL) -> float | None:
    """Observations after which PSR against `benchmark` would reach `level`; None when it never will."""
    if found.sharpe <= benchmark:
        return None
    return 1.0 + found.variance * (_NORMAL.inv_cdf(level) / (found.sharpe - benchmark)) ** 2


class SharpeFigures(NamedTuple):
    """See `ClusterFinding`; all None below ten observations or without any spread."""

    psr: float | None = None
    dsr: float | None = None
    minimum_track_record: float | None = None

    def companions(self, claim: Claim | None) -> str:
        """Why they do not say what the gate does; empty where they do."""
        if self.psr is None:
            return ""
        side = "gaining" if self.psr >= LEVEL else "losing" if self.psr <= 1.0 - LEVEL else None
        deflated = self.psr if self.dsr is None else self.dsr
        if side == claim and (claim != "gaining" or deflated >= LEVEL):
            return ""
        shown = f"PSR {self.psr:.3f}" + ("" if self.dsr is None else f" (DSR {self.dsr:.3f})")
        if claim is None:
            return f"{shown} of one look is no proof: E counts every look and all that is tested"
        return f"{shown} of one look falls short of {LEVEL:g} for {claim}, which E of all looks proves"


def sharpe_of_a_block(track: Track, blocks: int) -> float | None:
    """Sharpe ratio of a block's sum above the reference; None below ten blocks or without any spread."""
    found = moments(track.outcomes(blocks)) if blocks >= FIXED_TIME_BLOCKS else None
    return None if found is None else round(found.sharpe, 9)


def sharpe_figures(track: Track, seen: Sample, variants: int, tried: Collection[float]) -> SharpeFigures:
    """The figures of a cluster at one look.

    Args:
        track: its blocks.
        seen: what it has shown; of blocks that resemble each other, sums of four count where they show less.
        variants: hypotheses that were tried in all; DSR is None where the spread of several is unknown.
        tried: Sharpe ratios of a block of those that were measured, this cluster's among them.
    """
    readings = []
    for together in (False, True) if seen.together > 1 else (False,):
        outcomes = track.outcomes(seen.blocks, together=together)
        found = moments(outcomes) if len(outcomes) >= FIXED_TIME_BLOCKS else None
        if found is None:
            return SharpeFigures()
        readings.append(found)
    found = min(readings, key=lambda reading: abs(probabilistic_sharpe(reading) - 0.5))
    scale, dsr, distinct = seen.blocks / found.n, None, sorted(set(tried))
    if variants < 2 or len(distinct) > 1:
        spread = float(np.var(distinct, ddof=1)) if variants > 1 else 0.0
        dsr = round(probabilistic_sharpe(found, expected_best_sharpe(variants, spread * scale)), DIGITS)
    needed = minimum_track_record(found)
    record = None if needed is None else round(needed * scale, 3)
    return SharpeFigures(round(probabilistic_sharpe(found), DIGITS), dsr, record)
