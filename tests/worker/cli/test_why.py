import asyncio
import json

import pytest

from services.store import open_store
from tests.services.journal.decisions import ENTRY, EXIT, LEARNT, decision_rows
from tests.services.store.stores import new_run

DB = "sqlite:///thinktwice.db"


@pytest.fixture
def decided(shell):
    rows = decision_rows().rows

    async def store_rows():
        async with await open_store(DB, create=True) as store:
            run = await store.runs.create(new_run())
            await store.journal.append(run.run_id, rows)
            await store.runs.close(run.run_id, "finished", {})

    asyncio.run(store_rows())
    return shell


def test_why_prints_the_tree_from_the_fill_to_the_lesson(decided):
    result = decided.run("why", "latest", "fa")
    assert result.exit_code == 0
    for text in (
        f"entry_filled {ENTRY}",
        "bar of the fill",
        "tick event thesis_armed",
        "policy event",
        "finding stop_too_tight",
        "judge at the boundary",
        "playbook trend_pullback version 2",
        "from a report",
        "evidence episode",
        "graded significant",
    ):
        assert text in result.stdout
    assert "not found" not in result.stdout


def test_why_json_is_the_same_tree(decided):
    tree = json.loads(decided.run("why", "r0001", EXIT, "--json").stdout)
    assert (tree["kind"], tree["id"], tree["found"]) == ("exit_filled", EXIT, True)
    assert LEARNT in json.dumps(tree)


@pytest.mark.parametrize(
    ("fill", "part"), [("zz", "no fill 'zz'"), ("f", f"not unique in run r0001 ({ENTRY}, {EXIT}")]
)
def test_why_fill_that_is_not_one_says_how_to_find_fills(decided, fill, part):
    complaint = decided.complaint("why", "r0001", fill)
    assert part in complaint
    assert (
        "thinktwice journal r0001 --kind entry_filled --kind scale_out_filled --kind exit_filled" in complaint
    )
