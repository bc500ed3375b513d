"""Decay of a live edge, and holds that no longer look like the playbook's.

Shiryaev-Roberts e-detector (Shin, Ramdas and Rinaldo, "E-detectors", 2023): M_t = L_t (M_{t-1} + 1), averaged
over the bet fractions, where L_t is what block t does to the wealth that is bet on a loss (`claim_path`).
While the mean is at least the reference, E[M_t] <= t where those factors are fair, so the mean number of
blocks before M reaches `ARL` is at least `ARL`.
"""

from dataclasses import dataclass
from math import pi, sqrt

import numpy as np

from services.statistics.blocks import Floats

ARL = 5_000.0
Z_P90 = 1.28
MEDIAN_ERROR = sqrt(pi / 2.0)  # of a median against that of a mean, for normal values


@dataclass(frozen=True)
class Decay:
    """State of one detector: level, highest level, and the first block that raised the alarm."""

    level: float
    highest: float
    alarm_index: int | None


def detect_decay(path: Floats, threshold: float = ARL) -> Decay:
    """The state of a detector after the last of its levels (b,)."""
    if not len(path):
        return Decay(0.0, 0.0, None)
    over = path >= threshold
    return Decay(float(path[-1]), float(path.max()), int(np.argmax(over)) if over.any() else None)


def hold_calibration_z(hold_bars: Floats, p50_bars: float, p90_bars: float) -> float | None:
    """How many standard errors the median hold lies off the expected one.

    Z = (median hold - P50) / (1.2533 (P90 - P50) / 1.28 / sqrt(n)): a median is held against a median, and by
    the spread of the median of n holds; beyond +-2 the expectation is reviewed. None without holds, or when
    the playbook's two quantiles are equal.
    """
    if not len(hold_bars) or p90_bars <= p50_bars:
        return None
    error = MEDIAN_ERROR * (p90_bars - p50_bars) / Z_P90 / sqrt(len(hold_bars))
    return float((np.median(hold_bars) - p50_bars) / error)
