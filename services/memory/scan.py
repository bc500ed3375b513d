"""The compiled pass over a population: counts everything eligible and keeps the nearest of each bucket.

Exact and deterministic: squares are summed in float64 in the order of the ranks, one row in each lane, so
the vector unit changes no bit; distances are rounded to 1e-9 before they are compared, ties go to the
smaller id. At most half of a bucket's quota comes from one day, of each at least one. "Nearest under a
limit on each day and on the whole" is the lightest basis of a truncated partition matroid, which is why one
pass that drops the farthest of a full day, or of a full bucket, ends with what sorting everything would give.

Everything compiled lies in this file: numba does not notice an edited helper in another.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from trading_core.compiled import compiled, entry_point, inlined

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

LANES = 64  # rows of one block; their sums of squares lie in 512 bytes
DISTANCE_UNIT = 1e-9
WIN, LOSS, FAILURE, SCRATCH = 0, 1, 2, 3  # kinds of a row; a failure is a loss with a recognised mode
WINNERS, LOSERS, FAILURES = 0, 1, 2  # buckets; a failure belongs to the last two


class Cases(NamedTuple):
    """Columns of a population with room for N rows, N a multiple of `LANES`.

    Attributes:
        points: float32 (N / LANES, W, LANES), ranks block by block.
        known_at: int64 (N,), ns.
        kind: int8 (N,).
        day: int64 (N,), UTC day of the entry.
        ids: uint8 (N, 32), episode ids padded with zeros.
    """

    points: npt.NDArray[np.float32]
    known_at: IntArray
    kind: npt.NDArray[np.int8]
    day: IntArray
    ids: npt.NDArray[np.uint8]


class Found(NamedTuple):
    """What a pass has found so far; `scan` continues it.

    Attributes:
        quotas: int64 (3,), cases wanted in each bucket.
        rows: int64 (3, K), by nearness.
        distances: int64 (3, K), in units of 1e-9.
        filled: int64 (3,), cases in each bucket.
        counts: int64 (3,), population, winners, losers.
        limits: float64 (4,), by kind: squared distance beyond which no bucket takes a row.
        sums: float64 (LANES,), scratch.
    """

    quotas: IntArray
    rows: IntArray
    distances: IntArray
    filled: IntArray
    counts: IntArray
    limits: FloatArray
    sums: FloatArray


def nothing_found(quotas: IntArray) -> Found:
    """Empty buckets for these quotas."""
    width = int(quotas.max())
    return Found(
        quotas=quotas,
        rows=np.zeros((3, width), dtype=np.int64),
        distances=np.zeros((3, width), dtype=np.int64),
        filled=np.zeros(3, dtype=np.int64),
        counts=np.zeros(3, dtype=np.int64),
        limits=np.array([np.inf, np.inf, np.inf, -1.0]),
        sums=np.zeros(LANES),
    )


@compiled
def comes_first(ids: Any, a: int, b: int) -> bool:
    """Whether the id in row `a` is smaller, byte by byte, than that in row `b`."""
    for k in range(ids.shape[1]):
        if ids[a, k] != ids[b, k]:
            return bool(ids[a, k] < ids[b, k])
    return False


@inlined
def is_nearer(cases: Any, found: Any, bucket: int, row: int, distance: int, at: int) -> bool:
    """Whether a row comes before the one at place `at` of the bucket; ties by id."""
    other = found.distances[bucket, at]
    return bool(
        distance < other or (distance == other and comes_first(cases.ids, row, found.rows[bucket, at]))
    )


@inlined
def offer(cases: Any, found: Any, bucket: int, row: int, distance: int) -> None:
    """Take a row into its bucket unless its day or the bucket is full of nearer ones; drop one too many."""
    quota, filled = found.quotas[bucket], found.filled[bucket]
    same, farthest = 0, -1
    for k in range(filled):
        if cases.day[found.rows[bucket, k]] == cases.day[row]:
            same += 1
            farthest = k
    if same == max(1, quota // 2):
        if not is_nearer(cases, found, bucket, row, distance, farthest):
            return
        at = farthest
    elif filled == quota:
        at = quota - 1
        if not is_nearer(cases, found, bucket, row, distance, at):
            return
    else:
        at = filled
        found.filled[bucket] += 1
    while at > 0 and is_nearer(cases, found, bucket, row, distance, at - 1):
        found.rows[bucket, at] = found.rows[bucket, at - 1]
        found.distances[bucket, at] = found.distances[bucket, at - 1]
        at -= 1
    found.rows[bucket, at] = row
    found.distances[bucket, at] = distance


@inlined
def reach(found: Any, bucket: int) -> float:
    """Squared distance beyond which nothing enters the bucket; one unit wider than its farthest."""
    quota = found.quotas[bucket]
    if found.filled[bucket] < quota:
        return np.inf
    return float(((found.distances[bucket, quota - 1] + 1) * DISTANCE_UNIT) ** 2)


@inlined
def round_distance(total: float) -> int:
    """Distance in units of 1e-9 from a sum of squares."""
    return np.int64(np.round(np.sqrt(total) / DISTANCE_UNIT))  # type: ignore[return-value]


@inlined
def squares(points: Any, block: int, point: Any, sums: Any) -> None:
    """Sums of squared gaps of one block, a lane a row."""
    for lane in range(LANES):
        sums[lane] = 0.0
    for k in range(point.shape[0]):
        for lane in range(LANES):
            gap = np.float64(points[block, k, lane]) - point[k]
            sums[lane] += gap * gap


@entry_point
def count(cases: Any, counts: Any, known_at: int, start: int, stop: int) -> None:
    """Add population, winners and losers among the rows known at `known_at` to `counts`."""
    population, winners, losers = 0, 0, 0
    for row in range(start, stop):
        eligible = cases.known_at[row] <= known_at
        kind = cases.kind[row]
        population += eligible
        winners += eligible & (kind == WIN)
        losers += eligible & ((kind == LOSS) | (kind == FAILURE))
    counts[0] += population
    counts[1] += winners
    counts[2] += losers


@entry_point
def scan(cases: Any, found: Any, point: Any, known_at: int, start: int, stop: int) -> None:
    """Count what is known among rows `start` to `stop` and offer what is near enough to its buckets.

    Args:
        cases: `Cases`.
        found: `Found` of the rows before `start`; continued.
        point: float64 (W,), the query, every value exact in float32.
        known_at: ns; later rows do not exist.
        start: first row, a multiple of `LANES`.
        stop: end of the rows, exclusive.
    """
    for first in range(start, stop, LANES):
        last = min(first + LANES, stop)
        count(cases, found.counts, known_at, first, last)
        squares(cases.points, first // LANES, point, found.sums)
        for row in range(first, last):
            kind, total = cases.kind[row], found.sums[row - first]
            if total > found.limits[kind] or cases.known_at[row] > known_at:
                continue
            distance = round_distance(total)
            for bucket in range(min(kind, LOSERS), kind + 1):
                offer(cases, found, bucket, row, distance)
            found.limits[WIN] = reach(found, WINNERS)
            found.limits[LOSS] = reach(found, LOSERS)
            found.limits[FAILURE] = max(found.limits[LOSS], reach(found, FAILURES))
