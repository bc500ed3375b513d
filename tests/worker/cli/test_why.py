import asyncio
import json
from dataclasses import asdict

import pytest

from services.journal.index import FILL_KINDS, Event, JournalIndex
from services.journal.lineage import trace, trace_move
from services.store import journal_repository, open_store
from tests.services.journal.decisions import ENTRY, EXIT, LEARNT, decision_rows
from tests.services.store.stores import new_run
from tests.worker.shared_runs import slice_run
from tests.worker.test_amendments_in_a_session import ON_A_GRID, halfway, tightening
from tests.worker.test_session_wires import finished, payloads, session

DB = "sqlite:///thinktwice.db"


def stored(rows):
    async def store_rows():
        async with await open_store(DB, create=True) as store:
            run = await store.runs.create(new_run())
            await store.journal.append(run.run_id, rows)
            await store.runs.close(run.run_id, "finished", {})

    asyncio.run(store_rows())


@pytest.fixture
def decided(shell):
    stored(decision_rows().rows)
    return shell


def test_why_prints_the_tree_from_the_fill_to_the_lesson(decided):
    result = decided.run("why", "fa")
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


REMARK = "\x1b[2J[red]Wait for it.\u202e"
SEEN = r"model's comment, not checked: \x1b[2J[red]Wait for it.\u202e"


@pytest.mark.parametrize("kind", ["policy_proposal", "policy_reflection", "replan_verdict"])
def test_why_shows_the_comment_of_a_model_once_marked_and_escaped(shell, kind):
    stored(decision_rows(comments={kind: REMARK}).rows)
    result = shell.run("why", ENTRY)
    assert result.exit_code == 0
    assert result.stdout.count(SEEN) == result.stdout.count("not checked") == 1
    assert result.stdout.replace("\n", "").isprintable()
    assert SEEN not in shell.run("ask", "why", ENTRY).stdout, "tools answer models, too"


def test_journal_line_marks_and_escapes_the_comment_of_a_plan(shell):
    stored(decision_rows(comments={"policy_proposal": REMARK}).rows)
    assert SEEN in shell.run("journal", "latest", "--kind", "policy_proposal").stdout


def test_why_json_is_the_same_tree(decided):
    tree = json.loads(decided.run("why", EXIT, "--run", "r0001", "--json").stdout)
    assert (tree["kind"], tree["id"], tree["found"]) == ("exit_filled", EXIT, True)
    assert LEARNT in json.dumps(tree)


@pytest.mark.parametrize(
    ("fill", "part"), [("zz", "no fill 'zz'"), ("f", f"not unique in run r0001 ({ENTRY}, {EXIT}")]
)
def test_why_fill_that_is_not_one_says_how_to_find_fills(decided, fill, part):
    complaint = decided.complaint("why", fill, "--run", "r0001")
    assert part in complaint
    kinds = ("entry_filled", "add_filled", "scale_out_filled", "exit_filled", "stop_tightened")
    assert f"thinktwice journal r0001 {' '.join(f'--kind {kind}' for kind in kinds)}" in complaint


def test_why_of_an_amended_stop_says_what_moved_from_where_to_where_and_what_let_it(shell):
    made = session(ON_A_GRID, ("2003-01-01", "2003-12-31"))
    tightening(made, halfway)
    rows = finished(made)
    stored(rows)
    moves = [payload for payload in payloads(rows, "stop_tightened") if payload.get("amendment_id")]
    amended = {payload["amendment_id"]: payload["amended"] for payload in payloads(rows, "policy_amended")}
    (clamp,) = [
        payload
        for payload in payloads(rows, "proposal_clamped")
        if payload["proposal_hash"] == amended[moves[0]["amendment_id"]]["amendment_hash"]
    ]
    shown = shell.run("why", moves[0]["amendment_id"][:12])
    assert shown.exit_code == 0
    for text in (
        f"stop_tightened {moves[0]['amendment_id']}",
        f"stop_before {moves[0]['stop_before']:g}",
        f"stop {moves[0]['stop']:g}",
        "entry of the position",
        f"amendment_hash {clamp['proposal_hash']}",
        "clamp of stop",
        f"asked {clamp['asked']:g}",
        "status pass",
        "findings none",
        "decision approve",
        f"frozen policy  {moves[0]['policy_id']}",
    ):
        assert text in shown.stdout, text
    assert "not found" not in shown.stdout
    tree = json.loads(shell.run("why", moves[-1]["amendment_id"], "--json").stdout)
    assert (tree["kind"], tree["id"]) == ("stop_tightened", moves[-1]["amendment_id"])


def test_why_of_any_fill_says_what_the_whole_journal_says_and_reads_few_rows_of_it(shell, monkeypatch):
    rows, read = slice_run().rows, []
    stored(rows)
    index = JournalIndex()
    for row in rows:
        index.add(Event(row, json.loads(row.payload)))
    expected = {
        event.payload["fill_id"]: trace(index, event) for kind in FILL_KINDS for event in index.of_kind(kind)
    }
    for event in index.of_kind("stop_tightened"):
        if event.payload.get("amendment_id"):
            expected[event.payload["amendment_id"]] = trace_move(index, event)
    stored_page = journal_repository.stored_page

    async def counted(*given, **rest):
        read.append(len(page := await stored_page(*given, **rest)))
        return page

    monkeypatch.setattr(journal_repository, "stored_page", counted)
    fills = list(expected)
    assert len(fills) > 100
    for fill in [*fills[::12], *fills[-3:]]:
        read.clear()
        shown = shell.run("why", fill, "--json")
        assert json.loads(shown.stdout) == json.loads(json.dumps(asdict(expected[fill])))
        assert sum(read) < len(rows) / 20, "a why-chain is of few rows"


def test_why_of_a_fill_with_a_part_that_is_not_there_says_what_the_whole_journal_says(shell):
    stored(decision_rows(leave_out="policy_reflection").rows)
    shown = shell.run("why", ENTRY)
    assert "not found in the journal" in shown.stdout


def test_why_names_what_was_pruned_and_what_is_missing_apart(decided):
    done = json.loads(decided.run("db", "prune", "latest", "--before", "2100-01-01", "--json").stdout)
    assert done["rows"] > 0
    shown = json.loads(decided.run("why", "fa", "--json").stdout)
    lost = [node for node in nodes_of(shown) if not node["found"]]
    assert {"policy_snapshot", "policy_proposal", "policy_reflection"} <= {node["kind"] for node in lost}
    assert all(node["pruned"] for node in lost)
    lines = decided.run("why", "fa").stdout.splitlines()
    assert any("snapshot" in line and line.endswith("pruned") for line in lines)
    assert not any("not found" in line for line in lines)


def nodes_of(node):
    yield node
    for child in node["children"]:
        yield from nodes_of(child)
