"""Smallest detectable effect: what a cluster of this size could have shown.

A stake l on a block's sum of n rows, with spread s, gains about l n d - l^2 (s^2 + (n d)^2) / 2 in log wealth
for a true deviation d, with standard deviation l s. The answer is the smallest d whose log wealth after all
blocks passes the threshold with the wanted power, for the best of the fractions and the stakes as they were:
those of the first blocks are small, because the spread was not known yet. Where longer groups have to agree,
it is that of the group that shows least. The second-order expansion of log(1 + x) is the source.
"""

from math import ceil, inf, log, sqrt
from statistics import NormalDist

import numpy as np

from services.statistics.blocks import Floats
from services.statistics.claim_path import FRACTIONS, PLAIN_SHARE
from services.statistics.sample import CLAIMS, Sample
from services.statistics.track import Track


def smallest_detectable_effect(track: Track, blocks: int, alpha: float, power: float = 0.8) -> float | None:
    """Smallest |deviation from the reference| in R that a claim at `alpha` finds with this power.

    The worse of the two claims is returned; None when so many blocks could not show any deviation inside the
    winsor bounds.
    """
    if blocks < 2:
        return None
    bounds = track.bounds
    reach = (track.reference - bounds.low, bounds.high - track.reference)
    found = [
        max((_smallest(*bets, alpha, power) for bets in track.bets(claim, blocks)), default=inf)
        for claim in range(len(CLAIMS))
    ]
    if any(effect > farthest for effect, farthest in zip(found, reach, strict=True)):
        return None
    return max(found)


def blocks_to_prove(track: Track, seen: Sample, alpha: float, target: float | None = None) -> int | None:
    """About how many more blocks until what a cluster leans to holds at `alpha`, at its mean and spread.

    At least 1; None where it leans to nothing, or no stake gains at this mean. It has reached its E-value;
    capital that starts anew has lost no more than was set aside for it. `target`, in R, is believed instead
    of what the bounds say is usual: the largest sum against a loss shrinks, and no more blocks are needed.
    """
    blocks, sums = seen.blocks, track.outcomes(seen.blocks)
    d = abs(float(sums.mean())) if blocks > 1 else 0.0
    if not d or seen.leaning is None:
        return None
    claim = CLAIMS.index(seen.leaning)
    spread, adverse = track.stakes(claim, blocks)
    if target is not None:
        worst = float(np.sort(track.blocks.worst[claim][:, :blocks], axis=None)[-2])
        usual = track.bounds.usual(claim)
        adverse *= max(min(target, usual), worst) / max(usual, worst)
    square = spread**2 + d**2
    stake = d / square
    if spread:
        stake = min(max(stake, FRACTIONS[0] / spread), FRACTIONS[-1] / spread)
    stake = min(stake, 1.0 / adverse)
    gain = stake * d - 0.5 * stake**2 * square
    if gain <= 0.0:
        return None
    anew = log(PLAIN_SHARE / len(FRACTIONS))
    reached = max(log(seen.e_value), anew) if seen.e_value > 0.0 else anew
    return max(ceil((-log(alpha) - reached) / gain), 1)


def _smallest(rows: Floats, spread: Floats, adverse: Floats, alpha: float, power: float) -> float:
    known = spread > 0.0
    if not known.any():
        return inf
    rows, spread, adverse = rows[known], spread[known], adverse[known]
    z, last = NormalDist().inv_cdf(power), float(spread[-1])
    threshold = log(len(FRACTIONS) / (PLAIN_SHARE * alpha))
    roots = []
    for fraction in FRACTIONS:
        stake = np.minimum(fraction / spread, 1.0 / adverse)
        linear, square = float((stake * rows).sum()), float(((stake * rows) ** 2).sum())
        variance = float((stake**2).sum()) * last**2
        needed = threshold + z * sqrt(variance) + 0.5 * variance
        discriminant = linear**2 - 2.0 * square * needed
        if discriminant >= 0.0:
            roots.append((linear - sqrt(discriminant)) / square)
    return min(roots, default=inf)
