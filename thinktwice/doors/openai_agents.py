"""The guard before a tool of the OpenAI Agents SDK: `function_tool(tool_input_guardrails=[order_guardrail(guard)])`.

The SDK asks a guardrail right before the tool runs and, with `pre_approval_tool_input_guardrails`, once before a
person is asked to approve. What was checked then is spent at the resume: an order changed meanwhile is refused.
"""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from schemas.errors import ConfigError, OrderRefused
from schemas.guard import Verdict
from thinktwice.doors.admission import Admission

if TYPE_CHECKING:
    from thinktwice.guarding import Guard

sdk: Any = import_module("agents")
if not hasattr(sdk, "ToolInputGuardrail"):
    raise ConfigError(f"{sdk.__file__} is not the SDK: pip install 'thinktwice[openai-agents]', from a wheel")


def order_guardrail(
    guard: "Guard", names: Mapping[str, str] | None = None, bars: Callable[[str], Any] | None = None
) -> Any:
    """A tool input guardrail for a tool that sends orders; a refused one is answered with the reply.

    Args:
        guard: that is asked.
        names: argument of each field of an order that is not called like it.
        bars: the bars of a symbol, as `Guard.check` takes them.
    """
    door = Admission(guard, names or {}, bars)
    waiting: dict[str, tuple[Any, Verdict | None]] = {}  # for a person, by the id of the call

    def check_order(call: str, order: Any, approvable: bool) -> None:
        checked, verdict = waiting.pop(call, (order, None))
        if checked != order:
            raise OrderRefused("the order is another one than was checked for approval: send it as a new one")
        if approvable:
            waiting[call] = order, door.check(order)
        elif verdict is not None and verdict.expires_at > time.time_ns():
            guard.spend(verdict.id, order)
        else:
            door.check(order, spend=True)

    async def answer(data: Any) -> Any:
        context = data.context
        try:
            order = door.order_in(json.loads(context.tool_arguments))
            approvable = await _is_approvable(data)
            await asyncio.to_thread(check_order, context.tool_call_id, order, approvable)
        except (OrderRefused, ValueError) as refused:
            return sdk.ToolGuardrailFunctionOutput.reject_content(str(refused))
        return sdk.ToolGuardrailFunctionOutput.allow()

    return sdk.ToolInputGuardrail(answer, name="thinktwice_guard")


async def _is_approvable(data: Any) -> bool:
    """Whether a person is asked next, so that nothing is sent now."""
    context = data.context
    execution = getattr(context.run_config, "tool_execution", None)
    if execution is None or not execution.pre_approval_tool_input_guardrails:
        return False
    if context.is_tool_approved(context.tool_name, context.tool_call_id) is not None:
        return False
    for tool in await data.agent.get_all_tools(context):
        if tool.name == context.tool_name and not isinstance(tool.needs_approval, bool):
            return await tool.needs_approval(context, json.loads(context.tool_arguments), context.tool_call_id)
        if tool.name == context.tool_name:
            return tool.needs_approval
    return False
