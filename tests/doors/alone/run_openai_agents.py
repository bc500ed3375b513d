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
LIMITS = {"limits": {"max_notional": 10_000.0, "max_share_of_equity": None}}
STORE, STORES = "sqlite:///guard_{}.sqlite", list[int]()
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
    [shown] = outputs(await sdk.Runner.run(agent_of(guard, RIGHT), "buy"))
    assert (shown, sent) == ("the guard has a fault", []), (shown, sent)


async def order_is_checked_before_a_person_is_asked(guard):
    result = await sdk.Runner.run(agent_of(guard, TOO_LARGE, approval=True), "buy", run_config=BEFORE)
    assert not result.interruptions
    assert "quantity at most" in outputs(result)[0]


async def approved_order_is_sent_by_the_verdict_of_before(guard):
    agent = agent_of(guard, RIGHT, approval=True)
    state = await paused(agent)
    result = await sdk.Runner.run(agent, state, run_config=BEFORE)
    assert (outputs(result), sent) == (["accepted 1"], [10.0]), (outputs(result), sent)


async def approved_order_is_sent_by_another_process_by_that_verdict(guard):
    state = await paused(agent_of(guard, RIGHT, approval=True))
    with tt.guard(LIMITS, store=STORE.format(STORES[-1]), mode="enforce") as other:
        agent = agent_of(other, RIGHT, approval=True)
        later = await sdk.RunState.from_json(agent, state.to_json())
        result = await sdk.Runner.run(agent, later, run_config=BEFORE)
    assert (outputs(result), sent) == (["accepted 1"], [10.0]), (outputs(result), sent)


async def order_is_checked_with_the_defaults_of_its_tool(guard):
    @sdk.function_tool(tool_input_guardrails=[order_guardrail(guard)], strict_mode=False)
    def place_order(
        symbol: str, quantity: float, side: str = "buy", kind: str = "limit", price: float = 100.0,
        stop: float = 95.0,
    ) -> str:  # fmt: skip
        """Send an order to the broker."""
        sent.append(quantity)
        return f"accepted {len(sent)}"

    calls = [
        [script.function_call("place_order", {"symbol": "AAPL", "quantity": size}, call_id=f"call-{size}")]
        for size in (1_000.0, 10.0)
    ]
    model = script.ScriptedModel([*calls, [script.assistant_message("done")]])
    result = await sdk.Runner.run(sdk.Agent("trader", tools=[place_order], model=model), "buy")
    assert "quantity at most 100.0" in outputs(result)[0], outputs(result)
    assert sent == [10.0], outputs(result)


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
    [request] = result.interruptions
    state.approve(request)
    return state


async def main():
    sdk.set_tracing_disabled(True)
    for number, scenario in enumerate((
        refused_order_is_answered_and_the_right_one_is_sent,
        fault_lets_no_order_leave,
        order_is_checked_before_a_person_is_asked,
        approved_order_is_sent_by_the_verdict_of_before,
        approved_order_is_sent_by_another_process_by_that_verdict,
        order_is_checked_with_the_defaults_of_its_tool,
        approved_order_that_was_changed_is_not_sent,
    )):  # fmt: skip
        sent.clear()
        STORES.append(number)
        with tt.guard(LIMITS, store=STORE.format(number), mode="enforce") as guard:
            await scenario(guard)
        with sqlite3.connect(f"guard_{number}.sqlite") as store:
            kinds = [kind for (kind,) in store.execute("select kind from journal order by seq")]
        assert kinds.count("guard_spent") == len(sent), kinds
        print(scenario.__name__, ":", *kinds[1:])


asyncio.run(main())
