"""The guardrail of the OpenAI Agents SDK, asked as the SDK asks it.

The SDK's package has the name of a room, so the types here stand in for it; `make doors-check` runs the same
with the real one.
"""

import asyncio
import importlib
import json
import sys
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

import thinktwice as tt
from tests.doors.brokers import LIMITS, RIGHT, TOO_LARGE, fail, rows

NAME = "thinktwice.doors.openai_agents"
BEFORE = SimpleNamespace(tool_execution=SimpleNamespace(pre_approval_tool_input_guardrails=True))


@dataclass
class Output:
    """As of the SDK: what a guardrail decided."""

    message: str | None = None

    @classmethod
    def allow(cls):
        return cls()

    @classmethod
    def reject_content(cls, message):
        return cls(message)


@dataclass
class Guardrail:
    """As of the SDK."""

    function: Any
    name: str


@dataclass
class Context:
    """As of the SDK: one call of a tool."""

    tool_arguments: str
    tool_call_id: str = "call-1"
    approved: bool | None = None
    run_config: Any = None
    tool_name = "place_order"

    def is_tool_approved(self, name, call):
        return self.approved


@pytest.fixture
def door(monkeypatch):
    sdk = SimpleNamespace(ToolInputGuardrail=Guardrail, ToolGuardrailFunctionOutput=Output)
    monkeypatch.setitem(sys.modules, "agents", sdk)
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    yield importlib.import_module(NAME)
    sys.modules.pop(NAME, None)


def ask(guardrail, order, schema=None, **given):
    """What the SDK would tell the model; None where the tool may run."""

    async def needs_approval(context, arguments, call):
        return True

    async def all_tools(context):
        tool = {"needs_approval": needs_approval, "params_json_schema": {"properties": schema or {}}}
        return [SimpleNamespace(name="web_search"), SimpleNamespace(name="place_order", **tool)]

    data = SimpleNamespace(
        context=Context(json.dumps(order), **given), agent=SimpleNamespace(get_all_tools=all_tools)
    )
    return asyncio.run(guardrail.function(data)).message


def test_call_of_a_tool_is_checked_and_spent_right_before_it_runs(door, guard, store):
    guardrail = door.order_guardrail(guard, {"quantity": "qty"})
    assert ask(guardrail, {**RIGHT, "qty": RIGHT["quantity"]}) is None
    assert len(rows(store, "guard_spent")) == 1
    text = ask(guardrail, {**TOO_LARGE, "qty": TOO_LARGE["quantity"]}, tool_call_id="call-2")
    assert "quantity at most 100.0" in text
    assert len(rows(store, "guard_spent")) == 1


def test_call_is_refused_where_the_guard_fails_or_its_arguments_are_no_json(door, guard, monkeypatch):
    guardrail = door.order_guardrail(guard)
    data = SimpleNamespace(context=Context("{"), agent=None)
    assert "Expecting" in asyncio.run(guardrail.function(data)).message
    monkeypatch.setattr(guard, "check", fail)
    assert ask(guardrail, RIGHT) == "the guard has a fault"


def test_approved_order_is_sent_by_the_verdict_that_it_had_before(door, guard, store):
    guardrail = door.order_guardrail(guard)
    assert ask(guardrail, RIGHT, run_config=BEFORE) is None
    assert rows(store, "guard_spent") == []
    assert ask(guardrail, RIGHT, run_config=BEFORE, approved=True) is None
    assert len(rows(store, "guard_verdict")) == len(rows(store, "guard_spent")) == 1


def test_approved_order_that_was_changed_is_refused_at_the_resume(door, guard, store):
    guardrail = door.order_guardrail(guard)
    assert ask(guardrail, RIGHT, run_config=BEFORE) is None
    text = ask(guardrail, {**RIGHT, "quantity": 11.0}, run_config=BEFORE, approved=True)
    assert text is not None
    assert "another one than was checked for approval" in text
    assert rows(store, "guard_spent") == []


def test_approved_order_that_was_changed_is_checked_and_goes_on_in_mode_shadow(door, shadow, store):
    guardrail = door.order_guardrail(shadow)
    assert ask(guardrail, RIGHT, run_config=BEFORE) is None
    assert ask(guardrail, TOO_LARGE, run_config=BEFORE, approved=True) is None
    checked, [spent] = rows(store, "guard_verdict"), rows(store, "guard_spent")
    assert [row["verdict"]["status"] for row in checked] == ["pass", "revise"]
    assert spent["order_hash"] == checked[1]["verdict"]["order_hash"]


def test_approved_order_is_sent_by_another_process_by_the_verdict_that_it_had_before(door, guard, store):
    assert ask(door.order_guardrail(guard), RIGHT, run_config=BEFORE) is None
    with tt.guard(LIMITS, store=f"sqlite:///{store}", mode="enforce") as other:
        assert ask(door.order_guardrail(other), RIGHT, run_config=BEFORE, approved=True) is None
    [checked], [spent] = rows(store, "guard_verdict"), rows(store, "guard_spent")
    assert (spent["verdict_id"], spent["problem"]) == (checked["verdict"]["id"], None)
    shown = ask(door.order_guardrail(guard), RIGHT, run_config=BEFORE, approved=True, tool_call_id="call-2")
    assert "duplicate_order" in shown, "a verdict is spent once"


def test_order_that_waits_for_a_person_is_no_duplicate_of_itself(door, guard, store):
    guardrail = door.order_guardrail(guard)
    assert ask(guardrail, RIGHT, run_config=BEFORE) is None
    assert ask(guardrail, RIGHT, run_config=BEFORE) is None
    assert len(rows(store, "guard_verdict")) == 1


def test_call_is_checked_with_the_defaults_of_its_tool(door, guard):
    usual = {"kind": {"default": "limit"}, "price": {"default": 100.0}, "stop": {"default": 95.0}}
    short = {"symbol": "AAPL", "side": "buy"}
    usual |= dict.fromkeys((*short, "quantity"), {})
    text = ask(door.order_guardrail(guard), {**short, "quantity": 1_000.0}, schema=usual)
    assert "quantity at most 100.0" in text
    assert ask(door.order_guardrail(guard), {**short, "quantity": 10.0}, schema=usual) is None


def test_argument_that_the_tool_does_not_have_does_not_count(door, guard):
    schema: dict[str, Any] = dict.fromkeys(("symbol", "side", "quantity"), {})
    shown = ask(door.order_guardrail(guard), {**RIGHT, "reduce_only": True}, schema=schema)
    assert "missing_stop" in shown


def test_call_whose_arguments_have_no_names_is_refused_and_goes_on_in_mode_shadow(door, guard, store):
    assert ask(door.order_guardrail(guard), [RIGHT]).startswith("arguments [{'symbol'")
    with (
        tt.guard(LIMITS, store=f"sqlite:///{store}", mode="shadow") as shadow,
        pytest.warns(UserWarning, match="an order went on unchecked: arguments"),
    ):
        assert ask(door.order_guardrail(shadow), [RIGHT]) is None


def test_package_of_that_name_that_is_not_the_sdk_is_refused_with_what_to_install(monkeypatch):
    monkeypatch.delitem(sys.modules, NAME, raising=False)
    with pytest.raises(tt.ConfigError, match=r"is not the SDK: pip install 'thinktwice\[openai-agents\]'"):
        importlib.import_module(NAME)
