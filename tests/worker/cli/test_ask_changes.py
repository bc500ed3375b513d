"""A change that `thinktwice ask` is given: a plan that waits where a model reads it, else asked back."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from schemas.settings import Settings
from tests.agents.language_models.wire_server import answer, events, message, stream
from tests.worker.cli.test_ask_conversations import read_requests
from tests.worker.wire import wire
from worker.review.change_answers import asks_for_change

MODEL = """
[reflection]
mode = "full"
[llm]
model = "anthropic/claude-test"
attempts = 1
prices = [{ model = "claude-test", input_usd = 1.0, output_usd = 5.0 }]
"""
TEXT = "Before you start, show me a plan: cut what buys_strength risks."
ACTION = {"kind": "set_risk_fraction", "playbook_id": "buys_strength", "value": 0.002}
WILD = "please rewrite every playbook and deploy all of it to production"


@pytest.fixture
def modelled(planted, monkeypatch):
    """A shell in which a model reads each text as less risk."""
    (planted.folder / "model.toml").write_text(MODEL, "utf-8")
    reply = json.dumps({"reasoning": "less risk", "actions": [ACTION]})
    with wire(monkeypatch, answer(message(reply)), stream(events(reply))):
        yield planted


def plans_of(shell):
    return json.loads(shell.run("plans", "list", "--json").stdout)


def test_change_becomes_a_plan_that_waits_and_nothing_happens(modelled):
    before = modelled.run("playbooks", "list", "--json").stdout
    payload = read_requests(modelled, TEXT, "--config", "model.toml", code=4)
    assert (payload["status"], payload["tool_calls"]) == ("plan", [])
    assert payload["two_phase"]["should_use"]
    assert payload["reasoning"] == "less risk"
    shown = json.loads(modelled.run("plans", "show", payload["plan_id"], "--json").stdout)
    assert (shown["state"], shown["steps"][0]["action"]["value"]) == ("awaiting_approval", 0.002)
    assert "to the folder 'r0001-playbooks', and nothing before" in payload["answer"]
    assert not (modelled.folder / "r0001-playbooks").exists()
    assert modelled.run("playbooks", "list", "--json").stdout == before
    approved = modelled.run(
        "plans", "approve", payload["plan_id"], "--hash", shown["hash"][:12], "--by", "ann"
    )
    assert approved.exit_code == 0, approved.output
    assert (modelled.folder / "r0001-playbooks" / "buys_strength.toml").exists()
    again = read_requests(modelled, TEXT, "--config", "model.toml", code=4)
    assert "r0001-playbooks-2" in again["answer"], "what was written before is not written over"


def test_folder_of_a_plan_may_be_named(modelled):
    payload = read_requests(modelled, TEXT, "--config", "model.toml", "--into", "mine", code=4)
    assert "'mine'" in payload["answer"]


def test_text_of_plans_make_is_read_by_the_model_of_its_config(modelled):
    words = ("plans", "make", "text", TEXT, "--into", "books", "--config", "model.toml", "--json")
    plan = json.loads(modelled.run(*words).stdout)
    assert (plan["steps"][0]["action"]["value"], plan["reasoning"]) == (0.002, "less risk")
    assert plan["steps"][0]["action"]["reason"] == TEXT


def test_change_without_a_model_is_asked_back_with_the_typed_commands_and_no_plan(planted):
    before = plans_of(planted)
    payload = read_requests(planted, WILD, code=3)
    assert payload["two_phase"]["should_use"]
    assert "give --config FILE" in payload["clarification"]
    assert "set-risk-fraction" in payload["clarification"]
    assert plans_of(planted) == before


def test_change_is_of_now(planted):
    assert "--at looks back, and a change is of now" in planted.complaint("ask", WILD, "--at", "2022-01-10")


@pytest.mark.parametrize(
    ("text", "is_change"),
    [
        (WILD, True),
        (f"{WILD}?", False),
        (f"{WILD}? ", False),
        ("what did the judge change?", False),
        (TEXT, True),
    ],
)
def test_text_that_ends_with_a_question_mark_asks_for_no_change(text, is_change):
    record: Any = SimpleNamespace(mode="backtest", status="finished")
    found, statement = asks_for_change(text, record, Settings())
    assert (found.should_use, statement) == (is_change, text if is_change else None)
