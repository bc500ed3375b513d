"""`check_order` of a server that was started with a guard's limits, asked by the SDK's own client."""

import asyncio
import json
import os

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import thinktwice as tt
from tests.commands.started import thinktwice
from tests.doors.brokers import RIGHT, TOO_LARGE, rows
from tools.docs_pages import ROOT

ACCOUNT = {"equity": 100_000.0}


@pytest.fixture
def store(tmp_path):
    """A store that is there, and the limits beside it."""
    path = tmp_path / "guard.sqlite"
    (tmp_path / "guard.toml").write_text("[limits]\nmax_notional = 10000.0\n", "utf-8")
    tt.guard(store=f"sqlite:///{path}").close()
    return path


async def answers(store, options, calls):
    """Names of the tools of a server that is started with these options, and what each call brings."""
    words = ["mcp", "--db", f"sqlite:///{store}", *options]
    program = StdioServerParameters(
        command=thinktwice(), args=words, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: ASYNC230 - it waits for nothing
        async with Client(stdio_client(program, errlog=nowhere)) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            return tools, [await client.call_tool("check_order", call) for call in calls]


def test_server_with_limits_checks_orders_and_records_each_verdict(store):
    options = ["--limits", str(store.with_name("guard.toml")), "--mode", "enforce"]
    calls = [
        {"order": RIGHT, "account": ACCOUNT, "why": "it rose", "spend": True},
        {"order": TOO_LARGE, "account": ACCOUNT},
        {"order": {**RIGHT, "side": "hold"}},
    ]
    tools, (passed, refused, wrong) = asyncio.run(answers(store, options, calls))
    assert tools["check_order"].annotations.read_only_hint is False
    verdict = json.loads(passed.content[0].text)
    assert (verdict["send"], verdict["status"]) == (True, "pass")
    assert "quantity at most 100.0" in json.loads(refused.content[0].text)["reply"]
    assert wrong.is_error
    assert "check.order.side = 'hold'" in wrong.content[0].text
    checked = rows(store, "guard_verdict")
    assert [row["verdict"]["status"] for row in checked] == ["pass", "revise"]
    assert [row["verdict_id"] for row in rows(store, "guard_spent")] == [verdict["id"]]


def test_server_with_limits_makes_its_store_where_there_is_none(store):
    fresh = store.with_name("fresh.sqlite")
    options = ["--limits", str(store.with_name("guard.toml")), "--mode", "enforce"]
    _, [passed] = asyncio.run(answers(fresh, options, [{"order": RIGHT, "account": ACCOUNT, "spend": True}]))
    assert json.loads(passed.content[0].text)["send"] is True
    assert len(rows(fresh, "guard_spent")) == 1


def test_server_without_limits_has_no_such_tool_and_writes_nothing(store):
    tools, [reply] = asyncio.run(answers(store, [], [{"order": RIGHT}]))
    assert "check_order" not in tools
    assert "no tool 'check_order'" in reply.content[0].text
    assert rows(store, "guard_verdict") == []
