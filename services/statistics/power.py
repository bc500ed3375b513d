"""Smallest detectable effect: what a cluster of this size could have shown.

A stake l on a block's sum of n rows, with spread s, gains about l n d - l^2 (s^2 + (n d)^2) / 2 in log wealth
for a true deviation d, with standard deviation l s. The answer is the smallest d whose log wealth after all
blocks passes the threshold with the wanted power, for the best of the stakes that were allowed. The second-
order expansion of log(1 + x) is the source.
"""

from math import log, sqrt
from statistics import NormalDist

from services.statistics.claim_path import FRACTIONS, PLAIN_SHARE
from services.statistics.track import CLAIMS, Track


def smallest_detectable_effect(track: Track, blocks: int, alpha: float, power: float = 0.8) -> float | None:
    """Smallest |deviation from the reference| in R that a claim at `alpha` finds with this power.

    The worse of the two claims is returned; None when so many blocks could not show any deviation inside the
    winsor bounds.
    """
    if blocks < 2:
        return None
    bounds = track.bounds
    reach = (track.reference - bounds.low, bounds.high - track.reference)
    rows = float(track.blocks.sizes[:blocks].mean())
    found = [
        _smallest(track.stakes(claim, blocks), rows, blocks, alpha, power) for claim in range(len(CLAIMS))
    ]
    worst = 0.0
    for effect, farthest in zip(found, reach, strict=True):
        if effect is None or effect > farthest:
            return None
        worst = max(worst, effect)
    return worst


def _smallest(
    stakes: tuple[float, float], rows: float, blocks: int, alpha: float, power: float
) -> float | None:
    spread, adverse = stakes
    if spread <= 0.0:
        return None
    z = NormalDist().inv_cdf(power)
    threshold = log(len(FRACTIONS) / (PLAIN_SHARE * alpha))
    roots = []
    for fraction in FRACTIONS:
        stake = min(fraction / spread, 1.0 / adverse)
        linear, square = stake * rows * blocks, blocks * (stake * rows) ** 2
        needed = threshold + z * stake * spread * sqrt(blocks) + 0.5 * blocks * (stake * spread) ** 2
        discriminant = linear**2 - 2.0 * square * needed
        if discriminant >= 0.0:
            roots.append((linear - sqrt(discriminant)) / square)
    return min(roots, default=None)
