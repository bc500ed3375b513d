"""Columns behind the memory: one population per playbook, its rules and direction, growing by doubling.

Fingerprints are float32 and as wide as the first episode's; nothing here decides what is near (`scan` does)
or who may read (`episode_memory` does).
"""

import sys
from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from schemas.episode import Episode
from schemas.errors import InvariantViolation
from schemas.reflection import LocalEstimate
from schemas.vocabulary import Direction, FailureMode
from services.memory.departures import Departures
from services.memory.scan import FAILURE, LANES, LOSS, SCRATCH, WIN, Cases, Found, count, nothing_found, scan

Key = tuple[str, str, Direction]
IntArray = npt.NDArray[np.int64]

MAX_WIDTH: Final = 16
ID_BYTES: Final = 32
DAY_NS: Final = 86_400 * 1_000_000_000
CHUNK: Final = 2_048 * LANES  # rows between two looks at the deadline, under a millisecond's work


def kind_of(episode: Episode) -> int:
    """Win, loss, a loss that failed in a recognised way, or a scratch."""
    if episode.outcome == "win":
        return WIN
    if episode.outcome == "scratch":
        return SCRATCH
    return LOSS if episode.failure_mode in (None, FailureMode.UNCLASSIFIED) else FAILURE


def entry_day(episode: Episode) -> int:
    """UTC day of the entry bar's label, in days since 1970.

    The day of the entry and not of the exit: trades entered together met the same market, and that is why
    their fingerprints lie together; the days on which they ended say nothing about it.
    """
    return episode.entry_label // DAY_NS


def as_point(fingerprint: tuple[float, ...], width: int | None = None) -> npt.NDArray[np.float32]:
    """A fingerprint as float32 (W,).

    Args:
        fingerprint: ranks.
        width: how many there must be; None allows 1 to 16.

    Raises:
        InvariantViolation: another number of ranks, or one outside [0, 1].
    """
    fits = 1 <= len(fingerprint) <= MAX_WIDTH if width is None else len(fingerprint) == width
    if not fits or not all(0.0 <= rank <= 1.0 for rank in fingerprint):
        wanted = f"1 to {MAX_WIDTH}" if width is None else f"{width}"
        raise InvariantViolation(f"fingerprint {fingerprint!r} does not hold {wanted} ranks in [0, 1]")
    return np.array(fingerprint, dtype=np.float32)


def as_id(episode_id: str) -> npt.NDArray[np.uint8]:
    """An episode id as uint8 (n,).

    Raises:
        InvariantViolation: longer than 32 bytes.
    """
    name = episode_id.encode()
    if len(name) > ID_BYTES:
        raise InvariantViolation(
            f"episode id {episode_id!r} is longer than {ID_BYTES} bytes: use a content id",
            episode_id=episode_id,
        )
    return np.frombuffer(name, dtype=np.uint8)


class Population:
    """Episodes of one playbook and direction as columns; `size` rows are filled."""

    def __init__(self, width: int) -> None:
        self.episodes: list[Episode] = []
        self._cases = room(LANES, width)

    @property
    def size(self) -> int:
        """Episodes held."""
        return len(self.episodes)

    def add(self, episode: Episode) -> None:
        """Append one episode.

        Raises:
            InvariantViolation: the fingerprint is not as wide as the others, a rank lies outside [0, 1], or
                the id is longer than 32 bytes.
        """
        point, name = as_point(episode.fingerprint, self._cases.points.shape[1]), as_id(episode.episode_id)
        row = self.size
        if row == self._cases.known_at.shape[0]:
            self._cases = _grow(self._cases)
        cases = self._cases
        cases.points[row // LANES, :, row % LANES] = point
        cases.known_at[row] = episode.known_at
        cases.kind[row] = kind_of(episode)
        cases.day[row] = entry_day(episode)
        cases.ids[row, : len(name)] = name
        self.episodes.append(episode)

    def nearest(
        self,
        point: npt.NDArray[np.float32],
        known_at: int,
        quotas: IntArray,
        is_late: Callable[[], bool] | None = None,
    ) -> Found | None:
        """The nearest of each bucket with the counts of the eligible population.

        Args:
            point: float32 (W,), the query's fingerprint.
            known_at: ns; later episodes do not exist.
            quotas: int64 (3,), winners, losers, failures.
            is_late: asked before each chunk of rows; None never gives up.

        Returns:
            None when it was late before the last chunk.
        """
        found, exact = nothing_found(quotas), point.astype(np.float64)
        for start in range(0, self.size, CHUNK):
            if is_late is not None and is_late():
                return None
            scan(self._cases, found, exact, known_at, start, min(start + CHUNK, self.size))
        return found

    def counts(self, known_at: int) -> tuple[int, int, int]:
        """Population, winners and losers known at `known_at`."""
        counts = np.zeros(3, dtype=np.int64)
        count(self._cases, counts, known_at, 0, self.size)
        total, winners, losers = counts.tolist()
        return total, winners, losers


class Populations:
    """Every population of one memory; one width for all of them.

    Attributes:
        added: episodes so far; whoever keeps an answer compares it.
    """

    def __init__(self) -> None:
        self._by_key: dict[Key, Population] = {}
        self._ids: set[str] = set()
        self._arrived: list[tuple[Key, Episode]] = []
        self._taken, self._departures = 0, Departures()
        self._latest = 0
        self._counts: tuple[int, int, int] | None = None  # of all; None until they are asked for
        self._width: int | None = None
        self.added = 0

    def add(self, episode: Episode, rules: str = "") -> None:
        """Append one episode to the population of its playbook under these rules.

        Raises:
            InvariantViolation: it is known already, or does not fit (see `Population.add`).
        """
        if episode.episode_id in self._ids:
            raise InvariantViolation(
                f"episode {episode.episode_id!r} is in memory already", episode_id=episode.episode_id
            )
        width = self.point(episode.fingerprint).size
        key: Key = (episode.playbook_id, rules, episode.direction)
        population = self._by_key.get(key) or Population(width)
        population.add(episode)
        self._by_key[key] = population
        self._arrived.append((key, episode))
        self._ids.add(episode.episode_id)
        self._latest, self._counts = max(self._latest, episode.known_at), None
        self._width = width
        self.added += 1

    def hold(self, playbook_id: str, direction: Direction, population: Population) -> None:
        """Take a whole population over in place of what this playbook and direction had."""
        self._by_key[playbook_id, "", direction] = population
        self.added += population.size
        self._latest = sys.maxsize  # its episodes may become known at any time

    def point(self, fingerprint: tuple[float, ...]) -> npt.NDArray[np.float32]:
        """A fingerprint as float32 (W,).

        Raises:
            InvariantViolation: it is not as wide as those held, or a rank lies outside [0, 1].
        """
        return as_point(fingerprint, self._width)

    def of(self, playbook_id: str, direction: Direction, rules: str = "") -> Population | None:
        """The population of one playbook, its rules and direction, if there is any."""
        return self._by_key.get((playbook_id, rules, direction))

    def estimates(self, key: Key, point: npt.NDArray[np.float32], known_at: int) -> tuple[LocalEstimate, ...]:
        """What trades of these rules are expected to bring at a point, from what is known at `known_at`."""
        return self.facts_at(known_at).at(key, point.astype(np.float64))

    def facts_at(self, known_at: int) -> Departures:
        """Departures of what is known; those of the present are kept and continued, those of a past made."""
        new = _by_exit(self._arrived[self._taken :])
        if known_at >= self._latest and (not new or new[0][1].known_at >= self._departures.through):
            found = self._departures
        else:
            found, new = (
                Departures(),
                [item for item in _by_exit(self._arrived) if item[1].known_at <= known_at],
            )
        for key, episode in new:
            found.add(key, self.point(episode.fingerprint).astype(np.float64), episode)
        if known_at >= self._latest:
            self._departures, self._taken = found, len(self._arrived)
        return found

    def counts(self, known_at: int) -> tuple[int, int, int]:
        """Episodes, winners and losers of all of them known at `known_at`."""
        if known_at >= self._latest and self._counts is not None:
            return self._counts
        found = [population.counts(known_at) for population in self._by_key.values()]
        total, winners, losers = np.array(found, dtype=np.int64).reshape(-1, 3).sum(axis=0).tolist()
        if known_at >= self._latest:
            self._counts = total, winners, losers
        return total, winners, losers


def _by_exit(arrived: list[tuple[Key, Episode]]) -> list[tuple[Key, Episode]]:
    return sorted(arrived, key=lambda item: (item[1].known_at, item[1].episode_id))


def room(rows: int, width: int) -> Cases:
    """Empty columns with room for `rows` episodes, a multiple of `LANES`, of `width` ranks each."""
    return Cases(
        points=np.zeros((rows // LANES, width, LANES), dtype=np.float32),
        known_at=np.zeros(rows, dtype=np.int64),
        kind=np.zeros(rows, dtype=np.int8),
        day=np.zeros(rows, dtype=np.int64),
        ids=np.zeros((rows, ID_BYTES), dtype=np.uint8),
    )


def _grow(cases: Cases) -> Cases:
    return Cases(*(np.concatenate([column, np.zeros_like(column)]) for column in cases))
