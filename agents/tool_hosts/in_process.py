"""The tools of this process: arguments are checked, answers are canonical JSON, failures are one sentence.

What went wrong inside stays inside: a reply holds no path, no address and no traceback.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from schemas.canonical import canonical_json
from schemas.errors import StoreError, ToolRefused, nearest
from schemas.tool import ToolDefinition, ToolReply
from services.evidence.tool_results import ToolResult
from services.evidence.tools import TOOLS, quote_value, read_arguments
from services.model_calls.quoting import visible, visible_json
from services.ports import ToolProgress

LOG = logging.getLogger("thinktwice.tools")
Handler = Callable[[Any, ToolProgress], Awaitable[ToolResult]]
STORE_FAILED = "the store cannot be read now: ask whoever runs the server to look at `thinktwice doctor`"
TOOL_FAILED = "the tool failed on this call: ask with other arguments, or ask whoever runs the server"


async def untold(progress: float, total: float | None, message: str | None) -> None:
    """Nobody asked how far it is."""


class InProcessTools:
    """The tools that have a handler.

    Args:
        handlers: by the name of the tool; each takes the checked arguments and who is told of progress.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = {name: handlers[name] for name in TOOLS if name in handlers}
        self._definitions = tuple(TOOLS[name].definition for name in self._handlers)

    async def tools(self) -> tuple[ToolDefinition, ...]:
        """Their definitions."""
        return self._definitions

    async def call(
        self, name: str, arguments: Mapping[str, Any], progress: ToolProgress | None = None
    ) -> ToolReply:
        """The answer of one tool."""
        try:
            result = await self._result(name, arguments, progress or untold)
        except ToolRefused as refused:
            return ToolReply(text=visible(str(refused)), is_error=True)
        except StoreError as error:
            LOG.warning("tool_store_failed", extra={"tool": name, "error": str(error)})
            return ToolReply(text=STORE_FAILED, is_error=True)
        except Exception:
            LOG.error("tool_failed", extra={"tool": name}, exc_info=True)
            return ToolReply(text=TOOL_FAILED, is_error=True)
        return ToolReply(text=visible_json(canonical_json(result.payload())))

    async def _result(self, name: str, arguments: Mapping[str, Any], progress: ToolProgress) -> ToolResult:
        if name not in self._handlers:
            known = list(self._handlers)
            raise ToolRefused(
                f"no tool {quote_value(name)}: there are {', '.join(known)}.{nearest(name, known)}"
            )
        return await self._handlers[name](read_arguments(TOOLS[name], arguments), progress)
