"""A server over standard streams that ends when a tool is called; a test starts it as a program."""

import os
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def listed(context: Any, params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name="quote", input_schema={"type": "object"})])


async def called(context: Any, params: Any) -> types.CallToolResult:
    os._exit(3)


async def main() -> None:
    server = Server("desk", on_list_tools=listed, on_call_tool=called)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
