"""Counters of the slow loop."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from schemas.state import Stateful
from services.deliberation.counters import TextCounters
from services.statistics.quantiles import quantiles


@dataclass
class SlowCounters(Stateful):
    """What the slow loop did; telemetry, the summary reads it."""

    runs: int = 0
    skips: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    recommendations: Counter[str] = field(default_factory=Counter)
    replans: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    applied: Counter[str] = field(default_factory=Counter)
    texts: TextCounters = field(default_factory=TextCounters)
    reports: list[dict[str, Any]] = field(default_factory=list)
    run_ms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    errors: int = 0

    def document(self) -> dict[str, Any]:
        """The `high_level` part of the run's JSON document."""
        return {
            "runs": self.runs,
            "skips": dict(sorted(self.skips.items())),
            "reports": self.reports,
            "findings": dict(sorted(self.findings.items())),
            "recommendations": dict(sorted(self.recommendations.items())),
            "latency_ms": quantiles(self.run_ms),
        }
