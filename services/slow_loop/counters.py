"""Counters of the slow loop."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from schemas.canonical import ns_to_datetime
from schemas.judge import ReplanVerdict
from schemas.slow_reflection import HighLevelReflectionReport
from schemas.state import Stateful
from schemas.vocabulary import InvocationOutcome, RecommendedAction
from services.deliberation.counters import TextCounters
from services.high_level.hypotheses import hypothesis
from services.high_level.leanings import nearest_claim
from services.statistics.quantiles import quantiles

RULES = "rules"  # whose word a verdict is where no model was asked


@dataclass
class SlowCounters(Stateful):
    """What the slow loop did; telemetry, the summary reads it.

    `opinions` counts the verdicts that a model was to be asked about: `model` where its word counts, else why
    that of the rules does.
    """

    runs: int = 0
    skips: Counter[str] = field(default_factory=Counter)
    findings: Counter[str] = field(default_factory=Counter)
    recommendations: Counter[str] = field(default_factory=Counter)
    replans: Counter[str] = field(default_factory=Counter)
    opinions: Counter[str] = field(default_factory=Counter)
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
        elif report.meta.outcome is InvocationOutcome.DEGRADED:
            self.texts.statuses["failed"] += 1
        self.reports.append(
            {
                "report_id": report_id,
                "known_at": ns_to_datetime(now).isoformat(),
                "n_episodes": report.n_episodes,
                "recommended_action": str(report.recommended_action),
                "recommendations": len(report.recommendations),
                "insufficient_sample": report.insufficient_sample,
                "nearest_claim": nearest_claim(
                    (hypothesis(item.playbook_id, item.regime), item.years_needed, item.to_prove)
                    for item in report.clusters
                ),
                "second_opinions": {
                    item.playbook_id: item.second_opinion.claim
                    for item in report.clusters
                    if item.second_opinion is not None
                },
            }
        )

    def count_verdict(self, verdict: ReplanVerdict, *, acted: bool) -> None:
        """A judge has given a verdict on a report; one of whose actions none was carried out is a `hold`."""
        self.replans[str(verdict.decision if acted else RecommendedAction.HOLD)] += 1
        self.refused.update(refusal.code for refusal in verdict.refused)
        if verdict.fallback is not None or verdict.model != RULES:
            self.opinions["model" if verdict.fallback is None else verdict.fallback.partition(":")[0]] += 1

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
