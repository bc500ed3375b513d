"""Decay of a live edge, and holds that no longer look like the playbook's.

Shiryaev-Roberts e-detector (Shin, Ramdas and Rinaldo, "E-detectors", 2023): M_t = L_t (M_{t-1} + 1), averaged
over the bet fractions, where L_t is the factor of E-. While the mean is at least the reference, E[M_t] <= t,
so the mean number of observations before M reaches `threshold` is at least `threshold`. An alarm is a
monitoring finding.
"""

from dataclasses import dataclass

import numpy as np

from services.statistics.eprocess import FRACTIONS, relative_gain
from services.statistics.expectancy import Floats

ARL = 5_000.0
CEILING = 1e300
Z_P90 = 1.28


@dataclass(frozen=True)
class Decay:
    """State of one detector: level, highest level, and the first observation that raised the alarm."""

    level: float
    highest: float
    alarm_index: int | None


def decay_path(values: Floats, low: Floats, high: Floats, reference: float) -> Floats:
    """M_t after each observation, shape (..., n); capped at 1e300."""
    gain = relative_gain(values, low, high, np.full(values.shape[:-1], reference), above=False)
    factors = 1.0 - FRACTIONS.reshape((-1,) + (1,) * gain.ndim) * (1.0 - gain)
    state = np.zeros(factors.shape[:-1])
    path = np.empty(gain.shape)
    for index in range(gain.shape[-1]):
        state = np.minimum(factors[..., index] * (state + 1.0), CEILING)
        path[..., index] = state.mean(axis=0)
    return path


def detect_decay(
    values: Floats, low: Floats, high: Floats, reference: float, threshold: float = ARL
) -> Decay:
    """Run the detector over one sequence of observations (n,) in order of exit."""
    path = decay_path(values, low, high, reference)
    if not len(path):
        return Decay(0.0, 0.0, None)
    over = path >= threshold
    return Decay(float(path[-1]), float(path.max()), int(np.argmax(over)) if over.any() else None)


def hold_calibration_z(hold_bars: Floats, p50_bars: float, p90_bars: float) -> float | None:
    """Z = (mean hold - P50) / ((P90 - P50) / 1.28); beyond +-2 the expectation is reviewed.

    None without holds, or when the playbook's two quantiles are equal.
    """
    if not len(hold_bars) or p90_bars <= p50_bars:
        return None
    return float((np.mean(hold_bars) - p50_bars) / ((p90_bars - p50_bars) / Z_P90))
