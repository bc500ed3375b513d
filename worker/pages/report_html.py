"""One high-level report as a page that a browser opens without a network and without a script.

Every number comes from the report or from the reports before it; nothing is computed here. What models and
strategists wrote is quoted as text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.high_level.report_lines import ledger_line
from services.slow_loop.evidence_rows import evidence_line
from worker.pages.drift_plot import drift_plot
from worker.pages.expectation_plot import expectation_plot
from worker.pages.forest_plot import forest_plot, shown_clusters
from worker.pages.rendering import render
from worker.pages.report_tables import report_tables
from worker.pages.shapes import GRADES, write

Entry = dict[str, Any]


@dataclass(frozen=True)
class Links:
    """Pages beside this one, by report id; None where there is none."""

    before: str | None = None
    after: str | None = None


def report_html(entry: Entry, earlier: Sequence[Entry] = (), links: Links | None = None) -> str:
    """The page of one journalled report `{report_id, report, verdict, evidence}`, the same bytes each time.

    Args:
        entry: the report with the judge's verdict on it, None while there is none.
        earlier: the reports of the same run before it, oldest first: the drift over time.
        links: pages of the same folder to lead to; None for a page that stands alone.
    """
    report = entry["report"]
    clusters = shown_clusters(report["clusters"])
    expectations = report.get("expectations")
    reports = [*(past["report"] for past in earlier), report]
    return render(
        "report.html",
        f"Report {entry['report_id']}",
        entry=entry,
        report=report,
        links=links,
        sections=report["sections"],
        ledger=ledger_line(report),
        read=[evidence_line(shown) for shown in entry.get("evidence", ())],
        clusters=clusters,
        tables=report_tables(report, clusters),
        family=_family(report),
        forest=write(forest_plot(clusters)) if clusters else "",
        drift=write(drift_plot(reports)) if report.get("decay") else "",
        expectation=write(expectation_plot(expectations)) if expectations else "",
    )


def _family(report: Entry) -> str:
    sizes = {
        (cluster["family_id"], cluster["family_size"])
        for cluster in report["clusters"]
        if cluster["family_size"]
    }
    return ", ".join(f"{name} of {size}" for name, size in sorted(sizes))


def index_html(entries: Sequence[Entry], run: Entry | None = None) -> str:
    """The page, oldest report first, headed by the document of the run where there is one."""
    return render(
        "index.html",
        "Reports" if run is None else f"Reports of run {run['run_id']}",
        entries=entries,
        grades=GRADES,
        run=run,
    )
