"""The lines of a report in the words of the rules, which a text may quote, and the narrative made of them."""

import re
from collections.abc import Mapping, Sequence

from schemas.reflection import HighLevelReflectionReport
from schemas.slow_reflection import ClusterFinding, GridTrial, Recommendation
from schemas.vocabulary import EvidenceGrade

SHOWN = 12
OF_LOSERS = re.compile(r"^(- \w+: \d+ of \d+ losers)$", re.MULTILINE)


def interval_text(lower: float | None, upper: float | None, kind: str = "") -> str:
    """`[-0.20, +0.38]`, `[-0.20, open]`, `[open, +0.38]`, `open`, or `none`; R with two digits.

    `(last look)` follows where the mean moved, so that no interval of every look holds it.
    """
    if kind == "moved":
        return f"{interval_text(lower, upper)} (last look)"
    if lower is None and upper is None:
        return "none" if kind == "none" else "open"
    edges = ("open" if edge is None else f"{edge:+.2f}" for edge in (lower, upper))
    return f"[{', '.join(edges)}]"


def ledger_line(report: HighLevelReflectionReport) -> str | None:
    """What was tried on these bars before; None where nothing was."""
    told = None if report.ledger is None else report.ledger.line()
    return None if told is None else f"{told[0].upper()}{told[1:]}."


def excluded_line(report: HighLevelReflectionReport) -> str | None:
    """Episodes that were counted and not tested, by reason; None without any."""
    counted = ", ".join(f"{reason} {count}" for reason, count in sorted(report.excluded.items()))
    return f"Counted but not tested: {counted}." if counted else None


def trial_line(trial: GridTrial) -> str:
    """One value of a grid and what its trades made."""
    mean = "no trades" if trial.mean_r is None else f"mean {trial.mean_r:+.2f}R"
    return f"{trial.playbook_id} {trial.parameter} {trial.value:g}: n {trial.n}, {mean}"


def recommendation_line(item: Recommendation) -> str:
    """One recommendation with its grade and its reason."""
    return f"{item.action} ({item.grade}): {item.reason}"


def report_lines(report: HighLevelReflectionReport) -> tuple[str, ...]:
    """Every line that stands in a report as such; what a model wrote is not among them."""
    told = (ledger_line(report), excluded_line(report))
    return (
        *(line.removesuffix(".") for line in told if line is not None),
        *map(trial_line, report.grid_trials),
        *report.expectation_misses,
        *report.drift_findings,
        *map(recommendation_line, report.recommendations),
        *(item.reason for item in report.recommendations),
    )


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


def shown_narrative(narrative: str) -> str:
    """A stored narrative as it is shown: the losers that its failure modes are of are not all that lost."""
    return OF_LOSERS.sub(r"\1 that have a failure mode", narrative)


def _section(title: str, rows: Sequence[str]) -> list[str]:
    return [f"{title}:", *(f"- {row}" for row in rows)] if rows else []
