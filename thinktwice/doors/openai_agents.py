"""The guard before a tool of the OpenAI Agents SDK: `order_guardrail` is a tool input guardrail.

The SDK asks right before the tool runs and, with `pre_approval_tool_input_guardrails`, before a person is:
what was checked then is spent at the resume, and an order that was changed meanwhile is refused.
"""

import asyncio
import json
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
    door = Admission(guard, names or {}, bars)
    waiting: dict[str, Any] = {}  # orders that were checked before a person is asked, by the id of the call

    def admit(call: str, order: dict[str, Any], asks: bool, approved: bool) -> None:
        if waiting.get(call, order) != order and guard.mode == "enforce":
            raise OrderRefused("the order is another one than was checked for approval: send it as a new one")
        fields = {name: order[name] for name in order if name != "why"}
        found = guard.last_unspent(fields) if asks or approved else None
        if found is None:
            door.admit(order, spend=not asks)
        elif approved:
            guard.spend(found.id, fields)
        waiting.pop(call, None)
        if asks:
            waiting[call] = order

    async def answer(data: Any) -> Any:
        context, name = data.context, data.context.tool_name
        try:
            with door.hold():
                arguments = json.loads(context.tool_arguments)
                tools = [tool for tool in await data.agent.get_all_tools(context) if tool.name == name]
                schema = tools[0].params_json_schema if tools else {}
                approved = context.is_tool_approved(name, context.tool_call_id)
                execution = getattr(context.run_config, "tool_execution", None)
                asks = approved is None and getattr(execution, "pre_approval_tool_input_guardrails", False)
                if asks and callable(asks := bool(tools) and tools[0].needs_approval):
                    asks = await asks(context, arguments, context.tool_call_id)
                order = door.order_in(arguments, schema.get("properties"))
                await asyncio.to_thread(admit, context.tool_call_id, order, asks, bool(approved))
        except OrderRefused as refused:
            return sdk.ToolGuardrailFunctionOutput.reject_content(str(refused))
        return sdk.ToolGuardrailFunctionOutput.allow()

    return sdk.ToolInputGuardrail(answer, name="thinktwice_guard")
