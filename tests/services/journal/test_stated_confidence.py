"""Stated confidence is read from the rows of a run by their ids, and nothing damaged is counted."""

import json

import pytest

from schemas.errors import StoreError
from services.journal.chain import JournalRow
from services.journal.index import Event, JournalIndex
from services.journal.stated_confidence import stated_confidence


def index_of(*rows):
    index = JournalIndex()
    for seq, (kind, payload) in enumerate(rows):
        row = JournalRow(
            seq=seq,
            ts_event=0,
            known_at=0,
            kind=kind,
            symbol=None,
            payload=json.dumps(payload),
            telemetry=None,
            prev_hash="",
            hash="",
        )
        index.add(Event(row, payload))
    return index


def frozen(policy_id, conviction):
    return "policy_frozen", {"policy_id": policy_id, "policy": {"proposal": {"conviction": conviction}}}


def episode(number, policy_id, r, **more):
    payload = {"episode_id": f"e{number}", "policy_id": policy_id, "r": r, **more}
    return "episode", {"episode_id": f"e{number}", "episode": payload}


def deliberation(*critiques):
    return "deliberation", {"deliberation_id": "d", "critiques": list(critiques)}


def critique(**changes):
    given = {"critic": "model", "source": "model", "confidence": 0.8, "verdict": "revise", "agreed": True}
    return given | changes


def labels(*rows):
    return {
        entry.name: list(zip(entry.forecasts, entry.outcomes, strict=True))
        for entry in stated_confidence(index_of(*rows))
    }


def test_conviction_of_an_episode_is_that_of_the_policy_that_opened_it():
    found = labels(
        frozen("a", 0.3),
        frozen("b", 0.6),
        episode(1, "b", 0.01, conviction=0.9),
        frozen("c", 0.7),
        episode(2, "a", -1.0),
        episode(3, "b", 0.0),
    )
    assert found == {"conviction": [(0.6, True), (0.3, False), (0.6, False)], "critic": []}


def test_confidence_of_model_critics_is_held_against_the_verdict_of_rules():
    found = labels(
        deliberation(
            critique(),
            critique(confidence=0.6, agreed=False),
            critique(source="rule", confidence=1.0),
            critique(agreed=None),
            critique(confidence=None),
            critique(overall=0.9, verdict="accept"),
            critique(overall=None, confidence=0.7),
        ),
        deliberation(),
        deliberation(critique(confidence=0)),
    )
    assert found == {"conviction": [], "critic": [(0.8, True), (0.6, False), (0.7, True), (0.0, True)]}


def test_run_without_rows_has_every_source_without_labels():
    assert labels() == {"conviction": [], "critic": []}


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (episode(1, "gone", 1.0), r"row 1 \(episode\) names policy 'gone', which the run does not have"),
        (episode(1, "a", "much"), r"row 1 \(episode\) is not what was written"),
        (episode(1, "high", 1.0), r"row 1 \(episode\) is not what was written"),
        (("deliberation", {}), r"row 1 \(deliberation\) is not what was written"),
        (deliberation(critique(confidence=80)), r"row 1 \(deliberation\) is not what was written"),
        (deliberation(critique(confidence="sure")), r"row 1 \(deliberation\) is not what was written"),
        (deliberation({"source": "model"}), r"row 1 \(deliberation\) is not what was written"),
    ],
)
def test_row_that_says_no_confidence_is_named(row, problem):
    first = frozen("high", 1.5) if "high" in json.dumps(row[1]) else frozen("a", 0.5)
    with pytest.raises(StoreError, match=f"{problem}.*thinktwice verify"):
        labels(first, row)
