"""The guard in an agent of LangChain or a graph of LangGraph: `create_agent(..., middleware=[GuardOrders(...)])`.

The verdict is asked for and spent where the tool itself begins, so whatever other middleware does to the call
(edits it, repeats it) is done before.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain.tools.tool_node import ToolCallRequest
from langchain_core.messages import ToolMessage

from schemas.errors import OrderRefused
from thinktwice.doors.admission import Admission

if TYPE_CHECKING:
    from thinktwice.guarding import Guard


class GuardOrders(AgentMiddleware[Any, Any, Any]):
    """Lets tools that send orders run with those orders alone that the guard lets pass.

    Args:
        guard: that is asked.
        tools: such tools by name, with the argument of each field of an order that is not called like it.
        bars: the bars of a symbol, as `Guard.check` takes them.
    """

    def __init__(
        self, guard: "Guard", tools: Mapping[str, Mapping[str, str]], bars: Callable[[str], Any] | None = None
    ) -> None:
        super().__init__()
        self._doors = {name: Admission(guard, names, bars) for name, names in tools.items()}

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Run a tool; one that sends orders, behind the guard."""
        return handler(self._guarded(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """As `wrap_tool_call`."""
        return await handler(self._guarded(request))

    def _guarded(self, request: ToolCallRequest) -> ToolCallRequest:
        door = self._doors.get(request.tool_call["name"])
        guarded: Any = None if door is None else GuardedTool(request.tool, door)
        return request if guarded is None else request.override(tool=guarded)


class GuardedTool:
    """A tool that asks the guard when it is run; whatever else is asked of it is the tool's own."""

    def __init__(self, tool: Any, door: Admission) -> None:
        self._tool, self._door = tool, door

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    def invoke(self, call: Any, *more: Any, **given: Any) -> Any:
        """The tool's reply, or that of the guard."""
        return self._refuse(call) or self._tool.invoke(call, *more, **given)

    async def ainvoke(self, call: Any, *more: Any, **given: Any) -> Any:
        """As `invoke`."""
        return await asyncio.to_thread(self._refuse, call) or await self._tool.ainvoke(call, *more, **given)

    def _refuse(self, call: Any) -> ToolMessage | None:
        try:
            self._door.check(self._door.order_in(call["args"]), spend=True)
        except OrderRefused as refused:
            named = {"name": call["name"], "tool_call_id": call["id"]}
            return ToolMessage(str(refused), status="error", **named)
        return None
