"""The rows that a judge's tools read: few kinds, read once, and answering as all rows of the run do."""

import json

import pytest

from services.evidence.tools import TOOLS, read_arguments
from services.evidence_tools.evidence_buffer import KINDS, EvidenceBuffer
from services.evidence_tools.run_view import RunRows, RunView
from services.journal.index import Event
from tests.worker.shared_runs import losing_run, losing_settings
from worker.review.evidence import OF_A_RUN

REQUESTED: dict[str, dict[str, object]] = {
    "trades": {"playbook_id": "buys_strength", "limit": 5},
    "gate": {"playbook_id": "buys_strength"},
    "playbooks": {"playbook_id": "buys_strength"},
}


def answers(view):
    return {
        name: OF_A_RUN[name](view, read_arguments(TOOLS[name], given)).payload()
        for name, given in REQUESTED.items()
    }


def moments():
    return [row for row in losing_run().rows if row.kind == "high_level_report"]


@pytest.fixture(scope="module")
def grown():
    """Answers at each report of a run that goes on, and the rows that were kept in the end."""
    kept, found = EvidenceBuffer(losing_settings()), {}
    for row in losing_run().rows:
        kept.add(row)
        if row.kind == "high_level_report":
            found[row.seq] = answers(kept.as_of(row.seq + 1, row.known_at))
    return kept, found


def test_few_rows_are_kept_and_of_reports_only_the_clusters(grown):
    kept, _ = grown
    assert {row.kind for row in kept.rows} <= KINDS
    assert len(kept.rows) < len(losing_run().rows) / 5
    for row in kept.rows:
        if row.kind == "high_level_report":
            assert json.loads(row.payload).keys() == {"report_id", "report"}
            assert json.loads(row.payload)["report"].keys() == {"clusters"}


def test_answers_of_a_run_that_goes_on_are_those_of_all_its_rows_up_to_then(grown):
    _, found = grown
    rows = RunRows()
    for row in losing_run().rows:
        rows.add(Event(row, json.loads(row.payload)))
        if row.seq in found:
            view = RunView("latest", rows.until(row.known_at), row.known_at, losing_settings())
            assert answers(view) == found[row.seq]
    assert len(found) > 10


def test_earlier_moment_is_answered_from_its_rows_alone(grown):
    kept, found = grown
    for row in moments():
        assert answers(kept.as_of(row.seq + 1, row.known_at)) == found[row.seq]


def test_rows_of_a_savepoint_answer_as_those_that_were_kept(grown):
    kept, found = grown
    half = len(kept.rows) // 2
    again = EvidenceBuffer(losing_settings())
    again.remember(kept.rows[:half])
    last = moments()[-1]
    for row in losing_run().rows:
        if row.seq > kept.rows[half - 1].seq:
            again.add(row)
    assert answers(again.as_of(last.seq + 1, last.known_at)) == found[last.seq]


def test_row_that_was_known_later_ends_what_is_read(grown):
    kept, _ = grown
    last = moments()[-1]
    earlier = moments()[0]
    view = kept.as_of(last.seq + 1, earlier.known_at)
    assert max(event.row.known_at for event in view.index.events) <= earlier.known_at
