"""One high-level report as a Markdown page that a trader reads; the JSON beside it holds everything.

Whatever was written by a model or a strategist is text there and nothing else: no tag, link, picture or
heading of its own.
"""

import re
from html import escape
from typing import Any

from services.high_level.report_lines import ledger_line
from services.model_calls.quoting import count_noun, visible
from services.slow_loop.evidence_rows import evidence_line
from worker.pages.forest_plot import shown_clusters
from worker.pages.rendering import render_markdown
from worker.pages.report_tables import PageTable, Row, rates_of, report_tables

# What starts a heading, table, fence, rule, underlined heading or link target when it opens a line.
BLOCK = re.compile(r"^(\s*)(#|\||=|```|~~~|--|\*\s*\*|_\s*_|\[)", re.MULTILINE)
WAITING = re.compile(r"in a (day|week|month|quarter) that is not complete")  # said of several as well
LINK = re.compile(r"\](?=[(\[:])")


def report_markdown(entry: dict[str, Any]) -> str:
    """The page of one journalled report `{report_id, report, verdict, evidence}`."""
    report = entry["report"]
    page = render_markdown(
        "report.md",
        entry=entry,
        report=report,
        tables=report_tables(report, shown_clusters(report["clusters"])),
        rates=rates_of(report["clusters"]),
        sections=report["sections"],
        ledger=ledger_line(report),
        read=[evidence_line(shown) for shown in entry.get("evidence", ())],
        **{made.__name__.lstrip("_"): made for made in (_cells, _line, _prose, count_noun)},
    )
    return WAITING.sub(r"in \1s that do not count yet", page)


def _cells(table: PageTable, row: Row) -> str:
    return " | ".join(_line(column.text(row)).replace("|", "\\|") for column in table.columns)


def _prose(text: str, *, one_line: bool = False) -> str:
    return BLOCK.sub(r"\1\\\2", _harmless(visible(text.replace("\n", " ") if one_line else text, lines=True)))


def _line(text: str) -> str:
    return _harmless(visible(text.replace("\n", " ")))


def _harmless(text: str) -> str:
    # A backslash comes first: one of the text's own would take the effect of those that follow.
    return LINK.sub(r"\\]", escape(text.replace("\\", "\\\\"), quote=False))
