"""Rows of a report's statements: looked up in the run as of the report, in all places that show one."""

import json
from functools import cache
from typing import Any

from schemas.settings import Settings
from services.evidence import tool_arguments
from services.evidence_tools.lesson_answers import reports
from services.evidence_tools.report_rows import sections_with_rows
from services.evidence_tools.run_view import RunView
from services.journal.index import Event, JournalIndex
from tests.worker.shared_runs import embedded_run


@cache
def index() -> JournalIndex:
    made = JournalIndex()
    for row in embedded_run().rows:
        made.add(Event(row, json.loads(row.payload)))
    return made


def demand_rows(sections: list[dict[str, Any]], known_at: int) -> None:
    """Every statement has rows that the run has, and none that was not known then."""
    stored = {row.seq: row for row in embedded_run().rows}
    statements = [statement for part in sections for statement in part["statements"]]
    assert statements
    for statement in statements:
        assert statement["rows"], statement["text"]
        for named in statement["rows"]:
            assert stored[named["seq"]].kind == named["kind"]
            assert stored[named["seq"]].known_at <= known_at


def test_statements_of_every_report_have_rows_of_their_run():
    for event in index().of_kind("high_level_report"):
        report = event.payload["report"]
        demand_rows(sections_with_rows(report, index()), report["known_at"])


def test_statements_that_an_mcp_answer_shows_have_rows():
    event = index().of_kind("high_level_report")[1]
    view = RunView("r", index(), embedded_run().rows[-1].known_at, Settings())
    found = reports(view, tool_arguments.ReportArguments(report_id=event.payload["report_id"]))
    content = found.reports[0].content
    assert content is not None
    demand_rows(content["sections"], event.payload["report"]["known_at"])


def test_statement_that_does_not_hold_has_no_rows():
    event = index().of_kind("high_level_report")[0]
    claim = {"kind": "sign", "measure": "worst_r", "of": {}, "sign": "positive"}
    lie = {"topic": "window", "statements": [{"claim": claim, "text": "All won."}], "comment": None}
    (part,) = sections_with_rows({**event.payload["report"], "sections": [lie]}, index())
    assert part["statements"][0]["rows"] == []
