"""What became of the texts of a run, counted: telemetry, never hashed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, get_args

from schemas.deliberation import Deliberation, DeliberationStatus
from services.deliberation.policies import SKIP_REASONS
from services.statistics.quantiles import quantiles

STATUSES = tuple(status for status in get_args(DeliberationStatus) if status != "skipped")


@dataclass
class TextCounters:
    """One for each loop that has texts refined.

    Attributes:
        statuses: of texts that were looked at.
        skips: of those that were not, by reason.
        counts: `early` (accepted before the last iteration), `regenerated`, `reviewed`, `chunked`,
            `sections`, `facts_passed`, `facts_failed`, `struck`, `calls` and `tokens`.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    skips: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    gains: list[float] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    elapsed_ms: list[float] = field(default_factory=list)

    def count(self, done: Deliberation) -> None:
        """One text."""
        if done.skip_reason is not None:
            self.skips[done.skip_reason] += 1
            return
        self.statuses[done.status] += 1
        self.elapsed_ms.append(done.elapsed_ms)
        scores = [
            reply.overall for reply in done.critiques if reply.source == "model" and reply.overall is not None
        ]
        self.scores += scores[-1:]
        if done.self_reported_gain is not None:
            self.gains.append(done.self_reported_gain)
        kinds = Counter(event.kind for event in done.events)
        checked = done.fact_checks[-1:]
        self.counts.update(
            early=done.stop_reason == "accepted",
            regenerated=len(done.candidates) > 1,
            reviewed=kinds["review_cycle"] > 0,
            chunked=kinds["chunk_outline"] > 0,
            sections=kinds["chunk_write"],
            facts_passed=sum(check.count("verified") for check in checked),
            facts_failed=sum(len(check.failures) for check in checked),
            struck=int(done.details.get("struck_claims", 0)),
            calls=done.usage.calls,
            tokens=done.usage.tokens,
        )


def texts_document(counters: Sequence[TextCounters]) -> dict[str, Any]:
    """The `deliberation` part of the run's JSON document; scores and gains between 0 and 1."""
    statuses = sum((each.statuses for each in counters), Counter[str]())
    skips = sum((each.skips for each in counters), Counter[str]())
    counts = sum((each.counts for each in counters), Counter[str]())
    gains = [gain for each in counters for gain in each.gains]
    scores = [score for each in counters for score in each.scores]
    total = sum(statuses.values())
    return {
        "total_requests": total,
        "statuses": {status: statuses[status] for status in STATUSES},
        "skips": {reason: skips[reason] for reason in sorted({*SKIP_REASONS, *skips})},
        "avg_quality_gain": round(fmean(gains), 9) if gains else None,
        "avg_final_score": round(fmean(scores), 9) if scores else None,
        "threshold_met_early": counts["early"],
        "fact_checks_passed": counts["facts_passed"],
        "fact_checks_failed": counts["facts_failed"],
        "struck_claims": counts["struck"],
        "share_reviewed": round(counts["reviewed"] / total, 9) if total else None,
        "share_chunked": round(counts["chunked"] / total, 9) if total else None,
        "share_regenerated": round(counts["regenerated"] / total, 9) if total else None,
        "sections": counts["sections"],
        "calls": counts["calls"],
        "tokens": counts["tokens"],
        "response_time_ms": quantiles([ms for each in counters for ms in each.elapsed_ms]),
    }
