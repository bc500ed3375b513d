"""Counters of the policy loop: what happened, by kind and reason, and how long it took.

Telemetry, never hashed.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas.vocabulary import InvocationOutcome


def quantiles(latencies_ms: list[float]) -> dict[str, float | None]:
    """p50, p95, p99 in ms; None without a measurement."""
    if not latencies_ms:
        return {"p50": None, "p95": None, "p99": None}
    p50, p95, p99 = np.quantile(np.asarray(latencies_ms), [0.5, 0.95, 0.99])
    return {"p50": float(p50), "p95": float(p95), "p99": float(p99)}


@dataclass
class PolicyCounters:
    """One per run; the policy loop writes it, the summary reads it."""

    events: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    overrides: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    reflections: Counter[str] = field(default_factory=Counter)
    invocations: Counter[str] = field(default_factory=Counter)
    finding_codes: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    evaluations: int = 0
    revisions: int = 0
    errors: int = 0
    over_budget: int = 0
    evaluation_ms: list[float] = field(default_factory=list)
    reflection_ms: list[float] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        """The `policy_loop` part of the run's JSON document."""
        reflections = {name: self.reflections[name] for name in ("pass", "revise", "block", "error")}
        reflections["degraded"] = self.invocations[InvocationOutcome.DEGRADED]
        return {
            "events": dict(sorted(self.events.items())),
            "skips": dict(sorted(self.skips.items())),
            "overrides": dict(sorted(self.overrides.items())),
            "evaluations": self.evaluations,
            "outcomes": dict(sorted(self.outcomes.items())),
            "answers": dict(sorted(self.answers.items())),
            "frozen": self.outcomes["frozen"],
            "stand_downs": self.outcomes["stood_down"],
            "revisions": self.revisions,
            "reflections": reflections,
            "finding_codes": dict(sorted(self.finding_codes.items())),
            "over_budget": self.over_budget,
            "latency_ms": quantiles(self.evaluation_ms),
            "reflection_latency_ms": quantiles(self.reflection_ms),
        }
