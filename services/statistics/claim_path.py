"""The compiled walk over the blocks of one claim: stakes fixed before each block, wealth after it.

Let y be the sum over a block of R less the reference, as the claim sees it, positive where it favours the
claim. From the blocks before it alone, with n rows a block, mean mu and mean square V of a row,

    icc = (P + SS_block - SS_row) / (P + pairs v),  P = prior V (pairs a block), in [0, 1]; 1 without a pair
    s^2 = [n (1 + (n - 1) icc) V + sum (y - n mu)^2] / (blocks + 1)
    a   = max(A (1 + (n_max - 1) icc), the worst y so far)

where A is the largest R against the claim that one row may bring. A bettor with fraction f multiplies their
wealth by max(0, 1 + min(f / s, 1 / a) min(y, 3 s)); what favours the claim is cut at three s, what speaks
against it never. There is no bet on the first block. The e-value is the mean over f in {.05, .1, .2, .4, .8}
of a third that is at stake from the first block on, and of two thirds that start anew at each of the first
156 blocks in equal parts and stay cash until then.

Where blocks may depend on each other, the value is the least of single blocks and of groups of them
(`group_length`). The idea of betting on a bounded mean is that of Waudby-Smith and
Ramdas, "Estimating means of bounded random variables by betting" (JRSS-B 2024); sums and stakes learned
inside are ours, and no proof covers a block that is worse than a. `strict` takes icc = 1.

Everything compiled lies in this file: numba does not notice an edited helper in another.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from services.statistics.lazy_kernels import Kernels

FRACTIONS = (0.05, 0.1, 0.2, 0.4, 0.8)
START_BLOCKS = 156
PLAIN_SHARE = (
    1.0 / 3.0
)  # of the capital is at stake from the first block on, the rest starts anew block by block
CUT_SPREADS = 3.0
SMALLEST_ROW_R = 0.05
MOST_WEALTH = 1e280
STEPS = 22

WITH_RESTARTS, PLAIN, DETECTOR, SPREAD, ADVERSE = 0, 1, 2, 3, 4
ROWS = 5

# Sums over the blocks so far.
_N, _Y, _Q, _YY, _YN, _NN, _PAIRS, _MOST, _WORST, _BLOCKS = range(10)
_SUMS = 10

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

KERNELS = Kernels()


class ClaimBlocks(NamedTuple):
    """Blocks as one claim sees them, each (b,).

    Attributes:
        sizes: float64, rows of a block.
        totals: float64, sums of R.
        squares: float64, sums of squared R.
        row: float64, the largest R against the claim that a row is believed to bring, from what was known
            before.
    """

    sizes: FloatArray
    totals: FloatArray
    squares: FloatArray
    row: FloatArray


class Terms(NamedTuple):
    """What is bet on, and on what terms.

    Attributes:
        side: 1 for gaining, -1 for losing.
        most_trades: rows of a block that the account allows; 0 where nothing is declared.
        strict: whether the rows of a block count as one bet.
        prior: blocks that the belief "the rows of a block are one bet" is worth.
    """

    side: float
    most_trades: float
    strict: bool
    prior: float


class Looks(NamedTuple):
    """What stands at each block, shape (lengths, b) and (b,), int64.

    Attributes:
        over: groups of each length that are over; single blocks come first.
        agree: how many of the lengths, from the first on, have to agree.
    """

    over: IntArray
    agree: IntArray


@KERNELS.inlined
def _stake(sums: FloatArray, row_r: float, claim: Terms) -> tuple[float, float]:
    """Spread s of a block's sum and the largest adverse sum a, from the blocks so far; s is 0 without one."""
    blocks = sums[_BLOCKS]
    if blocks == 0.0:
        return 0.0, 1.0
    n, mean = sums[_N], sums[_Y] / sums[_N]
    square = sums[_Q] / n
    within = max(sums[_Q] - sums[_Y] * mean, 0.0)
    between = max(sums[_YY] - 2.0 * mean * sums[_YN] + mean * mean * sums[_NN], 0.0)
    icc = 1.0
    if sums[_PAIRS] > 0.0 and not claim.strict:
        prior = claim.prior * square * sums[_PAIRS] / blocks
        total = prior + sums[_PAIRS] * within / n
        if total > 0.0:
            icc = min(max((prior + between - within) / total, 0.0), 1.0)
    rows = n / blocks
    spread = np.sqrt((rows * (1.0 + (rows - 1.0) * icc) * square + between) / (blocks + 1.0))
    most = max(sums[_MOST], claim.most_trades)
    adverse = max(max(row_r, SMALLEST_ROW_R) * (1.0 + (most - 1.0) * icc), sums[_WORST])
    return spread, adverse


@KERNELS.inlined
def _add(sums: FloatArray, y: float, n: float, q: float) -> None:
    """One block more: its sum, its rows, and the sum of their squares."""
    sums[_N] += n
    sums[_Y] += y
    sums[_Q] += q
    sums[_YY] += y * y
    sums[_YN] += y * n
    sums[_NN] += n * n
    sums[_PAIRS] += n * (n - 1.0)
    sums[_MOST] = max(sums[_MOST], n)
    sums[_WORST] = max(sums[_WORST], -y)
    sums[_BLOCKS] += 1.0


@KERNELS.kernel
def second_largest(rows: FloatArray, out: FloatArray) -> None:
    """The second largest row up to each block, written to `out` (b,).

    `rows` (2, b) holds those of each block, the largest first.
    """
    first = second = -np.inf
    for t in range(out.size):
        for place in range(rows.shape[0]):
            row = rows[place, t]
            if row > first:
                first, second = row, first
            elif row > second:
                second = row
        out[t] = second


@KERNELS.kernel
def walk(blocks: ClaimBlocks, claim: Terms, reference: float, out: FloatArray) -> None:
    """What each block did to the wealth of one claim against `reference`.

    Args:
        blocks: in order.
        claim: which side, and on what terms.
        reference: mean R under the hypothesis.
        out: float64 (5, b), written: e-value with restarts, without, level of the detector, s and a.
    """
    sums, fractions = np.zeros(_SUMS), np.array(FRACTIONS)
    plain, begun, detector = np.ones(fractions.size), np.zeros(fractions.size), np.zeros(fractions.size)
    for t in range(blocks.sizes.size):
        n, total = blocks.sizes[t], blocks.totals[t]
        y = claim.side * (total - n * reference)
        spread, adverse = _stake(sums, blocks.row[t] + claim.side * reference, claim)
        gain = min(y, CUT_SPREADS * spread)
        share = 1.0 / START_BLOCKS if t < START_BLOCKS else 0.0
        for f in range(fractions.size):
            factor = 1.0
            if spread > 0.0:
                factor = max(0.0, 1.0 + min(fractions[f] / spread, 1.0 / adverse) * gain)
            plain[f] = min(plain[f] * factor, MOST_WEALTH)
            begun[f] = min((begun[f] + share) * factor, MOST_WEALTH)
            detector[f] = min((detector[f] + 1.0) * factor, MOST_WEALTH)
        cash = 1.0 - min(t + 1, START_BLOCKS) / START_BLOCKS
        restarted = begun.mean() + cash
        out[WITH_RESTARTS, t] = PLAIN_SHARE * plain.mean() + (1.0 - PLAIN_SHARE) * restarted
        out[PLAIN, t], out[DETECTOR, t] = plain.mean(), detector.mean()
        out[SPREAD, t], out[ADVERSE, t] = spread, adverse
        _add(sums, y, n, blocks.squares[t] - 2.0 * reference * total + n * reference * reference)


@KERNELS.inlined
def _step(
    sums: FloatArray, wealth: FloatArray, blocks: ClaimBlocks, t: int, claim: Terms, mean: float
) -> float:
    """Wealth without restarts of the claim "beyond `mean`" after block `t`, which is added to `sums`."""
    n, total = blocks.sizes[t], blocks.totals[t]
    y = claim.side * (total - n * mean)
    spread, adverse = _stake(sums, blocks.row[t] + claim.side * mean, claim)
    held = 0.0
    if spread > 0.0:
        gain = min(y, CUT_SPREADS * spread)
        for f in range(wealth.size):
            factor = max(0.0, 1.0 + min(FRACTIONS[f] / spread, 1.0 / adverse) * gain)
            wealth[f] = min(wealth[f] * factor, MOST_WEALTH)
    for f in range(wealth.size):
        held += wealth[f]
    _add(sums, y, n, blocks.squares[t] - 2.0 * mean * total + n * mean * mean)
    return held / wealth.size


@KERNELS.kernel
def _find_refutation(
    groups: tuple[ClaimBlocks, ...], looks: Looks, claim: Terms, mean: float, limit: float, since: int
) -> bool:
    """Whether the claim "beyond `mean`" reaches `limit` at a look from block `since` on."""
    lengths = looks.over.shape[0]
    sums, wealth = np.zeros((lengths, _SUMS)), np.ones((lengths, len(FRACTIONS)))
    walked, held = np.zeros(lengths, np.int64), np.ones(lengths)
    for t in range(looks.agree.size):
        length = 0
        while length < looks.agree[t]:
            while walked[length] < looks.over[length, t]:
                held[length] = _step(
                    sums[length], wealth[length], groups[length], walked[length], claim, mean
                )
                walked[length] += 1
            if t < since or held[length] < limit:
                break
            length += 1
        if length == looks.agree[t]:
            return True
    return False


@KERNELS.kernel
def edge(
    groups: tuple[ClaimBlocks, ...],
    looks: Looks,
    claim: Terms,
    outside: float,
    inside: float,
    limit: float,
    since: int,
) -> float:
    """Where the means that the claim refutes end, between `outside` and `inside`; on the refuted side.

    `outside` itself where it is not refuted, and `inside` where everything is. Looks from block `since` on.

    Args:
        groups: blocks as the claim sees them, alone and together by each length that is asked for.
        looks: as many as there are blocks.
        claim: which side, and on what terms.
        outside: a mean that is refuted if any is.
        inside: the farthest mean that may be refuted.
        limit: of the evidence.
        since: first block that is looked at.
    """
    if not _find_refutation(groups, looks, claim, outside, limit, since):
        return outside
    for _ in range(STEPS):
        middle = 0.5 * (outside + inside)
        if _find_refutation(groups, looks, claim, middle, limit, since):
            outside = middle
        else:
            inside = middle
    return outside
