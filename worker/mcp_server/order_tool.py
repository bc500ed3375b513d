"""`check_order` beside the tools that read: a guard's verdict on an order, journalled before it is told."""

from collections.abc import Mapping
from typing import Any

from agents.tool_hosts.in_process import STORE_FAILED
from schemas.canonical import canonical_json
from schemas.errors import OperatorError, StoreError
from schemas.guard import OrderCheck
from schemas.tool import ToolDefinition, ToolReply
from services.model_calls.quoting import visible, visible_json
from services.ports import ToolHost, ToolProgress
from worker.operations.order_checks import OrderChecks

CHECK_ORDER = ToolDefinition(
    name="check_order",
    description="Whether an order may be sent, and what would pass instead; the verdict is recorded.",
    input_schema=OrderCheck.model_json_schema(),
    reads_only=False,
)


class WithOrderChecks:
    """The tools of a host and `check_order`."""

    def __init__(self, host: ToolHost, checks: OrderChecks) -> None:
        self._host, self._checks = host, checks

    async def tools(self) -> tuple[ToolDefinition, ...]:
        """Their definitions."""
        return (*await self._host.tools(), CHECK_ORDER)

    async def call(
        self, name: str, arguments: Mapping[str, Any], progress: ToolProgress | None = None
    ) -> ToolReply:
        """The answer of one tool."""
        if name != CHECK_ORDER.name:
            return await self._host.call(name, arguments, progress)
        try:
            return ToolReply(text=visible_json(canonical_json(await self._checks.check(dict(arguments)))))
        except OperatorError as error:
            return ToolReply(text=visible(str(error)), is_error=True)
        except StoreError:
            return ToolReply(text=STORE_FAILED, is_error=True)
