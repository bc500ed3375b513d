"""How many blocks make one bet, where blocks depend on each other: groups of 1, 2, 4, 8 or 16, by rule R.

Groups of L periods are *quiet* at a look when no judge that has four of them says otherwise. With S the sum
of R of a group, n its trades and m the mean so far, a judge reads r = sum D_i D_(i-1) / sum D_i^2 of
D = S - n m over its g groups that are over:

    L = 1:        r <= min(2 / sqrt(g), .45 - 1 / sqrt(g))     dependence has to be seen
    L = 2, 4, 8:  r sqrt(g) <= -.5                             that it is gone has to be seen
    L = 16:       always

The judges are the hypothesis and its playbook, the levels before and after their best split taken out: a mean
that moved once is a finding, no dependence. Then all trades outside, split left in: a long shock is a split
too, and the rest of the account tells it from a change of one cell. Where nothing is outside, the hypothesis
judges itself with its split left in. What counts is the shortest length that is quiet at a block and was at
the 12 before, and at least the shortest after whose groups at most half of the trades end.

Rule and figures are ours, measured by `python -m benchmarks.gate_worlds`; no proof stands behind them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from services.statistics.blocks import Blocks, Floats
from services.statistics.calendar_units import Integers

LENGTHS = (1, 2, 4, 8, 16)
MEMORY = 12  # blocks: most flags of a null year came in weeks 13 to 39, after a chance pause of the likeness
FEWEST_GROUPS = 4
SPLIT_GROUPS = 12
Flags = NDArray[np.bool_]
Readings = tuple[Floats, Integers]
SPLITS = 32  # places at which a split is looked for: all of them up to 40 groups, and no square of the run


@dataclass(frozen=True)
class Judge:
    """Sums of R of some trades by calendar period, each (b,), and how much neighbours resemble each other.

    Attributes:
        numbers: of the periods, rising.
        complete_at: when a period counts, ns.
        sizes: trades.
        totals: sums of winsorised R.
        splits: whether anybody reads what is left without the best split.
    """

    numbers: Integers
    complete_at: Integers
    sizes: Floats
    totals: Floats
    splits: bool = True
    _found: dict[int, Readings] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, blocks: Blocks) -> "Judge":
        """Of the trades of these blocks."""
        return cls(blocks.numbers, blocks.complete_at, blocks.sizes.astype(np.float64), blocks.winsorised)

    @classmethod
    def outside(cls, account: Blocks, own: Blocks) -> "Judge":
        """Of all trades of the account but those of `own`; a period counts when it does for the account."""
        sizes, totals = account.sizes.astype(np.float64), account.winsorised.copy()
        places = np.searchsorted(account.numbers, own.numbers)
        sizes[places] -= own.sizes
        totals[places] -= own.winsorised
        left = sizes > 0.0
        return cls(account.numbers[left], account.complete_at[left], sizes[left], totals[left], splits=False)

    def read(self, length: int, known: Integers) -> Readings:
        """Resemblance and number of groups over where so many blocks are known; see `likeness`."""
        if length not in self._found:
            starts = np.flatnonzero(begins(self.numbers // length))
            sums = np.stack((self.totals, self.sizes))
            sums = np.add.reduceat(sums, starts, axis=1) if len(starts) else sums
            padded = np.full((2, len(starts) + 1), np.nan)
            padded[:, 1:] = likeness(sums[1], sums[0], split=self.splits)
            self._found[length] = padded, np.append(0, groups_over(self.numbers, length))
        r, over = self._found[length]
        groups = over[known]
        return r[:, groups], groups


def begins(group: Integers) -> Flags:
    """Whether each is the first of its number, of numbers that do not fall."""
    return np.asarray(np.concatenate(([True], group[1:] != group[:-1]))[: len(group)])


def groups_over(numbers: Integers, length: int) -> Integers:
    """How many groups of so many periods are over with each block; their last period may be without one."""
    return np.asarray(begins(numbers // length).cumsum() - (numbers % length != length - 1))


def likeness(sizes: Floats, totals: Floats, *, split: bool = True) -> Floats:
    """First autocorrelation of the first 1, 2, ... groups, (2, g); NaN below four, 0 where all are alike.

    As it is, and, from 12 groups on, what is left of r when the levels before and after the best split,
    either of which holds a tenth at least, are taken out; as it is twice without `split`.
    """
    count = len(sizes)
    if count < FEWEST_GROUPS:
        return np.full((2, count), np.nan)
    both, neighbours = np.stack((totals, sizes)), np.zeros((2, 2, count))
    summed, products = both.cumsum(axis=1), (both[:, None] * both).cumsum(axis=2)
    neighbours[..., 1:] = (both[:, None, 1:] * both[:, :-1]).cumsum(axis=2)
    mean, square = summed[0] / summed[1], products[0, 0]
    around = np.tile(square - 2.0 * mean * products[0, 1] + mean**2 * products[1, 1], (2, 1))
    crossed = neighbours[0, 1] + neighbours[1, 0]
    lagged = np.tile(neighbours[0, 0] - mean * crossed + mean**2 * neighbours[1, 1], (2, 1))
    if split and count >= SPLIT_GROUPS:
        off, lag = _levels(sizes, totals, mean)
        around[1, SPLIT_GROUPS - 1 :] -= off
        lagged[1, SPLIT_GROUPS - 1 :] -= lag
    varies = around > 1e-12 * square
    r = np.where(varies, lagged / np.where(varies, around, 1.0), 0.0)
    r[:, : FEWEST_GROUPS - 1] = np.nan
    return r


def _levels(sizes: Floats, totals: Floats, mean: Floats) -> tuple[Floats, Floats]:
    """What the levels on both sides of the best split add to the sums of squares and of neighbours."""
    c = np.arange(SPLIT_GROUPS, len(sizes) + 1)
    m = mean[c - 1]
    low, tenth = c // 10 + 1, c // 10
    k = low[:, None] + np.arange(SPLITS) * (c - tenth - low)[:, None] // SPLITS
    apart = totals.cumsum()[k - 1] - m[:, None] * sizes.cumsum()[k - 1]
    best = np.argmax(apart**2 / (k * (c[:, None] - k)), axis=1)[:, None]
    k, apart = np.take_along_axis(k, best, 1)[:, 0], np.take_along_axis(apart, best, 1)[:, 0]
    first, second = apart / k, -apart / (c - k)

    def value(place: Integers | int) -> Floats:
        return np.asarray(totals[place] - m * sizes[place])

    before = first * (apart - value(k - 1)) + second * (value(k - 1) - apart - value(c - 1))
    after = first * (apart + value(k) - value(0)) - second * (apart + value(k))
    levels = (k - 1) * first**2 + first * second + (c - k - 1) * second**2
    return apart * first - apart * second, before + after - levels


def is_quiet(length: int, r: Floats, groups: Integers) -> Flags:
    """Whether r of groups shorter than the longest says so, elementwise; False where it is NaN."""
    root = np.sqrt(np.maximum(groups, 1))
    limit = np.minimum(2.0 / root, 0.45 - 1.0 / root) if length == 1 else -0.5 / root
    return np.asarray(r <= limit)


def agreeing(own: Judge, playbook: Judge | None, outside: Judge | None, late: Iterable[Integers]) -> Integers:
    """How many of the lengths have to agree at each block of `own`, (b,): 1 for single blocks alone.

    Args:
        own: the blocks of the hypothesis.
        playbook: those of its playbook; None where that is itself.
        outside: those of all trades outside it, if there are any.
        late: of each length but the last, trades of each block that end after the group they began in.
    """
    calm = (_calm(_quiet(length, own, playbook, outside)) for length in LENGTHS[:-1])
    ended = (2 * trades.cumsum() <= own.sizes.cumsum() for trades in late)
    return np.maximum(_shortest(calm, len(own.numbers)), _shortest(ended, len(own.numbers)))


def _shortest(holds: Iterable[Flags], blocks: int) -> Integers:
    """Place of the shortest length that holds at each block, from 1; lengths beyond the last are not read."""
    found = np.full(blocks, len(LENGTHS), dtype=np.int64)
    for place, flags in enumerate(holds, start=1):
        found[flags & (found == len(LENGTHS))] = place
        if (found < len(LENGTHS)).all():
            break
    return found


def _quiet(length: int, own: Judge, playbook: Judge | None, outside: Judge | None) -> Flags:
    """Whether no judge objects at a block, (b,); of groups of several, one at least has to have four."""
    (plain, split), groups = own.read(length, np.arange(1, len(own.numbers) + 1))
    readings = [(split, groups)]
    if playbook is not None:
        (_, theirs), count = playbook.read(length, _count_known(playbook, own))
        readings.append((theirs, count))
    if outside is not None:
        (theirs, _), count = outside.read(length, _count_known(outside, own))
        silent = np.isnan(theirs)
        plain, groups = np.where(silent, plain, theirs), np.where(silent, groups, count)
    readings.append((plain, groups))
    r, counts = (np.stack(part) for part in zip(*readings, strict=True))
    silent = np.isnan(r)
    quiet = is_quiet(length, r, counts) | silent
    return np.asarray(quiet.all(axis=0) & ((length == 1) | ~silent.all(axis=0)))


def _calm(quiet: Flags) -> Flags:
    """Whether it was quiet at a block and at the 12 before, as far as there are so many."""
    loud = np.concatenate((np.zeros(MEMORY + 1, dtype=np.int64), (~quiet).cumsum()))
    return np.asarray(loud[MEMORY + 1 :] == loud[: -MEMORY - 1])


def _count_known(judge: Judge, own: Judge) -> Integers:
    return np.asarray(np.searchsorted(judge.complete_at, own.complete_at, side="right"))
