"""What a report says in words: the topics of its narrative, and the claims that rules make on each.

The narrative of the rules and that of a model are the same kind of text, rendered from claims by the same
code; they differ in who picks the claims.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from schemas.claims import (
    AdviceClaim,
    Claim,
    GradeClaim,
    MeasureName,
    Of,
    RankClaim,
    Section,
    ValueClaim,
)
from schemas.slow_reflection import ClusterFinding, HighLevelReflectionReport
from schemas.vocabulary import ExitReason
from services.claims.check import ClaimResult, check
from services.claims.measures import MEASURES
from services.claims.sections import write_sections
from services.claims.subjects import subject_of
from services.evidence.run_facts import RunFacts
from services.high_level.narrative_reply import Narrative

TOPICS = (
    "window",
    "best and worst cluster",
    "expectation misses",
    "drift",
    "grades",
    "recommendation",
)
WINDOW, EXTREMES, EXPECTATIONS, DRIFT, GRADES, ADVICE = TOPICS
MISSES: Mapping[str, tuple[MeasureName, MeasureName]] = {
    "hold": ("hold_p50", "expected_hold_p50"),
    "MAE": ("mae_p80", "expected_mae_p80"),
    "MFE": ("mfe_p50", "expected_mfe_p50"),
}
SHOWN = 12
OF_TRADES: tuple[MeasureName, ...] = ("trades", "mean_r", "total_r", "win_rate", "hold_p50", "profit_factor")
OF_CLUSTER: tuple[MeasureName, ...] = (
    "blocks", "gate_mean_r", "lower_r", "upper_r", "e_value", "detectable_r", "hold_p90", "mae_p80",
    "expected_hold_p50", "expected_mae_p80", "expected_mfe_p50",
)  # fmt: skip
OF_REPORT: tuple[MeasureName, ...] = (
    "report_trades", "expectation_misses", "decay_alarms", "regime_shift_p", "unclassified_share",
    "recommendations",
)  # fmt: skip


def rule_sections(report: HighLevelReflectionReport, facts: RunFacts) -> tuple[Section, ...]:
    """The claims that rules make on a report, by topic; those that the facts bear out."""
    writers: Mapping[str, Callable[[HighLevelReflectionReport, RunFacts], Iterator[Claim]]] = {
        WINDOW: _on_window, EXTREMES: _on_extremes, EXPECTATIONS: _on_expectations, DRIFT: _on_drift,
        GRADES: _on_grades, ADVICE: _on_advice,
    }  # fmt: skip
    sections = []
    for topic, write in writers.items():
        claims = [claim for claim in write(report, facts) if isinstance(check(claim, facts), ClaimResult)]
        sections.append(Section(topic=topic, claims=tuple(claims)))
    return tuple(sections)


def _on_window(report: HighLevelReflectionReport, facts: RunFacts) -> Iterator[Claim]:
    measures: tuple[MeasureName, ...] = ("report_trades", "mean_r", "total_r", "win_rate")
    yield from (ValueClaim(measure=measure) for measure in measures)


def _on_extremes(report: HighLevelReflectionReport, facts: RunFacts) -> Iterator[Claim]:
    for counted_from in ("highest", "lowest"):
        for name in facts.playbook_ids:
            yield RankClaim(measure="mean_r", by="playbook", who=name, counted_from=counted_from)


def _on_expectations(report: HighLevelReflectionReport, facts: RunFacts) -> Iterator[Claim]:
    yield ValueClaim(measure="expectation_misses")
    for check_made in report.expectations:
        for measure in chain.from_iterable(MISSES[name] for name in check_made.missed):
            yield ValueClaim(measure=measure, of=Of(playbook=check_made.playbook_id))


def _on_drift(report: HighLevelReflectionReport, facts: RunFacts) -> Iterator[Claim]:
    yield ValueClaim(measure="decay_alarms")
    yield ValueClaim(measure="regime_shift_p")


def _on_grades(report: HighLevelReflectionReport, facts: RunFacts) -> Iterator[Claim]:
    for finding in _playbook_clusters(report)[:SHOWN]:
        of = Of(playbook=finding.playbook_id)
        yield GradeClaim(of=of, grade=finding.grade)
        yield ValueClaim(measure="e_value", of=of)
        yield ValueClaim(measure="detectable_r", of=of)


def _on_advice(report: HighLevelReflectionReport, facts: RunFacts) -> Iterator[Claim]:
    yield AdviceClaim(action=report.recommended_action)
    for item in report.recommendations[:SHOWN]:
        if item.playbook_id is not None:
            yield AdviceClaim(action=item.action, of=Of(playbook=item.playbook_id, regime=item.regime))


def _playbook_clusters(report: HighLevelReflectionReport) -> list[ClusterFinding]:
    return [item for item in report.clusters if item.regime is None and item.timeframe is None]


def cells_of(report: HighLevelReflectionReport, facts: RunFacts) -> dict[str, Any]:
    """The figures of a report as a writer is shown them, once: a table of subjects by measures.

    A cell is null where there is no figure; each is rounded as a text shows it.
    """
    named = [item for item in report.clusters if item.timeframe is None]
    clusters = [Of(playbook=item.playbook_id, regime=item.regime) for item in named]
    exits = [Of(exit_reason=ExitReason(str(member.exit_reason))) for member in facts.members("exit_reason")]
    whole = (*OF_REPORT, *OF_TRADES)
    return {
        "columns": {"clusters": [*OF_TRADES, *OF_CLUSTER], "symbols": OF_TRADES, "exits": OF_TRADES},
        "clusters": [
            {"playbook": of.playbook, "regime": of.regime, "grade": _grade(of, facts)}
            | {"cells": _row(of, (*OF_TRADES, *OF_CLUSTER), facts)}
            for of in clusters
        ],
        "symbols": [
            {"symbol": member.symbol, "cells": _row(Of(symbol=str(member.symbol)), OF_TRADES, facts)}
            for member in facts.members("symbol")
        ],
        "exits": [{"exit_reason": of.exit_reason, "cells": _row(of, OF_TRADES, facts)} for of in exits],
        "report": dict(zip(whole, _row(Of(), whole, facts), strict=True)),
        "missed": {item.playbook_id: list(item.missed) for item in report.expectations if item.missed},
        "advice": [[item.action.value, item.playbook_id, item.regime] for item in report.recommendations],
        "recommended": report.recommended_action.value,
        "window": [f"{report.window_start:%Y-%m-%d}", f"{report.window_end:%Y-%m-%d}"],
    }


def _grade(of: Of, facts: RunFacts) -> str | None:
    found = facts.cluster(subject_of(of, facts))
    return None if found is None else found.grade.value


def _row(of: Of, measures: Sequence[str], facts: RunFacts) -> list[float | None]:
    subject = subject_of(of, facts)
    found = [MEASURES[name].figure(facts, subject) for name in measures]
    return [None if cell is None else float(cell[0].shown) for cell in found]


def rule_narrative(report: HighLevelReflectionReport, facts: RunFacts) -> Narrative:
    """The narrative of the rules."""
    text = write_sections(rule_sections(report, facts), facts)
    return Narrative(text.sections, text.text, False)
