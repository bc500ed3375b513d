"""Whether the blocks of a cluster still depend on each other: lag-1 autocorrelation and Ljung-Box.

    r_k = sum_t (x_t - mean)(x_{t-k} - mean) / sum_t (x_t - mean)^2
    Q = b (b + 2) sum_{k=1..h} r_k^2 / (b - k)

Q is chi-square with h degrees of freedom when blocks are independent.

Source: Ljung and Box, "On a measure of lack of fit in time series models" (Biometrika 1978). Only positive
dependence makes a bettor's wealth grow by chance, so only that is flagged. A mean that moved once is a
finding and no dependence: the levels before and after the best split are taken out first. Read when a
cluster is measured.
"""

from dataclasses import dataclass

import numpy as np

from services.statistics.blocks import Floats

MINIMUM_BLOCKS = 20
LAGS = 5
LEVEL = 0.025
LAG_ONE_LIMIT = 1.96  # standard deviations of r_1 under independence, 1/sqrt(b) each


@dataclass(frozen=True)
class Dependence:
    """Diagnosis of one sequence of blocks; the numbers are None below `MINIMUM_BLOCKS` blocks."""

    blocks: int
    lag_one: float | None
    ljung_box_p: float | None

    @property
    def flagged(self) -> bool:
        """Whether the blocks are too alike to their neighbours to be bet on one by one."""
        if self.lag_one is None or self.ljung_box_p is None or self.lag_one <= 0.0:
            return False
        return self.ljung_box_p < LEVEL or self.lag_one * self.blocks**0.5 > LAG_ONE_LIMIT


def autocorrelations(values: Floats, lags: int) -> Floats:
    """r_1 .. r_lags along the last axis, shape (..., lags); 0 for a constant sequence."""
    centred = values - values.mean(axis=-1, keepdims=True)
    total = (centred**2).sum(axis=-1)
    products = [(centred[..., lag:] * centred[..., :-lag]).sum(axis=-1) for lag in range(1, lags + 1)]
    safe = np.where(total > 0.0, total, 1.0)
    return np.stack([np.where(total > 0.0, product / safe, 0.0) for product in products], axis=-1)


def ljung_box(values: Floats, lags: int = LAGS) -> tuple[Floats, Floats]:
    """Q and its p-value along the last axis; needs more observations than lags."""
    from scipy.special import gammaincc  # loaded where it is used, see `Track.fixed_time`

    n = values.shape[-1]
    weights = 1.0 / (n - np.arange(1, lags + 1))
    q = n * (n + 2.0) * (autocorrelations(values, lags) ** 2 * weights).sum(axis=-1)
    return q, gammaincc(lags / 2.0, q / 2.0)


def without_levels(values: Floats) -> Floats:
    """Outcomes (n,) less the means of the two stretches whose means differ most for their lengths.

    The split is that of least squares; either stretch holds at least a tenth.
    """
    n = len(values)
    ends = np.arange(n // 10 + 1, n - n // 10)
    sums = values.cumsum()
    gained = (sums[ends - 1] - ends * values.mean()) ** 2 / (ends * (n - ends))
    split = int(ends[np.argmax(gained)])
    return np.concatenate([part - part.mean() for part in (values[:split], values[split:])])


def diagnose(values: Floats) -> Dependence:
    """The diagnosis of one sequence of block outcomes (b,) in order."""
    blocks = len(values)
    if blocks < MINIMUM_BLOCKS:
        return Dependence(blocks, None, None)
    centred = without_levels(values)
    return Dependence(blocks, float(autocorrelations(centred, 1)[0]), float(ljung_box(centred)[1]))
