"""Which calls can be made: arguments held to what the tool takes, and two that are one."""

import pytest

from agents.planning.call_check import call_key, checked_plan
from schemas.evidence_plan import PlannedCall
from schemas.settings.planner import OWN
from tests.agents.planning.fakes import OWN_TOOLS, own, plan, tool

FIELDS = {
    "symbol": {"type": "string"},
    "depth": {"type": "integer"},
    "share": {"type": ["number", "null"]},
    "side": {"enum": ["bid", "ask"]},
    "odd": {"type": "decimal", "pattern": "(a+)+$", "$ref": "http://elsewhere/schema"},
}
BOOK = tool("book", properties=FIELDS, required=["symbol"])
OPEN = tool("open", properties=FIELDS, additionalProperties=True)
LYING = tool("lying", properties=["symbol"], required="symbol", additionalProperties=None)
TOOLS = {"venue": (BOOK, OPEN, LYING), OWN: OWN_TOOLS}


def reason_of(method, params):
    checked = checked_plan(plan(PlannedCall(client="venue", method=method, params=params)), TOOLS, [])
    return checked.dropped[0].reason if checked.dropped else None


@pytest.mark.parametrize(
    ("params", "reason"),
    [
        ({"symbol": "IBM"}, None),
        ({"symbol": "IBM", "depth": 5, "share": None, "side": "bid"}, None),
        ({"symbol": "IBM", "depth": 5.0, "share": 1}, None),
        ({"symbol": "IBM", "odd": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}, None),
        ({}, "it needs 'symbol': give it"),
        ({"symbol": 5}, "'symbol' is 5: give string"),
        ({"symbol": "IBM", "depth": "5"}, "'depth' is '5': give integer"),
        ({"symbol": "IBM", "depth": 5.5}, "'depth' is 5.5: give integer"),
        ({"symbol": "IBM", "depth": True}, "'depth' is True: give integer"),
        ({"symbol": "IBM", "share": "x"}, "'share' is 'x': give number or null"),
        ({"symbol": "IBM", "side": "mid"}, "'side' is 'mid': give one of ['bid', 'ask']"),
        ({"symbol": "IBM", "dept": 5}, "it has no argument 'dept'. Did you mean 'depth'?"),
    ],
)
def test_arguments_of_another_servers_tool_are_held_to_its_schema(params, reason):
    assert reason_of("book", params) == reason


def test_open_schema_takes_what_it_does_not_name():
    assert reason_of("open", {"more": 1}) is None


def test_schema_that_lies_about_its_form_takes_nothing_and_breaks_nothing():
    assert reason_of("lying", {}) is None
    assert reason_of("lying", {"symbol": "IBM"}) == "it has no argument 'symbol'."


def test_same_call_is_the_same_whatever_the_order_and_with_its_defaults_written_out():
    spelled = {"run": "latest", "limit": 20, "symbol": "IBM"}
    assert call_key(OWN, "trades", {"symbol": "IBM"}) == call_key(OWN, "trades", spelled)
    assert call_key(OWN, "trades", {"symbol": "IBM"}) != call_key(OWN, "trades", {"symbol": "MSFT"})
    assert call_key("a", "look", {"x": 1, "y": 2}) == call_key("a", "look", {"y": 2, "x": 1})
    assert call_key("a", "look", {}) != call_key("b", "look", {})


def test_call_that_was_made_or_is_planned_twice_is_dropped():
    made = [call_key(OWN, "reports", {})]
    checked = checked_plan(plan(own("reports"), own("trades"), own("trades", limit=20)), TOOLS, made)
    assert [call.method for call in checked.tools] == ["trades"]
    assert [entry.method for entry in checked.dropped] == ["reports", "trades"]


def test_arguments_that_are_no_json_are_dropped():
    assert reason_of("open", {"more": float("nan")}) == "its arguments are no JSON"
    assert reason_of("open", {"more": object()}) == "its arguments are no JSON"
