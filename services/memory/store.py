"""Arrays behind the memory: one population per playbook and direction, and the fused pass over it.

A population grows by doubling; fingerprints are float32, distances are summed in float64 and rounded to
1e-9 before they are compared, so that order does not hang on the last bit. Ties go to the smaller episode
id. The pass counts the whole eligible population while it keeps the nearest of each bucket.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from schemas.episode import Episode
from schemas.errors import InvariantViolation
from schemas.vocabulary import FailureMode

WIDTH = 5  # written out: a compiled constant from another file would outlive a change there
ID_BYTES = 32
DISTANCE_UNIT = 1e-9
WIN, LOSS, SCRATCH = 0, 1, 2
WINNERS, LOSERS, FAILURES = WIN, LOSS, 2  # buckets; the first two are numbered like the outcome they hold
_OUTCOME = {"win": WIN, "loss": LOSS, "scratch": SCRATCH}
_FIRST_CAPACITY = 64
IntArray = npt.NDArray[np.int64]


def is_failure_pattern(episode: Episode) -> bool:
    """Whether a losing episode failed in a recognised way."""
    return episode.outcome == "loss" and episode.failure_mode not in (None, FailureMode.UNCLASSIFIED)


class Population:
    """Episodes of one playbook and direction as columns; `size` rows are filled."""

    def __init__(self) -> None:
        self.size = 0
        self.episodes: list[Episode] = []
        self._fingerprints = np.empty((_FIRST_CAPACITY, WIDTH), dtype=np.float32)
        self._known_at = np.empty(_FIRST_CAPACITY, dtype=np.int64)
        self._outcome = np.empty(_FIRST_CAPACITY, dtype=np.int8)
        self._failure = np.empty(_FIRST_CAPACITY, dtype=np.bool_)
        self._ids = np.zeros((_FIRST_CAPACITY, ID_BYTES), dtype=np.uint8)

    def add(self, episode: Episode) -> None:
        """Append one episode.

        Raises:
            InvariantViolation: the fingerprint is not five finite ranks, or the id is longer than 32 bytes.
        """
        point = as_point(episode.fingerprint)
        name = episode.episode_id.encode()
        if len(name) > ID_BYTES:
            raise InvariantViolation(
                f"episode id {episode.episode_id!r} is longer than {ID_BYTES} bytes: use a content id"
            )
        if self.size == self._known_at.shape[0]:
            self._double()
        row = self.size
        self._fingerprints[row] = point
        self._known_at[row] = episode.known_at
        self._outcome[row] = _OUTCOME[episode.outcome]
        self._failure[row] = is_failure_pattern(episode)
        self._ids[row] = 0
        self._ids[row, : len(name)] = np.frombuffer(name, dtype=np.uint8)
        self.episodes.append(episode)
        self.size += 1

    def nearest(
        self, point: npt.NDArray[np.float32], known_at: int, quotas: IntArray
    ) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Rows and distances of the nearest of each bucket, and the counts of the eligible population.

        Args:
            point: float32 (5,), the query's fingerprint.
            known_at: ns; later episodes do not exist.
            quotas: int64 (3,), winners, losers, failures.

        Returns:
            rows int64 (3, K) and distances in units of 1e-9, int64 (3, K), both in order of nearness;
            filled int64 (3,); counts int64 (3,) of population, winners, losers.
        """
        columns = (self._fingerprints, self._known_at, self._outcome, self._failure, self._ids)
        rows, distances, filled, counts = scan(*columns, self.size, point, known_at, quotas)
        return rows, distances, filled, counts

    def counts(self, known_at: int) -> tuple[int, int, int]:
        """Population, winners and losers known at `known_at`."""
        outcome = self._outcome[: self.size][self._known_at[: self.size] <= known_at]
        return outcome.size, int((outcome == WIN).sum()), int((outcome == LOSS).sum())

    def _double(self) -> None:
        for name in ("_fingerprints", "_known_at", "_outcome", "_failure", "_ids"):
            old = getattr(self, name)
            new = np.zeros((2 * old.shape[0], *old.shape[1:]), dtype=old.dtype)
            new[: old.shape[0]] = old
            setattr(self, name, new)


def as_point(fingerprint: tuple[float, ...]) -> npt.NDArray[np.float32]:
    """A fingerprint as float32 (5,).

    Raises:
        InvariantViolation: it does not hold five ranks in [0, 1].
    """
    if len(fingerprint) != WIDTH or not all(0.0 <= rank <= 1.0 for rank in fingerprint):
        raise InvariantViolation(f"fingerprint {fingerprint!r} does not hold {WIDTH} ranks in [0, 1]")
    return np.array(fingerprint, dtype=np.float32)


@njit(cache=True)
def comes_first(ids: Any, a: int, b: int) -> bool:
    """Whether the id in row `a` is smaller, byte by byte, than that in row `b`."""
    for k in range(ids.shape[1]):
        if ids[a, k] != ids[b, k]:
            return bool(ids[a, k] < ids[b, k])
    return False


@njit(cache=True)
def keep(
    rows: Any, distances: Any, filled: Any, bucket: int, quota: int, row: int, distance: Any, ids: Any
) -> None:
    """Insert `row` into the sorted bucket if it is nearer than its farthest, ties by id."""
    at = filled[bucket]
    if at == quota:
        far = distances[bucket, at - 1]
        if distance > far or (distance == far and not comes_first(ids, row, rows[bucket, at - 1])):
            return
        at -= 1
    else:
        filled[bucket] += 1
    while at > 0:
        before = distances[bucket, at - 1]
        if before < distance or (before == distance and comes_first(ids, rows[bucket, at - 1], row)):
            break
        distances[bucket, at] = before
        rows[bucket, at] = rows[bucket, at - 1]
        at -= 1
    distances[bucket, at] = distance
    rows[bucket, at] = row


@njit(cache=True)
def reach(distances: Any, filled: Any, bucket: int, quota: int) -> float:
    """Squared distance beyond which nothing enters the bucket; one unit wider than its farthest."""
    if filled[bucket] < quota:
        return np.inf
    return float(((distances[bucket, quota - 1] + 1) * DISTANCE_UNIT) ** 2)


@njit(cache=True)
def scan(
    fingerprints: Any,
    known: Any,
    outcome: Any,
    failure: Any,
    ids: Any,
    size: int,
    point: Any,
    known_at: int,
    quotas: Any,
) -> Any:
    """Count what is known and keep the nearest of each bucket, in one pass; see `Population.nearest`."""
    rows = np.zeros((3, quotas.max()), dtype=np.int64)
    distances = np.zeros((3, quotas.max()), dtype=np.int64)
    filled = np.zeros(3, dtype=np.int64)
    population, winners, losers = 0, 0, 0
    limits = np.array([np.inf, np.inf, -1.0])  # by outcome: a scratch enters no bucket
    for row in range(size):
        eligible = known[row] <= known_at
        kind = outcome[row]
        population += eligible
        winners += eligible & (kind == WIN)
        losers += eligible & (kind == LOSS)
        total = 0.0
        for k in range(WIDTH):
            gap = np.float64(fingerprints[row, k]) - np.float64(point[k])
            total += gap * gap
        if total > limits[kind] or not eligible:
            continue
        distance = np.int64(np.round(np.sqrt(total) / DISTANCE_UNIT))
        keep(rows, distances, filled, kind, quotas[kind], row, distance, ids)
        limits[kind] = reach(distances, filled, kind, quotas[kind])
        if kind == LOSS:
            if failure[row]:
                keep(rows, distances, filled, FAILURES, quotas[FAILURES], row, distance, ids)
            limits[LOSS] = max(limits[LOSS], reach(distances, filled, FAILURES, quotas[FAILURES]))
    return rows, distances, filled, np.array([population, winners, losers])
