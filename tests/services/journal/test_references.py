import asyncio

import pytest

from services.journal.index import ID_FIELDS, JournalIndex
from services.journal.kinds import JOURNAL_KINDS
from services.journal.references import REFERENCES, check_references
from tests.services.journal.decisions import decision_rows
from tests.services.journal.rows import stream


def checked(*, finished=True, **changes):
    index = asyncio.run(JournalIndex.read(stream(decision_rows(**changes).rows)))
    return check_references(index, finished=finished)


def test_references_of_a_whole_decision_all_resolve():
    report = checked()
    assert (report.ok, report.dangling) == (True, ())
    assert report.checked > 20


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("policy_snapshot", "policy.snapshot_hash"),
        ("policy_reflection", "policy.reflection_hash"),
        ("boundary_verdict", "policy.verdict_hash"),
        ("policy_frozen", "policy_id"),
        ("order_accepted", "entry_order_id"),
        ("episode", "result.memory.losers.episode_id"),
        ("high_level_report", "report_id"),
        ("replan_verdict", "verdict_id"),
        ("playbook_version", "policy.playbook_hash"),
    ],
)
def test_references_to_an_artifact_that_is_not_there_are_named(kind, field):
    report = checked(leave_out=kind)
    assert not report.ok
    assert any(f": {field} " in line and line.endswith(f"names no {kind}") for line in report.dangling)


def test_references_of_the_last_moment_may_be_open_when_the_run_broke_off():
    assert not checked(leave_out="order_accepted").ok
    dangling = checked(leave_out="order_accepted", finished=False).dangling
    named = [line for line in dangling if "entry_order_id" in line]
    assert [line.split("(")[1].split(")")[0] for line in named] == ["scale_out_filled"]


def test_references_name_declared_kinds_that_have_an_id():
    targets = {target for fields in REFERENCES.values() for target in fields.values()}
    assert REFERENCES.keys() <= JOURNAL_KINDS
    assert targets <= ID_FIELDS.keys() | {"episode"}
