"""The lines of a report in the words of the rules; a text may quote them whole."""

from schemas.reflection import GridTrial, HighLevelReflectionReport, Recommendation


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
