"""The SDK's own client and server as programs, with `thinktwice guard -- COMMAND` between them."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.doors.brokers import rows
from tools.docs_pages import ROOT

BROKER = str(Path(__file__).with_name("broker_server.py"))
LIMITS = """
[limits]
max_notional = 10000.0
max_share_of_equity = 5.0

[proxy.orders.place_order]
symbol = "symbol"
side = "side"
quantity = "qty"
kind = "type"
price = "limit_price"
stop = "stop_loss"
client_order_id = "tag"
"""
RIGHT = {"symbol": "AAPL", "side": "buy", "qty": 10, "type": "limit", "limit_price": 100.0, "stop_loss": 95.0}


@pytest.fixture
def words(tmp_path):
    """How the proxy is started before the broker's server."""
    (tmp_path / "guard.toml").write_text(LIMITS, "utf-8")
    given = ["--limits", f"{tmp_path}/guard.toml", "--store", f"sqlite:///{tmp_path}/guard.sqlite"]
    broker = [sys.executable, BROKER, f"{tmp_path}/orders.jsonl"]
    return ["-m", "thinktwice", "guard", *given, "--mode", "enforce", "--", *broker]


@asynccontextmanager
async def client_of(words, mode):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = StdioServerParameters(command=sys.executable, args=words, env=environment)
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 - it waits for nothing
        async with Client(stdio_client(program, errlog=nowhere), mode=mode) as client:
            yield client


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_client_sees_the_same_tools_and_only_right_orders_reach_the_broker(words, tmp_path, mode):
    progress = []

    async def hear(*shown):
        progress.append(shown[0])

    async def scenario():
        async with client_of(words, mode) as client:
            listed = [
                (tool.name, tool.description, tool.input_schema) for tool in (await client.list_tools()).tools
            ]
            calls = [
                await client.call_tool("quote", {"symbol": "AAPL"}, progress_callback=hear),
                await client.call_tool("place_order", {**RIGHT, "qty": 1_000}),
                await client.call_tool("place_order", RIGHT),
                await client.call_tool("cancel_order", {}),
            ]
            return listed, [(call.is_error, call.content[0].text) for call in calls]

    listed, (quote, refused, passed, held) = asyncio.run(scenario())
    assert [name for name, _, _ in listed] == ["quote", "place_order", "cancel_order"]
    assert listed[1][1:] == (
        "Send an order.",
        {"type": "object", "properties": dict.fromkeys(RIGHT | {"tag": 0}, {})},
    )
    assert (quote, progress) == ((False, "777"), [0.5])
    assert refused[0]
    assert "quantity at most 100.0 would pass this check" in refused[1]
    assert passed == (False, "accepted")
    assert held[0]
    assert "proxy.unchecked" in held[1]
    [order] = (tmp_path / "orders.jsonl").read_text("utf-8").splitlines()
    verdict = rows(tmp_path / "guard.sqlite", "guard_spent")[0]["verdict_id"]
    assert json.loads(order) == {"tool": "place_order", **RIGHT, "tag": verdict}


def test_server_that_dies_ends_what_waits_with_what_to_look_at(words):
    async def scenario():
        async with client_of(words, "legacy") as client:
            await client.list_tools()
            with pytest.raises(
                MCPError, match="ended with code 3.*look at the broker before an order is sent"
            ):
                await client.call_tool("quote", {"symbol": "DEAD"})

    asyncio.run(scenario())


def test_proxy_of_a_server_that_is_gone_says_so_and_exits_with_one(words):
    gone = [*words[: words.index("--")], "--", sys.executable, "-c", "raise SystemExit(7)"]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen([sys.executable, *gone], cwd=ROOT, text=True, **pipes) as program:
        assert program.wait(60) == 1, "its client is still there"
        assert "ended with code 7: start it again" in program.communicate()[1]


def test_answer_over_the_bound_is_replaced_and_the_next_one_comes(words):
    async def scenario():
        async with client_of(words, "legacy") as client:
            await client.list_tools()
            with pytest.raises(MCPError, match="ask for less"):
                await client.call_tool("quote", {"size": 5 * 2**20})
            return await client.call_tool("quote", {"size": 4})

    assert asyncio.run(scenario()).content[0].text == "7777"
