"""The guard before a tool of the OpenAI Agents SDK: `order_guardrail` is a tool input guardrail.

The SDK asks right before the tool runs and, with `pre_approval_tool_input_guardrails`, before a person is:
what was checked then is spent at the resume, and an order that was changed meanwhile is refused.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError, OrderRefused
from thinktwice.doors.admission import Admission

if TYPE_CHECKING:
    from thinktwice.guarding import Guard

sdk: Any = import_module("agents")
if not hasattr(sdk, "ToolInputGuardrail"):
    raise ConfigError(f"{sdk.__file__} is not the SDK: pip install 'thinktwice[openai-agents]', from a wheel")


def order_guardrail(
    guard: "Guard", names: Mapping[str, str] | None = None, bars: Callable[[str], Any] | None = None
) -> Any:
    """A guardrail of a tool that sends orders: `names` and `bars` as of `Guard.orders`."""
    door, waiting = (
        Admission(guard, names or {}, bars),
        dict[str, Any](),
    )  # for a person, by the id of the call

    def admit(call: str, order: Any, approvable: bool) -> None:
        checked, verdict = waiting.pop(call, (order, None))
        if checked != order:
            raise OrderRefused("the order is another one than was checked for approval: send it as a new one")
        if approvable:
            waiting[call] = order, door.admit(order, spend=False)
        elif verdict is not None and verdict.expires_at > time.time_ns():
            guard.spend(verdict.id, {name: order[name] for name in order if name != "why"})
        else:
            door.admit(order)

    async def answer(data: Any) -> Any:
        try:
            order = door.order_in(json.loads(data.context.tool_arguments))
            await asyncio.to_thread(admit, data.context.tool_call_id, order, await _is_approvable(data))
        except (OrderRefused, ValueError) as refused:
            return sdk.ToolGuardrailFunctionOutput.reject_content(str(refused))
        return sdk.ToolGuardrailFunctionOutput.allow()

    return sdk.ToolInputGuardrail(answer, name="thinktwice_guard")


async def _is_approvable(data: Any) -> bool:
    """Whether a person is asked next, so that nothing is sent now."""
    context, name, call = data.context, data.context.tool_name, data.context.tool_call_id
    execution = getattr(context.run_config, "tool_execution", None)
    before = getattr(execution, "pre_approval_tool_input_guardrails", False)
    if not before or context.is_tool_approved(name, call) is not None:
        return False
    tools = {tool.name: tool for tool in await data.agent.get_all_tools(context)}
    needs = tools[name].needs_approval
    return (
        needs if isinstance(needs, bool) else await needs(context, json.loads(context.tool_arguments), call)
    )
