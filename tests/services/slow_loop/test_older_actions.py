"""Actions stored when a life was counted in bars are read, and keep the ids under which they stand."""

import json

import pytest

from schemas.canonical import content_hash, content_id
from schemas.judge import JudgeAction, RefusedAction, ReplanVerdict

BASE = {
    "kind": "set_eligibility",
    "playbook_id": "first",
    "regime": "up/mid",
    "direction": None,
    "eligible": False,
    "parameter": None,
    "value": None,
    "ttl_bars": 252,
    "lowers_exposure": True,
    "reason": "it loses",
}
RAISED = BASE | {"kind": "set_threshold", "parameter": "side", "value": -1.0, "ttl_bars": None}
TRIED = RAISED | {"kind": "open_experiment", "ttl_bars": 756}
OLDER = pytest.mark.parametrize("stored", [BASE, RAISED, TRIED])


@OLDER
def test_action_of_an_older_document_is_read_and_keeps_its_payload_and_its_id(stored):
    read = JudgeAction.model_validate(json.loads(json.dumps(stored)))
    assert read.payload() == stored
    assert read.life_blocks is None
    assert read.content_hash == content_hash(stored)
    assert JudgeAction(**read.payload()).payload() == stored
    named = {"action": stored, "report_id": "r"}
    assert content_id({"action": read.payload(), "report_id": "r"}) == content_id(named)


@OLDER
def test_verdict_of_an_older_document_keeps_its_hash(stored):
    refused = {"action": stored, "code": "ttl_too_long", "reason": "ttl 252 bars is above the limit 100"}
    verdict = {
        "decision": "policy_adjust", "report_id": "r", "actions": [stored], "refused": [refused],
        "reason": "accepted", "evidence_ids": ["r"], "known_at": 5, "model": "rules", "prompt_hash": None,
        "fallback": None,
    }  # fmt: skip
    read = ReplanVerdict.model_validate(verdict)
    assert read.payload() == verdict
    assert read.content_hash == content_hash(verdict)
    assert RefusedAction.model_validate(refused).payload() == refused


@OLDER
def test_action_of_today_names_its_life_in_blocks_and_no_bars(stored):
    fields = {name: value for name, value in stored.items() if name != "ttl_bars"}
    made = JudgeAction(**fields, life_blocks=26)
    assert made.payload() == fields | {"life_blocks": 26}
    assert JudgeAction.model_validate(made.model_dump()).payload() == made.payload()
    assert JudgeAction.model_validate(made.payload()) == made


def test_ban_without_a_life_is_refused():
    with pytest.raises(ValueError, match="set_eligibility needs life_blocks"):
        JudgeAction(kind="set_eligibility", playbook_id="p", regime="up/mid", eligible=False, reason="x")
