"""Does a part of the fingerprint's space earn less than the rest of its rules, and is it below zero there?

An average of shallow trees over the ranks: regions (half-spaces of one rank, corners of two) and "nothing
differs" among them, each a normal model R = m0 + mu + delta 1[x in the region] + e with a closed marginal
likelihood. A population is kept as sums: a case costs one step, an estimate is a function of sums alone.
"""

from array import array
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, product
from math import erfc, exp, sqrt
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.episode import Episode
from schemas.reflection import LocalEstimate

FloatArray = npt.NDArray[np.float64]

EDGES: Final = np.arange(1, 10) / 10
CORNER_EDGES: Final = (2, 4, 6)  # places of .3, .5 and .7
NOTHING, ONE_RANK, TWO_RANKS = 0.5, 0.25, 0.25  # prior weights
DEPARTURE: Final = 0.4**2  # prior variance of a departure, R^2
NOISE, NOISE_CASES = 1.0, 10.0  # variance of R before any is seen, and the cases that it weighs
SPREAD, SPREAD_RULES = 0.3**2, 2.0  # variance of the means of rules, and the rules that it weighs
RESIDUAL_SPREAD: Final = 0.1**2  # of the mean of residuals, which is about zero
BAND: Final = 1.645  # 90 % of a normal distribution
SEEN_SD: Final = 3.7  # contrast * sqrt(n q (1-q)) / sd that 6 of 10 runs found
UNSEEN_SHARE: Final = 1 / 3  # q, the share of cases that a departure is stated for
DIGITS: Final = 6  # of a figure: its last ones come from the machine, and they decide nothing


class Regions(NamedTuple):
    """A regions, each what two half-spaces share, by their numbers; `prior` is float64 (A,)."""

    first: npt.NDArray[np.int64]
    second: npt.NDArray[np.int64]
    prior: FloatArray


@lru_cache(maxsize=4)
def regions(width: int) -> Regions:
    """Regions of `width` ranks: 18 a rank, 36 a pair of ranks."""
    sides, edges = (0, 1), range(EDGES.size)

    def number(side: int, rank: int, edge: int) -> int:
        return (side * width + rank) * EDGES.size + edge

    singles = [(number(*split), number(*split)) for split in product(sides, range(width), edges)]
    corners = [
        (number(a, j, e), number(b, k, f))
        for j, k in combinations(range(width), 2)
        for a, b, e, f in product(sides, sides, CORNER_EDGES, CORNER_EDGES)
    ]
    pairs = np.array(singles + corners, dtype=np.int64)
    prior = [ONE_RANK / len(singles)] * len(singles) + [TWO_RANKS / max(1, len(corners))] * len(corners)
    return Regions(pairs[:, 0], pairs[:, 1], np.array(prior))


def inside(point: FloatArray) -> npt.NDArray[np.bool_]:
    """Bool (A,): which regions hold a point, float64 (W,)."""
    space, low = regions(point.size), (point[:, None] <= EDGES).ravel()
    halves = np.concatenate([low, ~low])
    held: npt.NDArray[np.bool_] = halves[space.first] & halves[space.second]
    return held


class _OpenTogether:
    """Results of trades by their exit, and from which one on the others were open together with each."""

    def __init__(self) -> None:
        self._exits: list[int] = []
        self._r, self._owner, self._first = array("d"), array("q"), array("q")

    def add(self, episode: Episode, owner: int) -> None:
        self._first.append(bisect_left(self._exits, episode.entry_label))
        self._exits.append(episode.exit_label)
        self._r.append(episode.r)
        self._owner.append(owner)

    def design_effect(self, means: FloatArray) -> float:
        """By how much the variance of a sum is larger than that of independent trades, at least 1."""
        if not self._exits:
            return 1.0
        gaps = np.array(self._r) - means[np.array(self._owner)]
        before = np.concatenate([[0.0], np.cumsum(gaps)])
        shared = (gaps * (before[:-1] - before[np.array(self._first)])).sum()
        return max(1.0, 1.0 + 2.0 * float(shared) / max(float((gaps * gaps).sum()), 1e-12))


class _Sums:
    """Cases of one population; counts and sums of R are float64 (A,)."""

    def __init__(self, width: int) -> None:
        self.counts, self.sums = np.zeros((2, regions(width).prior.size))
        self.n, self.total, self.squares = 0, 0.0, 0.0
        self.together = _OpenTogether()

    def add(self, point: FloatArray, episode: Episode) -> None:
        member = inside(point)
        self.n += 1
        self.total += episode.r
        self.squares += episode.r * episode.r
        self.counts += member
        self.sums += member * episode.r
        self.together.add(episode, 0)

    @property
    def mean(self) -> float:
        return self.total / max(1, self.n)

    @property
    def squares_within(self) -> float:
        return max(0.0, self.squares - self.total * self.mean)


@dataclass(frozen=True)
class _Surface:
    """Mixture over the regions; each row is one figure of a region, weighted, inside and outside of it.

    Attributes:
        inside: float64 (4, A): mean, second moment, share below zero, share that departs downwards.
        outside: the same for a point that the region does not hold.
        nothing: float64 (4,), of "nothing differs".
        level: posterior mean and variance where nothing differs.
        n: cases.
        unseen_r: smallest departure that would be found.
    """

    basis: Literal["own", "pooled"]
    inside: FloatArray
    outside: FloatArray
    nothing: FloatArray
    level: tuple[float, float]
    n: int
    unseen_r: float | None

    def at(self, member: npt.NDArray[np.bool_]) -> LocalEstimate:
        mean, second, below, departs = (
            np.where(member, self.inside, self.outside).sum(axis=1) + self.nothing
        ).tolist()
        half = BAND * sqrt(max(0.0, second - mean * mean))
        return LocalEstimate.trust(
            basis=self.basis,
            n=self.n,
            mean_r=round(mean, DIGITS),
            lower_r=round(mean - half, DIGITS),
            upper_r=round(mean + half, DIGITS),
            departs=round(departs, DIGITS),
            below_zero=round(below, DIGITS),
            unseen_r=self.unseen_r,
        )


class Departures:
    """What the cases known at a time say about every point; add them in the order in which they ended."""

    def __init__(self) -> None:
        self.through = -1  # ns, `known_at` of the last case
        self._sums: dict[Any, _Sums] = {}
        self._together = _OpenTogether()
        self._surfaces: dict[Any, tuple[_Surface, _Surface]] = {}

    def add(self, key: Any, point: FloatArray, episode: Episode) -> None:
        """Take in one case of the population `key`."""
        if key not in self._sums:
            self._sums[key] = _Sums(point.size)
        self._sums[key].add(point, episode)
        self._together.add(episode, list(self._sums).index(key))
        self.through = episode.known_at
        self._surfaces.clear()

    def at(self, key: Any, point: FloatArray) -> tuple[LocalEstimate, LocalEstimate]:
        """What is expected of the rules `key` at a point: by their own cases, and by the residuals of all."""
        if key not in self._surfaces:
            self._surfaces[key] = self._new_surfaces(key, point.size)
        member = inside(point)
        own, pooled = self._surfaces[key]
        return own.at(member), pooled.at(member)

    def _new_surfaces(self, key: Any, width: int) -> tuple[_Surface, _Surface]:
        prior, own = regions(width).prior, self._sums.get(key) or _Sums(width)
        centre, spread, noise = _level_of([sums for sums in self._sums.values() if sums is not own])
        noise = (own.squares_within + NOISE_CASES * noise) / (NOISE_CASES + max(0, own.n - 1))
        noise *= own.together.design_effect(np.array([own.mean]))
        above = (own.counts, own.sums - centre * own.counts, own.total - centre * own.n, own.n)
        first = _surface("own", above, (noise, spread), (centre, 0.0), prior)
        parts = list(self._sums.values())
        within = _noise_of(parts)
        means = np.array(
            [centre + (part.mean - centre) * spread / (spread + within / part.n) for part in parts]
        )
        residuals = (
            sum((part.counts for part in parts), np.zeros(prior.size)),
            sum(
                (part.sums - m * part.counts for part, m in zip(parts, means, strict=True)),
                np.zeros(prior.size),
            ),
            float(sum(part.total - m * part.n for part, m in zip(parts, means, strict=True))),
            sum(part.n for part in parts),
        )
        variances = (within * self._together.design_effect(means), RESIDUAL_SPREAD)
        return first, _surface("pooled", residuals, variances, first.level, prior)


def _noise_of(parts: list[_Sums]) -> float:
    """Variance of R within rules, from a typical one on."""
    cases = sum(max(0, part.n - 1) for part in parts)
    return (NOISE * NOISE_CASES + sum(part.squares_within for part in parts)) / (NOISE_CASES + cases)


def _level_of(others: list[_Sums]) -> tuple[float, float, float]:
    """Mean of the means of other rules, the variance between them, and that of R within them."""
    noise = _noise_of(others)
    weights = [1.0 / (SPREAD + noise / part.n) for part in others]
    weighed = sum(w * part.mean for w, part in zip(weights, others, strict=True))
    centre = weighed / (sum(weights) + 1.0 / SPREAD)
    apart = sum(max(0.0, (part.mean - centre) ** 2 - noise / part.n) for part in others)
    return centre, (SPREAD * SPREAD_RULES + apart) / (SPREAD_RULES + len(others)), noise


def _surface(
    basis: Literal["own", "pooled"],
    cases: tuple[FloatArray, FloatArray, float, int],
    variances: tuple[float, float],
    base: tuple[float, float],
    prior: FloatArray,
) -> _Surface:
    """The mixture over the regions.

    Args:
        basis: of the estimate.
        cases: counts and sums of R above its level in each region, their total, and the number of cases.
        variances: of R, and of the mean before any case.
        base: the level that is added to every estimate, and its variance.
        prior: float64 (A,), weights of the regions.
    """
    counts, sums, total, n = cases
    (noise, spread), (level, unsure) = variances, base
    a, b = n / noise + 1.0 / spread, counts / noise
    d, u, v = b + 1.0 / DEPARTURE, total / noise, sums / noise
    det = a * d - b * b
    mu, delta, alone = (d * u - b * v) / det, (a * v - b * u) / det, u / a
    log_ratio = 0.5 * (u * mu + v * delta - u * alone - np.log(det * DEPARTURE / a))
    most = max(0.0, float(log_ratio.max()))
    weights, nothing = prior * np.exp(log_ratio - most), NOTHING * exp(-most)
    whole = float(weights.sum()) + nothing
    weights, nothing = weights / whole, nothing / whole
    down = _below_zero(delta, a / det)
    sides = []
    for means, spreads, departs in (
        (level + mu + delta, unsure + (a - 2.0 * b + d) / det, down),
        (level + mu, unsure + d / det, 1.0 - down),
    ):
        figures = (means, spreads + means * means, _below_zero(means, spreads), departs)
        sides.append(weights * np.array(figures))
    mean, variance = level + alone, unsure + 1.0 / a
    below = 0.5 * erfc(mean / sqrt(2.0 * variance))
    unseen = None if n == 0 else SEEN_SD * sqrt(noise / (n * UNSEEN_SHARE * (1.0 - UNSEEN_SHARE)))
    return _Surface(
        basis=basis,
        inside=sides[0],
        outside=sides[1],
        nothing=nothing * np.array([mean, variance + mean * mean, below, 0.0]),
        level=(mean, variance),
        n=n,
        unseen_r=None if unseen is None else round(unseen, DIGITS),
    )


def _below_zero(mean: FloatArray, variance: FloatArray) -> FloatArray:
    """Share of normal distributions below zero; by `erfc`, since numpy has none and scipy loads slowly."""
    return 0.5 * np.fromiter(map(erfc, (mean / np.sqrt(2.0 * variance)).tolist()), np.float64, mean.size)
