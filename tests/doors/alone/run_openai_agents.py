"""Agents of the OpenAI Agents SDK before a broker that counts; run by `tools.try_doors` beside a wheel.

The SDK's package is called `agents`, as a room of a checkout is, so no test of the checkout can import both.
"""

import asyncio
import json
import sqlite3
from importlib import import_module
from typing import Any

import thinktwice as tt
from thinktwice.doors.openai_agents import order_guardrail, sdk

script: Any = import_module("agents.testing")
RIGHT = {"symbol": "AAPL", "side": "buy", "qty": 10.0, "kind": "limit", "price": 100.0, "stop": 95.0}
TOO_LARGE = {**RIGHT, "qty": 1_000.0}
BEFORE = sdk.RunConfig(tool_execution=sdk.ToolExecutionConfig(pre_approval_tool_input_guardrails=True))
sent: list[float] = []


def agent_of(guard, *orders, approval=False):
    """An agent whose model sends these orders, one after another, and stops."""

    @sdk.function_tool(
        tool_input_guardrails=[order_guardrail(guard, {"quantity": "qty"})], needs_approval=approval
    )
    def place_order(symbol: str, side: str, qty: float, kind: str, price: float, stop: float) -> str:
        """Send an order to the broker."""
        sent.append(qty)
        return f"accepted {len(sent)}"

    calls = [
        [script.function_call("place_order", order, call_id=f"call-{n}")] for n, order in enumerate(orders)
    ]
    model = script.ScriptedModel([*calls, [script.assistant_message("done")]])
    return sdk.Agent("trader", tools=[place_order], model=model)


def outputs(result):
    """What the model was told by the tool."""
    return [item.output for item in result.new_items if item.type == "tool_call_output_item"]


async def refused_order_is_answered_and_the_right_one_is_sent(guard):
    result = await sdk.Runner.run(agent_of(guard, TOO_LARGE, RIGHT), "buy")
    refused, passed = outputs(result)
    assert "quantity at most 100.0 would pass this check" in refused, refused
    assert (passed, sent) == ("accepted 1", [10.0]), (passed, sent)


async def fault_lets_no_order_leave(guard):
    def fail(*args, **given):
        raise RuntimeError("the guard has a fault")

    guard.check = fail
    [told] = outputs(await sdk.Runner.run(agent_of(guard, RIGHT), "buy"))
    assert (told, sent) == ("the guard has a fault", []), (told, sent)


async def order_is_checked_before_a_person_is_asked(guard):
    result = await sdk.Runner.run(agent_of(guard, TOO_LARGE, approval=True), "buy", run_config=BEFORE)
    assert not result.interruptions
    assert "quantity at most" in outputs(result)[0]


async def approved_order_is_sent_by_the_verdict_of_before(guard):
    agent = agent_of(guard, RIGHT, approval=True)
    state = await paused(agent)
    result = await sdk.Runner.run(agent, state, run_config=BEFORE)
    assert (outputs(result), sent) == (["accepted 1"], [10.0]), (outputs(result), sent)


async def approved_order_that_was_changed_is_not_sent(guard):
    agent = agent_of(guard, RIGHT, approval=True)
    state = await paused(agent)
    changed = json.loads(json.dumps(state.to_json()).replace("10.0", "99.0"))
    assert changed != state.to_json()
    try:
        await sdk.Runner.run(agent, await sdk.RunState.from_json(agent, changed), run_config=BEFORE)
    except sdk.ModelBehaviorError as refused:
        print("the SDK itself says:", refused)
    assert sent == [], sent


async def paused(agent):
    """The state of a run whose order a person has approved."""
    result = await sdk.Runner.run(agent, "buy", run_config=BEFORE)
    state = result.to_state()
    [asked] = result.interruptions
    state.approve(asked)
    return state


async def main():
    sdk.set_tracing_disabled(True)
    for number, scenario in enumerate((
        refused_order_is_answered_and_the_right_one_is_sent,
        fault_lets_no_order_leave,
        order_is_checked_before_a_person_is_asked,
        approved_order_is_sent_by_the_verdict_of_before,
        approved_order_that_was_changed_is_not_sent,
    )):  # fmt: skip
        sent.clear()
        limits = {"limits": {"max_notional": 10_000.0, "max_share_of_equity": None}}
        with tt.guard(limits, store=f"sqlite:///guard_{number}.sqlite", mode="enforce") as guard:
            await scenario(guard)
        with sqlite3.connect(f"guard_{number}.sqlite") as store:
            kinds = [kind for (kind,) in store.execute("select kind from journal order by seq")]
        assert kinds.count("guard_spent") == len(sent), kinds
        print(scenario.__name__, ":", *kinds[1:])


asyncio.run(main())
