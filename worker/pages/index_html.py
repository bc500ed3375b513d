"""The list of all reports of a run: what each recommended, and what the judge said."""

from collections.abc import Sequence

from worker.pages.figures import shown_time
from worker.pages.layout import Cell, page, table, value
from worker.pages.markup import tag
from worker.pages.report_html import Entry
from worker.pages.shapes import GRADES

HEAD = ("known at", "trades", "strongest grade", "recommended", "judge", "also as")


def index_html(entries: Sequence[Entry]) -> str:
    """The page, oldest report first."""
    listing = table("Reports, oldest first", HEAD, [_row(entry) for entry in entries], ["trades"])
    nothing = tag("p", "No report: the slow loop never had both its time and its batch.")
    return page("Reports", tag("h1", "High-level reflections of this run"), listing if entries else nothing)


def _row(entry: Entry) -> list[Cell]:
    report, name = entry["report"], entry["report_id"]
    grades = {one["grade"] for one in report["clusters"]}
    return [
        tag("a", shown_time(report["known_at"]), href=f"{name}.html"),
        value(report["n_episodes"], f"{report['n_episodes']:,d}"),
        next((grade for grade in reversed(GRADES) if grade in grades), "none"),
        report["recommended_action"],
        "none yet" if entry["verdict"] is None else entry["verdict"]["decision"],
        tag("span", tag("a", "Markdown", href=f"{name}.md"), " ", tag("a", "JSON", href=f"{name}.json")),
    ]
