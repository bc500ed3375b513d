"""Counters of the slow loop."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from schemas.canonical import ns_to_datetime
from schemas.reflection import HighLevelReflectionReport
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

    def count(self, report: HighLevelReflectionReport, report_id: str, now: int) -> None:
        """A report has come, known at `now`, ns."""
        self.runs += 1
        self.findings.update(str(cluster.grade) for cluster in report.clusters)
        self.recommendations.update(str(recommendation.action) for recommendation in report.recommendations)
        if report.deliberation is not None:
            self.texts.count(report.deliberation)
        self.reports.append(
            {
                "report_id": report_id,
                "known_at": ns_to_datetime(now).isoformat(),
                "n_episodes": report.n_episodes,
                "recommended_action": str(report.recommended_action),
                "recommendations": len(report.recommendations),
                "insufficient_sample": report.insufficient_sample,
            }
        )

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
