"""Contrastive memory: the nearest winners, losers and failure patterns among what was known at a time.

Only live episodes that may teach enter; base rates count the whole eligible population, never the retrieved
cases. The fast path gets `reader()`, which cannot add. Called by the fast reflection and, for base rates,
by the snapshot.
"""

import time
from dataclasses import dataclass, field

import numpy as np

from schemas.config import MemorySettings
from schemas.episode import Episode
from schemas.errors import InvariantViolation
from schemas.reflection import MemoryCase, MemorySummary
from schemas.snapshot import MemoryBaseRates
from schemas.vocabulary import Direction
from services.clock import SimulatedClock
from services.memory.store import DISTANCE_UNIT, FAILURES, LOSERS, WINNERS, IntArray, Population, as_point
from services.ports import MemoryQuery
from trading_core.tick_guard import TickGuard

BUCKETS = ("winners", "losers", "failures")
Key = tuple[str, Direction]


@dataclass(slots=True)
class MemoryTelemetry:
    """What reading cost; measured, never hashed. One latency per read, in milliseconds."""

    reads: int = 0
    latencies_ms: list[float] = field(default_factory=list)


class EpisodeMemory:
    """The writing side; one per run."""

    def __init__(self, settings: MemorySettings, clock: SimulatedClock, guard: TickGuard) -> None:
        self._populations: dict[Key, Population] = {}
        self._ids: set[str] = set()
        self._guard = guard
        self._telemetry = MemoryTelemetry()
        self._reader = MemoryView(self._populations, settings, clock, guard, self._telemetry)
        self.ignored = {"no_learn": 0, "shadow": 0}

    def add(self, episode: Episode) -> bool:
        """Remember one episode; False, and counted in `ignored`, if it may not teach.

        Raises:
            InvariantViolation: inside the tick path, the id is known already, or the fingerprint is not five
                ranks.
        """
        self._guard.forbid("policy_writes")
        if episode.no_learn or episode.ledger == "shadow":
            self.ignored["no_learn" if episode.no_learn else "shadow"] += 1
            return False
        if episode.episode_id in self._ids:
            raise InvariantViolation(
                f"episode {episode.episode_id!r} is in memory already", episode_id=episode.episode_id
            )
        key: Key = (episode.playbook_id, episode.direction)
        population = self._populations.get(key) or Population()
        population.add(episode)
        self._populations[key] = population
        self._ids.add(episode.episode_id)
        return True

    def reader(self) -> "MemoryView":
        """The reading side for the fast path."""
        return self._reader

    @property
    def reads(self) -> int:
        """Retrievals and base-rate reads so far."""
        return self._telemetry.reads

    @property
    def latencies_ms(self) -> tuple[float, ...]:
        """Milliseconds of each read, in order."""
        return tuple(self._telemetry.latencies_ms)

    def __len__(self) -> int:
        return len(self._ids)


class MemoryView:
    """Read-only memory: has no method that adds, changes or forgets."""

    __slots__ = ("_clock", "_guard", "_populations", "_quotas", "_telemetry")

    def __init__(
        self,
        populations: dict[Key, Population],
        settings: MemorySettings,
        clock: SimulatedClock,
        guard: TickGuard,
        telemetry: MemoryTelemetry,
    ) -> None:
        self._populations = populations
        self._quotas: IntArray = np.array(
            [settings.winners, settings.losers, settings.failures], dtype=np.int64
        )
        self._clock = clock
        self._guard = guard
        self._telemetry = telemetry

    def retrieve(self, query: MemoryQuery, known_at: int) -> MemorySummary:
        """Nearest cases of the query's playbook and direction by Euclidean distance on the five ranks.

        `insufficient` names each bucket that holds fewer cases than its quota.

        Raises:
            InvariantViolation: inside the tick path, `known_at` lies after the clock, or the fingerprint is
            not
                five ranks.
        """
        started = self._admit(known_at)
        point = as_point(query.fingerprint)
        population = self._populations.get((query.playbook_id, query.direction))
        if population is None:
            summary = MemorySummary(known_at=known_at, base_rates=_rates(0, 0, 0), insufficient=BUCKETS)
        else:
            summary = self._summary(population, population.nearest(point, known_at, self._quotas), known_at)
        self._note(started)
        return summary

    def base_rates(
        self, known_at: int, playbook_id: str | None = None, direction: Direction | None = None
    ) -> MemoryBaseRates:
        """Counts over everything known at `known_at`, of one playbook or direction or of all.

        Raises:
            InvariantViolation: inside the tick path, or `known_at` lies after the clock.
        """
        started = self._admit(known_at)
        counts = [
            population.counts(known_at)
            for (name, side), population in self._populations.items()
            if playbook_id in (None, name) and direction in (None, side)
        ]
        rates = _rates(*(sum(count[k] for count in counts) for k in range(3)))
        self._note(started)
        return rates

    def _admit(self, known_at: int) -> float:
        self._guard.forbid("memory_reads")
        self._clock.check(known_at)
        return time.perf_counter()

    def _note(self, started: float) -> None:
        self._telemetry.reads += 1
        self._telemetry.latencies_ms.append((time.perf_counter() - started) * 1e3)

    def _summary(
        self, population: Population, found: tuple[IntArray, IntArray, IntArray, IntArray], known_at: int
    ) -> MemorySummary:
        rows, distances, filled, counts = (part.tolist() for part in found)
        cases = [
            tuple(_case(population.episodes[rows[b][k]], distances[b][k]) for k in range(filled[b]))
            for b in (WINNERS, LOSERS, FAILURES)
        ]
        short = tuple(
            name for name, have, quota in zip(BUCKETS, filled, self._quotas, strict=True) if have < quota
        )
        winners, losers, failures = cases
        return MemorySummary(
            known_at=known_at,
            winners=winners,
            losers=losers,
            failures=failures,
            base_rates=_rates(*counts),
            insufficient=short,
        )


def _rates(population: int, winners: int, losers: int) -> MemoryBaseRates:
    return MemoryBaseRates(population=population, winners=winners, losers=losers)


def _case(episode: Episode, distance: int) -> MemoryCase:
    return MemoryCase(
        episode_id=episode.episode_id,
        symbol=episode.symbol,
        playbook_id=episode.playbook_id,
        direction=episode.direction,
        r=episode.r,
        distance=round(distance * DISTANCE_UNIT, 9),
        failure_mode=episode.failure_mode,
        known_at=episode.known_at,
    )
