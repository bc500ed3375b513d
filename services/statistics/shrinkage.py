"""Means of nested groups of trades, each drawn towards the group that it belongs to: partial pooling.

A normal model on a tree: all trades, playbook, regime, and what stands below. A group's mean is that of the
group above plus a normal difference; how wide those differences spread on each level is not known, so every
combination of `SPREADS` counts by how likely it makes the trades (Gelman et al., "Bayesian Data Analysis",
chapter 5; on a tree both passes are closed-form). Trades of a month may be one bet: the error of a mean is
that of months where it is larger than that of single trades.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from services.statistics.blocks import Floats, resemblance
from services.statistics.calendar_units import Integers

SPREADS = (0.1, 0.2, 0.4, 0.8)  # R, equally likely on every level before any trade
BAND_Z = 1.6448536269514722  # of a band of 90 %
PRIOR_TRADES, PRIOR_VARIANCE = 10.0, 1.0  # what is believed of the spread of single trades before the first
LEAST_BLOCKS = 3
ROUNDING = 1e-24  # of squares: trades that differ by less are alike
DIGITS = 6

Group = tuple[int, ...]


class Shrunken(NamedTuple):
    """A group's mean in R, the ends of its band of 90 %, its trades, and their mean alone."""

    mean: float
    lower: float
    upper: float
    n: int
    alone: float


def shrunken_means(r: Floats, months: Integers, keys: Sequence[Integers]) -> dict[Group, Shrunken]:
    """The shrunken mean of each group, by its codes from the first key on; `()` is that of all trades.

    Args:
        r: outcomes less what they are held against, in R, (n,).
        months: in which trades were entered, (n,).
        keys: codes of each trade on every level, playbook first, each (n,), not negative.
    """
    if not len(r):
        return {}
    order = np.lexsort((r, months, *reversed(keys)))  # sums run in one order, whatever that of the rows
    r, months, codes = r[order], months[order], np.stack([key[order] for key in keys])
    opens = np.logical_or.accumulate(np.diff(codes, axis=1, prepend=codes[:, :1] - 1) != 0, axis=0)
    starts = [np.zeros(1, dtype=np.int64), *(np.flatnonzero(row) for row in opens)]
    counts = [np.diff(np.append(level, len(r))) for level in starts]
    variances = np.repeat(_variances(r, months, starts[1]), np.diff(np.append(starts[1], len(r))))
    means = [np.add.reduceat(r, level) / sizes for level, sizes in zip(starts, counts, strict=True)]
    found: dict[Group, Shrunken] = {}
    for depth, bands in enumerate(_pool(means[-1], variances[starts[-1]] / counts[-1], starts)):
        names = map(tuple, codes[:depth, starts[depth]].T.tolist())
        rows = zip(
            *(bands.tolist()), counts[depth].tolist(), np.round(means[depth], DIGITS).tolist(), strict=True
        )
        found |= {name: Shrunken(*row) for name, row in zip(names, rows, strict=True)}
    return found


def _variances(r: Floats, months: Integers, starts: Integers) -> Floats:
    """Variance of a trade of each playbook, times how many trades count as one; (playbooks,)."""
    ends = np.append(starts[1:], len(r))
    spans = [slice(first, last) for first, last in zip(starts.tolist(), ends.tolist(), strict=True)]
    usual = (float(((r - r.mean()) ** 2).sum()) + PRIOR_TRADES * PRIOR_VARIANCE) / (len(r) + PRIOR_TRADES)
    together = _together(r, months)
    found = []
    for span in spans:
        own, n = r[span], span.stop - span.start
        squares = float(((own - own.mean()) ** 2).sum())
        variance = (squares + PRIOR_TRADES * usual) / (max(n - 1, 0) + PRIOR_TRADES)
        found.append(variance * max(together, _together(own, months[span])))
    return np.array(found)


def _together(r: Floats, months: Integers) -> float:
    """By how much the variance of the mean is larger than that of separate trades; at least 1."""
    _, places = np.unique(months, return_inverse=True)
    blocks, off = int(places.max()) + 1, r - r.mean()
    alone = float((off**2).sum())
    if blocks < LEAST_BLOCKS or alone <= ROUNDING * float((r**2).sum()):
        return 1.0
    sums = np.bincount(places, off).astype(np.float64)
    return max(1.0, blocks / (blocks - 1) * float((sums**2).sum()) / alone * resemblance(sums) ** 2)


def _pool(means: Floats, variances: Floats, starts: Sequence[Integers]) -> list[Floats]:
    """Mean and edges of each level, (3, groups), from all trades down; given those of the lowest level."""
    branches = [not depth or len(starts[depth]) > len(starts[depth - 1]) for depth in range(len(starts))]
    spreads = np.array(list(product(*(SPREADS if own else (0.0,) for own in branches)))) ** 2
    m, v = np.tile(means, (len(spreads), 1)), np.tile(variances, (len(spreads), 1))
    log_likelihood, below = np.zeros(len(spreads)), []
    for depth in range(len(starts) - 1, 0, -1):
        below.append((m, v))
        parents = np.searchsorted(starts[depth], starts[depth - 1])
        u = v + spreads[:, depth, None]
        precision = np.add.reduceat(1.0 / u, parents, axis=1)
        above = np.add.reduceat(m / u, parents, axis=1) / precision
        children = np.diff(np.append(parents, len(starts[depth])))
        off = (m - np.repeat(above, children, axis=1)) ** 2 / u
        log_likelihood -= 0.5 * ((np.log(u) + off).sum(axis=1) + np.log(precision).sum(axis=1))
        m, v = above, 1.0 / precision
    u = (v + spreads[:, :1])[:, 0]
    log_likelihood -= 0.5 * (np.log(u) + m[:, 0] ** 2 / u)
    weights = np.exp(log_likelihood - log_likelihood.max())
    weights /= weights.sum()
    mean, spread = np.zeros((len(spreads), 1)), np.zeros((len(spreads), 1))  # of what lies above
    found = []
    for depth, (own, error) in enumerate([(m, v), *reversed(below)]):
        children = np.diff(
            np.append(np.searchsorted(starts[depth], starts[max(depth - 1, 0)]), len(starts[depth]))
        )
        mean, spread = np.repeat(mean, children, axis=1), np.repeat(spread, children, axis=1)
        t = spreads[:, depth, None]
        kept = error / (error + t)
        mean, spread = own * (1.0 - kept) + mean * kept, t * kept + kept**2 * spread
        found.append(_bands(weights, mean, spread))
    return found


def _bands(weights: Floats, mean: Floats, variance: Floats) -> Floats:
    middle = weights @ mean
    reach = BAND_Z * np.sqrt(weights @ (variance + (mean - middle) ** 2))
    return np.asarray(np.round(np.stack((middle, middle - reach, middle + reach)), DIGITS), dtype=np.float64)
