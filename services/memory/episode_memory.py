"""Contrastive memory: the nearest winners, losers and failure patterns among what was known at a time.

Only live episodes that may teach enter; base rates count the whole eligible population, never the retrieved
cases. The fast path gets `reader()`, which cannot add.
"""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from schemas.episode import Episode
from schemas.reflection import BUCKETS, MemoryCase, MemorySummary
from schemas.regime import UNKNOWN
from schemas.settings import MemorySettings
from schemas.snapshot import MemoryBaseRates
from schemas.state import PART, Stateful
from services.memory.reuse import Answers, MemoryTelemetry
from services.memory.scan import DISTANCE_UNIT, Found
from services.memory.store import Population, Populations
from services.ports import MemoryQuery
from trading_core.clock import SimulatedClock
from trading_core.tick_guard import TickGuard

NS_PER_MS = 1_000_000
Timer = Callable[[], int]
RulesOf = Callable[[str], str]


def _alike(version_hash: str) -> str:
    return ""


class EpisodeMemory(Stateful):
    """The writing side; one per run.

    Args:
        settings: quotas and the time budget.
        clock: refuses reads of the future.
        guard: refuses reads and writes in the tick path.
        timer: monotonic ns, for telemetry and for the deadline of readers that have one.
        rules_of: what decides how trades of the version with a hash end; where that changes, its cases are
            none of the new rules'. Without it all versions of a playbook count as alike.
    """

    STATE: ClassVar = {"_telemetry": PART}
    REBUILT = frozenset({"_settings", "_clock", "_guard", "_timer", "_rules_of", "_populations", "ignored"})

    def __init__(
        self,
        settings: MemorySettings,
        clock: SimulatedClock,
        guard: TickGuard,
        timer: Timer = time.perf_counter_ns,
        rules_of: RulesOf = _alike,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._guard = guard
        self._timer = timer
        self._rules_of = rules_of
        self._populations = Populations()
        self._telemetry = MemoryTelemetry()
        self.ignored = {"no_learn": 0, "shadow": 0, "no_regime": 0}

    def add(self, episode: Episode) -> bool:
        """Remember one episode; False, and counted in `ignored`, if it may not teach.

        Raises:
            InvariantViolation: inside the tick path, the id is known already, or the fingerprint does not
                hold as many ranks in [0, 1] as the others.
        """
        self._guard.forbid("policy_writes")
        is_shadow = episode.ledger == "shadow"
        if episode.no_learn or is_shadow or episode.regime == UNKNOWN:
            self.ignored["no_learn" if episode.no_learn else "shadow" if is_shadow else "no_regime"] += 1
            return False
        self._populations.add(episode, self._rules_of(episode.playbook_hash))
        return True

    def reader(self, deadline_ms: float | None = None, *, counted: bool = True) -> "MemoryView":
        """A reading side for the fast path.

        Args:
            deadline_ms: after which a retrieval falls back to base rates; None lets no clock decide what is
                retrieved, but inside `deadline.retrievals`: there the budget of the settings is the deadline,
                or what a live run recorded of it.
            counted: whether its reads are those of the run.
        """
        return MemoryView(
            self._populations,
            self._settings,
            self._clock,
            self._guard,
            self._telemetry if counted else MemoryTelemetry(),
            self._timer,
            deadline_ms,
            self._rules_of,
        )

    @property
    def reads(self) -> int:
        """Retrievals and base-rate reads so far; an answer that was used again is none."""
        return len(self._telemetry.latencies_ms)

    @property
    def latencies_ms(self) -> tuple[float, ...]:
        """Milliseconds of each read, in order."""
        return tuple(self._telemetry.latencies_ms)

    def document(self) -> dict[str, Any]:
        """The `memory` part of the run's JSON document."""
        return {"episodes": len(self), "ignored": dict(self.ignored)} | self._telemetry.document()

    def __len__(self) -> int:
        return self._populations.added


@dataclass(slots=True, eq=False)
class MemoryView:
    """Read-only memory: has no method that adds, changes or forgets."""

    _populations: Populations
    _settings: MemorySettings
    _clock: SimulatedClock
    _guard: TickGuard
    _telemetry: MemoryTelemetry
    _timer: Timer
    _deadline_ms: float | None
    _rules_of: RulesOf = _alike
    _answers: Answers = field(default_factory=Answers)

    def retrieve(self, query: MemoryQuery, known_at: int) -> MemorySummary:
        """Nearest cases of the query's playbook, rules and direction by Euclidean distance on the ranks.

        At most half of a bucket's quota was entered on one UTC day, of each one case at least. `insufficient`
        names each bucket that holds fewer cases than its quota. The same question within one evaluation gets
        the same answer without a read.

        Raises:
            InvariantViolation: inside the tick path, `known_at` lies after the clock, or the fingerprint does
                not hold as many ranks in [0, 1] as the episodes.
        """
        self._admit(known_at)
        present, added = present_retrievals(), self._populations.added
        self._answers.turn_to(known_at, added if present is None else present.count_known(added))
        kept = self._answers.summaries.get(query)
        if kept is not None:
            self._telemetry.reused += 1
            return kept
        started = self._timer()
        summary = self._retrieve(query, known_at, started)
        changed = self._answers.why_ask_again(query)
        if changed is not None:
            self._telemetry.requeried[changed] += 1
        self._answers.keep(query, summary)
        self._telemetry.insufficient.update(summary.insufficient)
        self._telemetry.degraded += summary.degraded is not None
        self._note(started)
        return summary

    def base_rates(self, known_at: int) -> MemoryBaseRates:
        """Counts over everything known at `known_at`.

        Raises:
            InvariantViolation: inside the tick path, or `known_at` lies after the clock.
        """
        self._admit(known_at)
        started = self._timer()
        rates = _rates(*self._populations.counts(known_at))
        self._note(started)
        return rates

    def _admit(self, known_at: int) -> None:
        self._guard.forbid("memory_reads")
        self._clock.check(known_at)

    def _elapsed_ms(self, started: int) -> float:
        return (self._timer() - started) / NS_PER_MS

    def _note(self, started: int) -> None:
        elapsed_ms = self._elapsed_ms(started)
        self._telemetry.latencies_ms.append(elapsed_ms)
        self._telemetry.over_budget += elapsed_ms > self._settings.budget_ms

    def _retrieve(self, query: MemoryQuery, known_at: int, started: int) -> MemorySummary:
        point = self._populations.point(query.fingerprint)
        rules = self._rules_of(query.playbook_hash)
        population = self._populations.of(query.playbook_id, query.direction, rules)
        estimates = self._populations.estimates((query.playbook_id, rules, query.direction), point, known_at)
        if population is None:
            nothing = _rates(0, 0, 0)
            return MemorySummary.trust(
                known_at=known_at, base_rates=nothing, insufficient=BUCKETS, estimates=estimates
            )
        settings, present = self._settings, present_retrievals()
        number = 0 if present is None else present.number()
        quotas = np.array([settings.winners, settings.losers, settings.failures], dtype=np.int64)
        found = population.nearest(point, known_at, quotas, self._lateness(started, number))
        if found is None:
            if present is not None:
                present.late.append(number)
            return MemorySummary(
                known_at=known_at,
                base_rates=_rates(*population.counts(known_at)),
                insufficient=BUCKETS,
                degraded="over_budget",
            )
        return _summary(population, found, known_at).model_copy(update={"estimates": estimates})

    def _lateness(self, started: int, number: int) -> Callable[[], bool] | None:
        present, deadline_ms = present_retrievals(), self._deadline_ms
        if present is not None and present.recorded is not None:
            late = number in present.recorded
            return lambda: late
        if present is not None:
            deadline_ms = self._settings.budget_ms
        return None if deadline_ms is None else lambda: self._elapsed_ms(started) > deadline_ms


def _summary(population: Population, found: Found, known_at: int) -> MemorySummary:
    filled, short = found.filled.tolist(), (found.filled < found.quotas).tolist()
    winners, losers, failures = (
        tuple(
            _case(population.episodes[row], distance)
            for row, distance in zip(rows[:full], distances[:full], strict=True)
        )
        for rows, distances, full in zip(found.rows.tolist(), found.distances.tolist(), filled, strict=True)
    )
    return MemorySummary.trust(
        known_at=known_at,
        winners=winners,
        losers=losers,
        failures=failures,
        base_rates=_rates(*found.counts.tolist()),
        insufficient=tuple(name for name, is_short in zip(BUCKETS, short, strict=True) if is_short),
    )


def _rates(population: int, winners: int, losers: int) -> MemoryBaseRates:
    return MemoryBaseRates.trust(population=population, winners=winners, losers=losers)


def _case(episode: Episode, distance: int) -> MemoryCase:
    return MemoryCase.trust(
        episode_id=episode.episode_id,
        symbol=episode.symbol,
        playbook_id=episode.playbook_id,
        direction=episode.direction,
        r=episode.r,
        distance=round(distance * DISTANCE_UNIT, 9),
        failure_mode=episode.failure_mode,
        known_at=episode.known_at,
    )


@dataclass
class Retrievals:
    """The retrievals of one evaluation: a live feed waits 150 ms and no longer, a replay repeats them.

    Which of them were too late is an input like a bar: the live loop records their numbers, counted from 0
    within the evaluation, and a replay reads them and measures nothing.

    Attributes:
        recorded: numbers of those that were too late, as recorded; None while the deadline is live.
        late: numbers of those that were too late.
        count: how many there were.
        added: episodes in memory when the first began; later ones are not known to this evaluation.
    """

    recorded: frozenset[int] | None = None
    late: list[int] = field(default_factory=list)
    count: int = 0
    added: int | None = None

    def number(self) -> int:
        """Number of the next retrieval."""
        self.count += 1
        return self.count - 1

    def count_known(self, added: int) -> int:
        """Episodes that this evaluation can know of: bars may go on and add others meanwhile."""
        self.added = added if self.added is None else self.added
        return self.added


_PRESENT: ContextVar[Retrievals | None] = ContextVar("retrievals", default=None)


@contextmanager
def retrievals(recorded: Collection[int] | None = None) -> Iterator[Retrievals]:
    """Put whatever this task retrieves inside under the deadline, or under what was recorded of it."""
    present = Retrievals(None if recorded is None else frozenset(recorded))
    token = _PRESENT.set(present)
    try:
        yield present
    finally:
        _PRESENT.reset(token)


def present_retrievals() -> Retrievals | None:
    """Those of the present evaluation; None where no clock decides what is retrieved."""
    return _PRESENT.get()
