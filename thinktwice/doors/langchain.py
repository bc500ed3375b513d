"""The guard in an agent of LangChain or a graph of LangGraph, asked where the tool itself begins."""

import asyncio
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import ToolMessage

from schemas.errors import ConfigError, OrderRefused, nearest
from thinktwice.doors.admission import Admission

if TYPE_CHECKING:
    from thinktwice.guarding import Guard


class GuardOrders(AgentMiddleware[Any, Any, Any]):
    """Lets tools run with those orders alone that pass; `tools` has the `names` of `Guard.orders` by tool."""

    def __init__(
        self, guard: "Guard", tools: Mapping[str, Mapping[str, str]], bars: Callable[[str], Any] | None = None
    ) -> None:
        super().__init__()
        self._guard = guard
        self._doors = {name: Admission(guard, names, bars) for name, names in tools.items()}

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Run a tool, or let it be awaited; one that sends orders, behind the guard."""
        door, known = self._doors.get(request.tool_call["name"]), getattr(request.runtime, "tools", ())
        names, problems = {tool.name for tool in known}, list[str]()
        if door is None:
            missing = {name: nearest(name, sorted(names)) for name in self._doors.keys() - names}
            problems = [f"no tool is called {name!r}.{guess}" for name, guess in missing.items() if guess]
        elif request.tool is None:
            problems = ["a tool that other middleware adds was called: list GuardOrders behind that one"]
        else:
            request = request.override(tool=GuardedTool(request.tool, door))
        for problem in problems:
            if self._guard.mode == "enforce":
                raise ConfigError(f"GuardOrders: {problem}")
            warnings.warn(f"GuardOrders: orders may go on unchecked: {problem}", stacklevel=2)
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """As `wrap_tool_call`."""
        return await self.wrap_tool_call(request, handler)


class GuardedTool:
    """A tool that asks the guard when it is run; whatever else is asked of it is the tool's own."""

    def __init__(self, tool: Any, door: Admission) -> None:
        self._tool, self._door = tool, door

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    def invoke(self, call: Any, *more: Any, **given: Any) -> Any:
        """What the tool answers, or the reply of the guard."""
        return self._refuse(call) or self._tool.invoke(call, *more, **given)

    async def ainvoke(self, call: Any, *more: Any, **given: Any) -> Any:
        """As `invoke`."""
        return await asyncio.to_thread(self._refuse, call) or await self._tool.ainvoke(call, *more, **given)

    def _refuse(self, call: Any) -> ToolMessage | None:
        try:
            with self._door.hold():
                self._door.admit(self._door.order_in(call["args"], self._tool.args))
        except OrderRefused as refused:
            return ToolMessage(str(refused), status="error", name=call["name"], tool_call_id=call["id"])
        return None
