import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from services.journal.index import Event, JournalIndex
from services.journal.lineage import LineageNode, trace
from tests.services.journal.decisions import (
    ENTRY,
    EXIT,
    FROM_FILE,
    LEARNT,
    ORDER,
    POLICY,
    PROPOSAL,
    REFLECTION,
    REPLAN,
    REPORT,
    SCALED,
    SNAPSHOT,
    VERDICT,
    decision_rows,
)
from tests.services.journal.rows import stream


def index_of(**changes) -> JournalIndex:
    return asyncio.run(JournalIndex.read(stream(decision_rows(**changes).rows)))


def traced(fill, **changes) -> LineageNode:
    index = index_of(**changes)
    (found,) = index.fills(fill)
    return trace(index, found)


def walk(node: LineageNode) -> Iterator[LineageNode]:
    yield node
    for child in node.children:
        yield from walk(child)


def test_lineage_tells_of_measures_that_were_renewed_before_the_plan_was_frozen():
    index = index_of()
    frozen = index.get("policy_frozen", POLICY)
    assert frozen is not None
    frozen_at = frozen.payload["policy"]["frozen_at"]
    payload = {"version_hash": LEARNT, "measure": "risk 0.0025", "since": 5, "until": 90, "shown": {"n": 3}}
    row = index.events[-1].row
    for at in (frozen_at, frozen_at + 1):
        index.add(Event(replace(row, kind="measure_renewed", known_at=at), payload | {"until": at + 90}))
    (found,) = index.fills(ENTRY)
    renewed = [node for node in walk(trace(index, found)) if node.kind == "measure_renewed"]
    assert [(node.title, node.facts["until"], node.facts["shown"]) for node in renewed] == [
        ("measure renewed", frozen_at + 90, {"n": 3})
    ]


def test_lineage_of_an_entry_reaches_every_artifact_behind_it():
    nodes = list(walk(traced(ENTRY)))
    assert all(node.found for node in nodes)
    assert {node.id for node in nodes} >= {
        ENTRY,
        ORDER,
        POLICY,
        SNAPSHOT,
        PROPOSAL,
        REFLECTION,
        VERDICT,
        LEARNT,
        REPORT,
        REPLAN,
        "epi1",
        "evt",
    }
    kinds = [node.kind for node in nodes]
    assert kinds.count("thesis_armed") == 1
    assert {"bar", "finding"} <= set(kinds)
    assert all(node.known_at is None or node.known_at <= 90 for node in nodes)


def test_lineage_of_an_exit_holds_its_entry_and_the_ticks_of_the_position():
    nodes = list(walk(traced(EXIT)))
    entry = next(node for node in nodes if node.kind == "entry_filled")
    assert entry.id == ENTRY
    assert [child.id for child in entry.children if child.kind == "order_accepted"] == [ORDER]
    assert "stop_breach" in {node.kind for node in nodes}
    assert all(node.found for node in nodes)


def test_lineage_playbook_from_a_file_says_so():
    playbook = next(
        node for node in walk(traced(ENTRY, playbook_hash=FROM_FILE)) if node.kind == "playbook_version"
    )
    assert (playbook.facts["origin"], playbook.children) == ("from file", ())


def test_lineage_memory_cases_of_the_reflection_are_named():
    reflection = next(node for node in walk(traced(ENTRY)) if node.kind == "policy_reflection")
    assert reflection.facts["memory_cases"] == ["epi1"]


@pytest.mark.parametrize(
    "kind",
    [
        "order_accepted",
        "policy_event",
        "policy_snapshot",
        "policy_proposal",
        "policy_reflection",
        "boundary_verdict",
        "policy_frozen",
        "high_level_report",
        "replan_verdict",
        "episode",
    ],
)
def test_lineage_missing_artifact_stays_in_the_tree_as_not_found(kind):
    missing = {node.kind for node in walk(traced(ENTRY, leave_out=kind)) if not node.found}
    assert kind in missing


@pytest.mark.parametrize(("prefix", "count"), [("fa", 1), ("f", 2), (ENTRY, 1), ("zz", 0), ("", 3)])
def test_lineage_fills_are_found_by_prefix(prefix, count):
    assert len(index_of().fills(prefix)) == count


def test_lineage_of_an_exit_shows_scale_outs_and_stop_moves_of_its_position():
    managed = [node for node in traced(EXIT).children if node.title.endswith("of the position")]
    kinds = [node.kind for node in walk(traced(EXIT))]
    assert (kinds.count("scale_out_filled"), kinds.count("stop_tightened")) == (1, 1)
    assert [(node.kind, node.id) for node in managed] == [
        ("entry_filled", ENTRY),
        ("scale_out_filled", SCALED),
        ("stop_tightened", None),
    ]
    assert managed[2].facts["by"] == "trail"
    assert [node.symbol for node in managed] == ["AAPL"] * 3


def test_lineage_of_a_scale_out_reaches_its_entry_and_shows_nothing_later():
    root = traced(SCALED)
    assert (root.kind, root.id) == ("scale_out_filled", SCALED)
    assert [node.id for node in root.children if node.title.endswith("of the position")] == [ENTRY]
    assert ORDER in {node.id for node in walk(root)}


def test_lineage_of_an_entry_shows_nothing_of_its_later_management():
    assert not [node for node in walk(traced(ENTRY)) if node.kind in ("scale_out_filled", "stop_tightened")]
