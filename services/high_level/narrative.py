"""The readable part of a report, written by rules from computed numbers."""

from collections.abc import Mapping, Sequence

from schemas.reflection import ClusterFinding, HighLevelReflectionReport
from schemas.vocabulary import EvidenceGrade
from services.high_level.report_lines import (
    excluded_line,
    interval_text,
    ledger_line,
    recommendation_line,
    trial_line,
)

SHOWN = 12


def _line(finding: ClusterFinding) -> str:
    where = f" in {finding.regime}" if finding.regime else ""
    mean = "no mean" if finding.mean_r is None else f"mean {finding.mean_r:+.2f}R"
    edges = (
        ""
        if finding.mean_r is None
        else f" {interval_text(finding.lower_r, finding.upper_r, finding.interval_kind)}"
    )
    evidence = "no e-value" if finding.e_value is None else f"E {finding.e_value:.4g}"
    effect = finding.smallest_detectable_r
    detectable = "nothing detectable yet" if effect is None else f"detectable {effect:.2f}R"
    return (
        f"{finding.playbook_id}{where}: {finding.grade}, n {finding.n}, blocks {finding.blocks}, "
        f"{mean}{edges}, {evidence}, {detectable}"
    )


def _order(finding: ClusterFinding) -> tuple[int, float, str, str]:
    grades = list(EvidenceGrade)
    return (
        -grades.index(finding.grade),
        -(finding.e_value or 0.0),
        finding.playbook_id,
        finding.regime or "",
    )


def write_narrative(report: HighLevelReflectionReport) -> str:
    """Plain text of a report: what was seen, how much it shows, what drifted, what is recommended."""
    window = f"{report.window_start:%Y-%m-%d} to {report.window_end:%Y-%m-%d}"
    lines = [f"{report.n_episodes} resolved trades, {window}."]
    if report.insufficient_sample:
        lines.append("insufficient_sample: no cluster has enough trades; what follows is monitoring only.")
    lines += [line for line in (ledger_line(report), excluded_line(report)) if line is not None]
    shown = [finding for finding in report.clusters if finding.timeframe is None]
    lines += _section("Clusters", [_line(finding) for finding in sorted(shown, key=_order)[:SHOWN]])
    lines += _section("Failure modes", _failures(report.failure_modes))
    lines += _section("Expectation misses", report.expectation_misses)
    lines += _section("Drift", report.drift_findings)
    lines += _section("Grid trials", [trial_line(trial) for trial in report.grid_trials])
    lines += _section("Recommendations", [recommendation_line(item) for item in report.recommendations])
    return "\n".join(lines)


def _failures(modes: Mapping[str, int]) -> list[str]:
    losers = sum(modes.values())
    return [f"{mode}: {count} of {losers} losers" for mode, count in sorted(modes.items())]


def _section(title: str, rows: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"- {row}" for row in rows)] if rows else []
