"""When an answer of memory may be used again: in one evaluation, for one question, with nothing new known.

An evaluation is a symbol at one `known_at`; its reflection asks through here in every revision round. A
proposal that changes playbook or direction is looked up anew, and so is every one once an episode arrived.

What reading cost and how often an answer was used again is measured, never hashed (`MemoryTelemetry`).
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from schemas.reflection import BUCKETS, MemorySummary
from schemas.state import Stateful
from services.ports import MemoryQuery
from services.statistics.quantiles import quantiles

REASONS: Final = ("playbook", "direction", "fingerprint", "new_episodes")


@dataclass(slots=True)
class MemoryTelemetry(Stateful):
    """One per memory, written by its readers.

    Attributes:
        latencies_ms: one a read.
        reused: answers given again within one evaluation, without a read.
        requeried: second retrievals within one evaluation, by what had changed.
        insufficient: retrievals whose bucket stayed below its quota, by bucket.
        over_budget: reads that took longer than the budget.
        degraded: retrievals that gave up at their deadline and returned base rates only.
    """

    latencies_ms: list[float] = field(default_factory=list)
    reused: int = 0
    requeried: Counter[str] = field(default_factory=Counter)
    insufficient: Counter[str] = field(default_factory=Counter)
    over_budget: int = 0
    degraded: int = 0

    def document(self) -> dict[str, Any]:
        """The `memory` part of the run's JSON document, as far as readers fill it."""
        return {
            "reads": len(self.latencies_ms),
            "reused": self.reused,
            "requeried": {reason: self.requeried[reason] for reason in REASONS},
            "insufficient": {bucket: self.insufficient[bucket] for bucket in BUCKETS},
            "over_budget": self.over_budget,
            "degraded": self.degraded,
            "latency_ms": quantiles(self.latencies_ms),
        }


@dataclass(slots=True)
class Answers:
    """Answers as of one time and one state of memory; forgotten when either moves.

    Attributes:
        known_at: the time they were asked for.
        added: episodes in memory when they were given.
    """

    known_at: int = -1
    added: int = -1
    summaries: dict[MemoryQuery, MemorySummary] = field(default_factory=dict)
    _last: dict[str, MemoryQuery] = field(default_factory=dict)
    _outdated: dict[str, MemoryQuery] = field(default_factory=dict)

    def turn_to(self, known_at: int, added: int) -> None:
        """Forget what was answered for another time, or before an episode arrived."""
        if (known_at, added) == (self.known_at, self.added):
            return
        self._outdated = self._outdated | self._last if known_at == self.known_at else {}
        self.known_at, self.added = known_at, added
        self.summaries, self._last = {}, {}

    def keep(self, query: MemoryQuery, summary: MemorySummary) -> None:
        """Remember the answer of this evaluation to `query`."""
        self.summaries[query] = summary
        self._last[query.symbol] = query

    def why_ask_again(self, query: MemoryQuery) -> str | None:
        """Why this evaluation asks again; None when it asks for the first time."""
        last = self._last.get(query.symbol)
        if last is None:
            return "new_episodes" if query.symbol in self._outdated else None
        if last.playbook_id != query.playbook_id:
            return "playbook"
        return "direction" if last.direction != query.direction else "fingerprint"
