"""Confidence sequence for the winsorised expectancy: the means that the e-process has not refuted.

    lower = sup {m : E+(m) >= 2/alpha},   upper = inf {m : E-(m) >= 2/alpha}

E+ falls and E- rises in m, so bisection finds both edges. The interval holds at every look at once with
probability 1 - alpha, and it excludes the reference exactly when one side of the e-process has reached
2/alpha. Source: inversion of the betting e-process (Waudby-Smith and Ramdas, JRSS-B 2024).
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from services.statistics.eprocess import log_e_above, log_e_below, pad
from services.statistics.expectancy import Floats, Observations

STEPS = 20
EDGE = 1e-6


def _inner_bounds(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Means that lie strictly inside the bounds of every observation, shape (...)."""
    left, right = np.nanmax(low, axis=-1), np.nanmin(high, axis=-1)
    margin = EDGE * (right - left)
    return left + margin, right - margin


def _bisect(refuted: Callable[[Floats], np.ndarray], inside: Floats, outside: Floats) -> Floats:
    """Edge between refuted means (towards `outside`) and kept ones; stays on the refuted side."""
    for _ in range(STEPS):
        middle = 0.5 * (inside + outside)
        hit = refuted(middle)
        outside, inside = np.where(hit, middle, outside), np.where(hit, inside, middle)
    return outside


def confidence_edges(
    values: Floats, low: Floats, high: Floats, alpha: ArrayLike, floor: ArrayLike, ceiling: ArrayLike
) -> tuple[Floats, Floats]:
    """Lower and upper edges for rows of observations (..., n), each of shape (...); NaN values are padding.

    `alpha`, `floor` and `ceiling` are numbers or one per row. A side on which nothing is refuted answers the
    winsor bound `floor` or `ceiling`.
    """
    limit = np.log(2.0 / np.asarray(alpha, dtype=np.float64))
    left, right = _inner_bounds(low, high)

    def too_low(mean: Floats) -> np.ndarray:
        return np.asarray(log_e_above(values, low, high, mean) >= limit)

    def too_high(mean: Floats) -> np.ndarray:
        return np.asarray(log_e_below(values, low, high, mean) >= limit)

    lower = np.where(too_low(left), _bisect(too_low, right, left), floor)
    upper = np.where(too_high(right), _bisect(too_high, left, right), ceiling)
    return lower, upper


def confidence_intervals(
    clusters: Sequence[Observations], alphas: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    """Lower and upper edge in R for each cluster at its own level.

    Clusters of similar length share a call. A cluster without observations answers its winsor bounds.
    """
    edges = [(item.floor, item.ceiling) for item in clusters]
    groups: dict[int, list[int]] = {}
    for index, item in enumerate(clusters):
        groups.setdefault(len(item).bit_length(), []).append(index)
    for length, members in sorted(groups.items()):
        if length:
            found = _edges_of([clusters[index] for index in members], [alphas[index] for index in members])
            for index, edge in zip(members, found, strict=True):
                edges[index] = edge
    return tuple(edges)


def _edges_of(clusters: Sequence[Observations], alphas: Sequence[float]) -> list[tuple[float, float]]:
    values, low, high = (
        pad([getattr(item, name) for item in clusters]) for name in ("values", "low", "high")
    )
    floors, ceilings = (np.array([getattr(item, name) for item in clusters]) for name in ("floor", "ceiling"))
    lower, upper = confidence_edges(values, low, high, np.array(alphas), floors, ceilings)
    return [(float(left), float(right)) for left, right in zip(lower, upper, strict=True)]
