"""What earlier calls brought, a line each, as whoever plans next is shown it."""

import json

from agents.planning.summaries import MOST_SUMMARIES, summaries
from schemas.evidence_plan import EvidenceCall
from schemas.tool import ToolReply


def call(number, method, document=None, error=None):
    reply = ToolReply(text=json.dumps(document)) if error is None else ToolReply(text=error, is_error=True)
    return EvidenceCall(id=f"c{number}", client="us", method=method, params={}, iteration=1, reply=reply)


def test_line_tells_success_items_and_three_names_or_the_error_cut():
    trades = [{"symbol": f"S{n}", "playbook_id": "mean_reversion"} for n in (1, 2, 1, 3, 4)]
    lines = summaries(
        [
            call(1, "trades", {"rows": [1, 2], "trades": trades}),
            call(2, "gate", {"resolved": 5}),
            call(3, "look", {"first": [1], "items": [{"symbol": "X"}]}),
            call(4, "reports", error="x" * 60),
        ]
    )
    assert lines == (
        "c1 us.trades: SUCCESS (5 items; symbols: S1, S2, S3; playbooks: mean_reversion)",
        "c2 us.gate: SUCCESS",
        "c3 us.look: SUCCESS (1 item; symbols: X)",
        f"c4 us.reports: ERROR ({'x' * 50})",
    )


def test_five_lines_at_most_are_those_of_the_last_calls():
    lines = summaries([call(number, "look", {}) for number in range(1, 10)])
    assert len(lines) == MOST_SUMMARIES
    assert [line[:2] for line in lines] == ["c5", "c6", "c7", "c8", "c9"]


def test_names_of_others_are_cut_made_visible_and_never_anything_but_text():
    names = [{"symbol": "\u202e\n" + "x" * 100}, {"symbol": 5}, {"symbol": None}, "no object"]
    (line,) = summaries([call(1, "look", {"items": names})])
    assert line == "c1 us.look: SUCCESS (4 items; symbols: \\u202e\\n" + "x" * 32 + ")"
