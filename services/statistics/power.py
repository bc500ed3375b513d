"""Smallest detectable effect: what a cluster of this size could have shown.

For a bet of fraction f the log wealth after n blocks is about normal with mean sum(l d - l^2 (s^2 + d^2) / 2)
and standard deviation s sqrt(sum l^2), where l_i = f / (distance from the reference to the losing bound) and
d is the true deviation. The answer is the smallest d whose log wealth passes the threshold with the wanted
power for the best f. The second-order expansion of log(1 + x) is the source; it agrees with the simulated
sample sizes within a fifth.
"""

from statistics import NormalDist

import numpy as np

from services.statistics.eprocess import FRACTIONS
from services.statistics.expectancy import Floats, Observations

PRIOR_SD_R = 1.0
PRIOR_BLOCKS = 5.0


def block_sd(observations: Observations) -> float:
    """Standard deviation of a block mean in R, shrunken towards 1R per trade by five blocks' weight."""
    n = len(observations)
    prior = PRIOR_SD_R**2 * float(np.mean(1.0 / observations.sizes))
    spread = float(np.var(observations.values)) * n if n > 1 else 0.0
    return float(np.sqrt((spread + PRIOR_BLOCKS * prior) / ((n if n > 1 else 0) + PRIOR_BLOCKS)))


def _smallest_root(lambdas: Floats, sd: float, needed: float) -> float | None:
    linear, square = float(lambdas.sum()), float((lambdas**2).sum())
    constant = 0.5 * square * sd**2 + needed
    discriminant = linear**2 - 2.0 * square * constant
    if discriminant < 0.0:
        return None
    return float((linear - np.sqrt(discriminant)) / square)


def smallest_detectable_effect(observations: Observations, alpha: float, power: float = 0.8) -> float | None:
    """Smallest |deviation from the reference| in R found by two-sided E >= 1/alpha with this power.

    The worse of the two directions is returned; None when these blocks could not show any deviation inside
    the winsor bounds.
    """
    if not len(observations):
        return None
    sd, z = block_sd(observations), NormalDist().inv_cdf(power)
    threshold = np.log(2.0 * len(FRACTIONS) / alpha)
    widths = (observations.reference - observations.low, observations.high - observations.reference)
    reach = (observations.ceiling - observations.reference, observations.reference - observations.floor)
    worst = 0.0
    for width, farthest in zip(widths, reach, strict=True):
        found = []
        for fraction in FRACTIONS:
            lambdas = fraction / width
            root = _smallest_root(lambdas, sd, threshold + z * sd * float(np.sqrt((lambdas**2).sum())))
            if root is not None and root <= farthest:
                found.append(root)
        if not found:
            return None
        worst = max(worst, min(found))
    return worst
