"""What reading memory cost and how often an answer was used again; measured, never hashed."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from schemas.reflection import BUCKETS
from schemas.state import Stateful
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
        day_limited: retrievals in which a case was left out because its day had its share.
        over_budget: reads that took longer than the budget.
        degraded: retrievals that gave up at their deadline and returned base rates only.
    """

    latencies_ms: list[float] = field(default_factory=list)
    reused: int = 0
    requeried: Counter[str] = field(default_factory=Counter)
    insufficient: Counter[str] = field(default_factory=Counter)
    day_limited: int = 0
    over_budget: int = 0
    degraded: int = 0

    def document(self) -> dict[str, Any]:
        """The `memory` part of the run's JSON document, as far as readers fill it."""
        return {
            "reads": len(self.latencies_ms),
            "reused": self.reused,
            "requeried": {reason: self.requeried[reason] for reason in REASONS},
            "insufficient": {bucket: self.insufficient[bucket] for bucket in BUCKETS},
            "day_limited": self.day_limited,
            "over_budget": self.over_budget,
            "degraded": self.degraded,
            "latency_ms": quantiles(self.latencies_ms),
        }
