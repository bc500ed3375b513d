"""Whether regimes have moved: energy distance between older and newer fingerprints, permuted in blocks.

    D = 2 E|X - Y| - E|X - X'| - E|Y - Y'|

Source: Szekely and Rizzo, "Energy statistics" (JSPI 2013). Fingerprints follow each other slowly, and a plain
permutation of such rows finds drift nearly always; blocks of at least three correlation times are moved
instead. The permutations come from the content of the table, so the same table always gives the same answer.
Monitoring only: nothing is decided from it.
"""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from services.statistics.blocks import Floats

PERMUTATIONS = 199
TIMES = 4  # correlation times a block; the estimate runs low on short tables, and three are the least
MINIMUM_BLOCKS = 8
ROUNDING = 1e-20  # variance below which a column of ranks stands still
_GOLDEN, _MIX_A, _MIX_B = (np.uint64(v) for v in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True)
class Shift:
    """Distance between the halves, rows moved together, and the share of permutations at least as far.

    `p_value` is None when there are fewer than eight blocks: then no permutation can say anything.
    """

    distance: float
    block: int
    blocks: int
    p_value: float | None


def distances(rows: Floats) -> Floats:
    """Euclidean distances between all rows (n, d), shape (n, n)."""
    squares = (rows**2).sum(axis=1)
    square = squares[:, None] + squares[None, :] - 2.0 * rows @ rows.T
    result: Floats = np.sqrt(np.maximum(square, 0.0))
    return result


def energy(between: Floats, newer: NDArray[np.bool_]) -> Floats:
    """D for each row of `newer` (p, n), which marks the newer sample, from the distances (n, n)."""
    y = newer.astype(np.float64)
    x = 1.0 - y
    to_y = y @ between
    sizes_x, sizes_y = x.sum(axis=1), y.sum(axis=1)
    xy = (x * to_y).sum(axis=1) / (sizes_x * sizes_y)
    yy = (y * to_y).sum(axis=1) / sizes_y**2
    xx = (x * (between.sum(axis=0) - to_y)).sum(axis=1) / sizes_x**2
    result: Floats = 2.0 * xy - xx - yy
    return result


def correlation_time(rows: Floats) -> float:
    """1 + 2 sum of autocorrelations up to the first that is not positive; the slowest column counts.

    The mean of each half is taken out first: a true shift is not slowness.
    """
    half = len(rows) // 2
    centred = np.concatenate([part - part.mean(axis=0) for part in (rows[:half], rows[half:])])
    total = (centred**2).sum(axis=0)
    times = np.ones(rows.shape[1])
    alive = total > ROUNDING * len(rows)
    for lag in range(1, half):
        r = (centred[lag:] * centred[:-lag]).sum(axis=0) / np.where(total > 0.0, total, 1.0)
        alive &= r > 0.0
        if not alive.any():
            break
        times[alive] += 2.0 * r[alive]
    return float(times.max())


def shift_between_halves(rows: Floats, permutations: int = PERMUTATIONS) -> Shift:
    """Older against newer half of fingerprints (n, d), oldest first; rows left over are the oldest.

    Memory grows with n squared: give windows, not ticks.
    """
    block = int(np.ceil(TIMES * correlation_time(rows)))
    blocks = 2 * (len(rows) // block // 2)
    if blocks < MINIMUM_BLOCKS:
        half = np.arange(len(rows)) >= len(rows) // 2
        return Shift(float(energy(distances(rows), half[None, :])[0]), block, blocks, None)
    kept = rows[len(rows) - blocks * block :]
    order = np.concatenate((np.arange(blocks)[None, :], _shuffles(kept, blocks, permutations)))
    newer = np.repeat(order >= blocks // 2, block, axis=1)
    found = energy(distances(kept), newer)
    as_far = int((found[1:] >= found[0] - 1e-12).sum())
    return Shift(float(found[0]), block, blocks, (1 + as_far) / (1 + permutations))


def _shuffles(rows: Floats, blocks: int, count: int) -> NDArray[np.int64]:
    """`count` permutations of the blocks, from a hash of the rows: the same on every version of numpy."""
    seed = int.from_bytes(sha256(np.ascontiguousarray(rows).tobytes()).digest()[:8], "little")
    state = np.uint64(seed) + np.arange(1, count * blocks + 1, dtype=np.uint64) * _GOLDEN
    state = (state ^ (state >> np.uint64(30))) * _MIX_A
    state = (state ^ (state >> np.uint64(27))) * _MIX_B
    keys = (state ^ (state >> np.uint64(31))).reshape(count, blocks)
    return np.argsort(keys, axis=1, kind="stable")
