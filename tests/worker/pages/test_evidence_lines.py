"""What the judge read before its verdict is told by `why` and on the Markdown and HTML page of a report."""

import copy
import json

from services.journal.chain import JournalRow
from services.journal.index import Event, JournalIndex
from services.journal.lineage import _replan
from services.slow_loop.evidence_rows import evidence_line
from tests.worker.pages.reading import entries
from worker.pages.report_html import report_html
from worker.pages.report_markdown import report_markdown

SHOWN = {
    "playbook_id": "squeeze_breakout",
    "regime": "up/low",
    "kind": "open_<b>experiment</b>",
    "status": "gathered",
    "calls": [
        {"tool": "trades", "status": "ok", "ids": ["e1", "e2"]},
        {"tool": "gate", "status": "failed", "ids": []},
    ],
}
LINE = "of squeeze_breakout in up/low: trades (2 ids), gate (failed)"


def test_line_names_what_it_was_read_for_and_what_every_call_brought():
    assert evidence_line(SHOWN).endswith(LINE)
    assert evidence_line({**SHOWN, "calls": [], "status": "abstained"}).endswith("in up/low: abstained")


def event(seq, kind, payload):
    return Event(JournalRow(seq, 0, 0, kind, None, json.dumps(payload), None, "", ""), payload)


def test_chain_has_what_the_judge_read_below_its_verdict():
    index = JournalIndex()
    plan = {
        "evidence_id": "v1", "report_id": "r1", "question": "what?", "status": "gathered",
        "confidence": 0.9, "complete": True,
    }  # fmt: skip
    index.add(event(0, "evidence_plan", plan))
    index.add(event(1, "evidence_plan", {**plan, "evidence_id": "v2", "report_id": "r2"}))
    index.add(event(2, "evidence_call", {"evidence_id": "v1", "tool": "trades", "ids": ["e1", "e2"]}))
    index.add(
        event(3, "replan_verdict", {"verdict_id": "d1", "report_id": "r1", "verdict": {"report_id": "r1"}})
    )
    node = _replan(index, "d1")
    assert [(child.title, child.id) for child in node.children] == [("evidence for the judge", "v1")]
    assert node.children[0].facts["trades"] == ["e1", "e2"]


def test_markdown_and_html_page_have_the_line_with_foreign_text_escaped():
    judged = [item for item in entries() if item["verdict"] is not None]
    entry = copy.deepcopy(judged[-1]) | {"evidence": [SHOWN]}
    assert LINE in report_markdown(entry)
    html = report_html(entry)
    assert LINE in html
    assert "<b>experiment" not in html
    assert LINE not in report_html({**entry, "evidence": []})
    assert LINE not in report_markdown({**entry, "evidence": []})
