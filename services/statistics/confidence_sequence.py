"""Confidence sequence for the winsorised expectancy: the means that the e-process has not refuted.

    lower = sup {m : E+(m) >= 2/alpha},   upper = inf {m : E-(m) >= 2/alpha}

E+ falls and E- rises in m, so bisection finds both edges. The interval holds at every look at once with
probability 1 - alpha, so the intervals of all looks may be intersected: what was refuted once stays refuted.
The running maximum of E over the blocks is monotone in m as well, and its edges are that intersection, from
the blocks alone and whatever looks were taken. Source: inversion of the betting e-process (Waudby-Smith and
Ramdas, JRSS-B 2024).
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from services.statistics.eprocess import in_chunks, log_e_above, log_e_below, log_e_side_path, pad
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
    values: Floats,
    low: Floats,
    high: Floats,
    alpha: ArrayLike,
    floor: ArrayLike,
    ceiling: ArrayLike,
    *,
    running: bool = False,
) -> tuple[Floats, Floats]:
    """Lower and upper edges for rows of observations (..., n), each of shape (...); NaN values are padding.

    One look at all observations, or with `running` the intersection of the looks after each of them.
    `alpha`, `floor` and `ceiling` are numbers or one per row. A side on which nothing is refuted answers the
    winsor bound `floor` or `ceiling`. A running lower edge lies above the upper one when every constant mean
    is refuted: the expectancy has moved, or observations depend on each other.
    """
    work = partial(_edges_at_once, running=running)
    edges = in_chunks(work, values, low, high, alpha, floor, ceiling)
    return edges[..., 0], edges[..., 1]


def _edges_at_once(
    values: Floats,
    low: Floats,
    high: Floats,
    alpha: ArrayLike,
    floor: ArrayLike,
    ceiling: ArrayLike,
    *,
    running: bool,
) -> Floats:
    """Lower and upper edges, shape (..., 2)."""
    limit = np.log(2.0 / np.asarray(alpha, dtype=np.float64))
    left, right = _inner_bounds(low, high)

    def refuted(above: bool, mean: Floats) -> np.ndarray:
        if running:
            log_e = log_e_side_path(values, low, high, mean, above=above).max(axis=-1)
        else:
            log_e = (log_e_above if above else log_e_below)(values, low, high, mean)
        return np.asarray(log_e >= limit)

    too_low, too_high = partial(refuted, True), partial(refuted, False)
    lower = np.where(too_low(left), _bisect(too_low, right, left), floor)
    upper = np.where(too_high(right), _bisect(too_high, left, right), ceiling)
    return np.stack((lower, upper), axis=-1)


def confidence_intervals(
    clusters: Sequence[Observations], alphas: Sequence[float], *, running: bool = False
) -> tuple[tuple[float, float], ...]:
    """Lower and upper edge in R for each cluster at its own level; see `confidence_edges`.

    Clusters of similar length share a call. A cluster without observations answers its winsor bounds.
    """
    edges = [(item.floor, item.ceiling) for item in clusters]
    groups: dict[int, list[int]] = {}
    for index, item in enumerate(clusters):
        groups.setdefault(len(item).bit_length(), []).append(index)
    for length, members in sorted(groups.items()):
        if length:
            chosen = [clusters[index] for index in members]
            found = _edges_of(chosen, [alphas[index] for index in members], running)
            for index, edge in zip(members, found, strict=True):
                edges[index] = edge
    return tuple(edges)


def _edges_of(
    clusters: Sequence[Observations], alphas: Sequence[float], running: bool
) -> list[tuple[float, float]]:
    values, low, high = (
        pad([getattr(item, name) for item in clusters]) for name in ("values", "low", "high")
    )
    floors, ceilings = (np.array([getattr(item, name) for item in clusters]) for name in ("floor", "ceiling"))
    lower, upper = confidence_edges(values, low, high, np.array(alphas), floors, ceilings, running=running)
    return [(float(left), float(right)) for left, right in zip(lower, upper, strict=True)]
