"""A broker's server over standard streams, which a test starts as a program; it writes down each order."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

ORDERS = Path(sys.argv[1])
SCHEMA = {
    "type": "object",
    "properties": {name: {} for name in ("symbol", "side", "qty", "type", "limit_price", "stop_loss", "tag")},
}
TOOLS = [
    types.Tool(
        name="quote", input_schema={"type": "object"}, annotations=types.ToolAnnotations(read_only_hint=True)
    ),
    types.Tool(name="place_order", description="Send an order.", input_schema=SCHEMA),
    types.Tool(name="cancel_order", input_schema={"type": "object"}),
]


def write_down(order: dict[str, Any]) -> None:
    with ORDERS.open("a", encoding="utf-8") as written:
        written.write(json.dumps(order) + "\n")


async def listed(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=TOOLS)


async def called(context: Any, params: Any) -> types.CallToolResult:
    arguments = params.arguments or {}
    if params.name == "quote" and arguments.get("symbol") == "DEAD":
        os._exit(3)
    if params.name == "quote":
        await context.session.report_progress(0.5)
        return types.CallToolResult(content=[types.TextContent(text="7" * arguments.get("size", 3))])
    write_down({"tool": params.name, **arguments})
    return types.CallToolResult(content=[types.TextContent(text="accepted")])


async def main() -> None:
    server = Server("broker", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
