"""Betting e-process for a bounded mean: a mixture of fixed bets, both directions, in log space.

    E+(m) = mean_f prod_i [1 - f + f (x_i - low_i) / (m - low_i)]      evidence that the mean exceeds m
    E-(m) = mean_f prod_i [1 - f + f (high_i - x_i) / (high_i - m)]    evidence that it is below m

with f in {0.1, 0.25, 0.5, 0.8} at equal weights, and the two-sided E = (E+ + E-) / 2. Under the null each
factor has mean one, so P(E ever reaches 1/alpha) <= alpha whatever the number of looks (Ville). The null is
about the means of blocks as they are clipped: of skewed outcomes these differ a little from the mean R. The
value does not depend on the order of blocks. Source: Waudby-Smith and Ramdas, "Estimating means of bounded
random variables by betting" (JRSS-B 2024); the fixed mixture needs no tuning and can be replayed.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from services.statistics.expectancy import Floats

FRACTIONS: Floats = np.array([0.1, 0.25, 0.5, 0.8])
CHUNK = 2**15  # values worked on at once: they and their products stay in the processor's cache


def _log_mean_exp(logs: Floats) -> Floats:
    """Log of the mean of exp over axis 0, without overflow."""
    top = logs.max(axis=0)
    result: Floats = top + np.log(np.mean(np.exp(logs - top), axis=0))
    return result


def relative_gain(values: Floats, low: Floats, high: Floats, mean: ArrayLike, *, above: bool) -> Floats:
    """(x - low) / (m - low) for bets that the mean is above m, else (high - x) / (high - m).

    `values`, `low`, `high` have shape (..., n), `mean` (...); NaN values are padding and come back as 1,
    which changes no product. `mean` must lie strictly inside every bound.
    """
    m = np.asarray(mean, dtype=np.float64)[..., None]
    gain = (values - low) / (m - low) if above else (high - values) / (high - m)
    padding = np.isnan(values)
    return np.where(padding, 1.0, gain) if padding.any() else gain


def _log_product(factors: Floats) -> Floats:
    """Log of the product over the last axis.

    Factors are multiplied sixteen at a time and only then taken to logs, which costs a quarter; a factor lies
    in [0.2, 1e6], so no product of sixteen leaves the range of a float.
    """
    for _ in range(4):
        half = factors.shape[-1] // 2
        if half:
            odd = factors[..., 2 * half :]
            factors = np.concatenate((factors[..., :half] * factors[..., half : 2 * half], odd), axis=-1)
    result: Floats = np.log(factors).sum(axis=-1)
    return result


def _log_wealth(gain: Floats) -> Floats:
    return np.stack([_log_product((1.0 - f) + f * gain) for f in FRACTIONS])


def log_e_above(values: Floats, low: Floats, high: Floats, mean: ArrayLike) -> Floats:
    """Log E+(mean), shape (...); falls as `mean` rises. Zero for no observations."""
    return _log_mean_exp(_log_wealth(relative_gain(values, low, high, mean, above=True)))


def log_e_below(values: Floats, low: Floats, high: Floats, mean: ArrayLike) -> Floats:
    """Log E-(mean), shape (...); rises with `mean`. Zero for no observations."""
    return _log_mean_exp(_log_wealth(relative_gain(values, low, high, mean, above=False)))


def in_chunks(
    work: Callable[..., Floats], values: Floats, low: Floats, high: Floats, *single: ArrayLike
) -> Floats:
    """`work` on a few rows at a time, shape (...): it gets their three arrays and one number for each row.

    What `work` returns per row may have more columns; they come back on the last axis.
    """
    n, rows = values.shape[-1], values.shape[:-1]
    count = math.prod(rows)
    flat = [np.broadcast_to(item, values.shape).reshape(count, n) for item in (values, low, high)]
    each = [np.broadcast_to(item, rows).reshape(count) for item in single]
    step = max(1, CHUNK // max(n, 1))
    starts = range(0, max(count, 1), step)
    parts = [work(*(item[at : at + step] for item in (*flat, *each))) for at in starts]
    joined = parts[0] if len(parts) == 1 else np.concatenate(parts)
    return joined.reshape((*rows, *joined.shape[1:]))


def log_e_two_sided(values: Floats, low: Floats, high: Floats, mean: ArrayLike) -> Floats:
    """Log of (E+ + E-) / 2 at `mean`, shape (...)."""
    return in_chunks(_two_sided, values, low, high, mean)


def _two_sided(values: Floats, low: Floats, high: Floats, mean: ArrayLike) -> Floats:
    above, below = log_e_above(values, low, high, mean), log_e_below(values, low, high, mean)
    result: Floats = np.logaddexp(above, below) - np.log(2.0)
    return result


def log_e_side_path(values: Floats, low: Floats, high: Floats, mean: ArrayLike, *, above: bool) -> Floats:
    """Log E+ (`above`) or E- after each observation, shape (..., n)."""
    gain = relative_gain(values, low, high, mean, above=above)
    return _log_mean_exp(np.stack([np.log((1.0 - f) + f * gain).cumsum(axis=-1) for f in FRACTIONS]))


def log_e_path(values: Floats, low: Floats, high: Floats, mean: ArrayLike) -> Floats:
    """Log two-sided E after each observation, shape (..., n): what a look after every block saw."""
    sides = [log_e_side_path(values, low, high, mean, above=above) for above in (True, False)]
    result: Floats = np.logaddexp(sides[0], sides[1]) - np.log(2.0)
    return result


def e_value(log_e: float) -> float:
    """exp(log_e) cut at 1e300, to nine significant digits: a finite number for reports and hashes."""
    return float(f"{np.exp(min(float(log_e), 690.0)):.9g}")


def pad(rows: list[NDArray[Any]]) -> Floats:
    """Ragged rows as one array (rows, longest), padded with NaN, so many clusters are tested in one call."""
    width = max((len(row) for row in rows), default=0)
    table = np.full((len(rows), width), np.nan)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return table
