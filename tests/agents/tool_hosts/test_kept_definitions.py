"""Definitions of a server are kept for a time: its restart, its silence and its changes meanwhile."""

import asyncio
import json
import logging
from typing import Any

import mcp_types as types
import pytest
from mcp.server.lowlevel import Server

from agents.planning.tool_listing import tool_listing
from agents.tool_hosts.kept_definitions import KeptDefinitions
from agents.tool_hosts.mcp import McpTools
from schemas.errors import StoreError
from schemas.settings.planner import PlannerSettings
from schemas.tool import ToolDefinition
from tests.agents.tool_hosts.test_tools_of_other_servers import ORDER, Book, read_text, tool

HOUR = PlannerSettings().schema_ttl_s


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Desk:
    """A server whose offer can be changed while it runs; listings are counted."""

    def __init__(self, *tools, answer=read_text):
        self.tools, self.listings, self.answer = list(tools) or [tool()], 0, answer
        self.waits: asyncio.Event | None = None
        self.fails = False

    async def listed(self, context, params):
        self.listings += 1
        if self.waits is not None:
            await self.waits.wait()
        if self.fails:
            raise RuntimeError("secret")
        return types.ListToolsResult(tools=self.tools)

    async def called(self, context, params):
        return await self.answer(params)

    def server(self):
        return Server("desk", on_list_tools=self.listed, on_call_tool=self.called)


def with_desk(desk, work, book=None, **given):
    clock = Clock()

    async def scenario():
        given_to: Any = {"deadline_s": 2.0, "now_s": clock} | given
        async with McpTools("desk", desk.server(), Book() if book is None else book, **given_to) as host:
            return await work(host, clock)

    return asyncio.run(scenario())


async def settled():
    """Let what runs behind come to its end."""
    for _ in range(200):
        await asyncio.sleep(0.001)


async def names(host):
    return [definition.name for definition in await host.tools()]


def test_definitions_are_read_once_an_hour_and_the_old_are_served_while_they_are_read_anew():
    desk = Desk(tool())

    async def work(host, clock):
        for _ in range(5):
            assert await names(host) == ["quote"]
        await host.call("quote", {})
        assert desk.listings == 1
        clock.now = HOUR - 1
        assert await names(host) == ["quote"]
        await settled()
        assert desk.listings == 1
        desk.tools.append(tool("book"))
        desk.waits = asyncio.Event()
        clock.now = HOUR
        assert await names(host) == ["quote"], "stale, and served at once"
        assert await names(host) == ["quote"]
        await settled()
        assert desk.listings == 2, "one reading at a time"
        desk.waits.set()
        await settled()
        assert await names(host) == ["quote", "book"]
        assert desk.listings == 2

    with_desk(desk, work)


def test_time_of_zero_reads_definitions_each_time():
    desk = Desk(tool())

    async def work(host, clock):
        assert await names(host) == ["quote"]
        desk.tools.append(tool("book"))
        assert await names(host) == ["quote", "book"]
        assert desk.listings == 2

    with_desk(desk, work, ttl_s=0)


@pytest.mark.parametrize("ttl_s", [0, HOUR])
def test_reading_that_fails_keeps_the_old_with_a_warning(ttl_s, caplog):
    desk = Desk(tool())

    async def work(host, clock):
        assert await names(host) == ["quote"]
        desk.fails, clock.now = True, HOUR
        assert await names(host) == ["quote"]
        await settled()
        assert await names(host) == ["quote"]
        desk.fails = False
        desk.tools.append(tool("book"))
        await settled()
        await names(host)
        await settled()
        assert await names(host) == ["quote", "book"], "and it is tried again"

    with caplog.at_level(logging.WARNING):
        with_desk(desk, work, ttl_s=ttl_s)
    assert "tool_definitions_kept" in caplog.text


def test_server_that_hangs_at_its_second_listing_keeps_the_old_and_ends_with_the_connection(caplog):
    desk = Desk(tool())

    async def work(host, clock):
        assert await names(host) == ["quote"]
        desk.waits, clock.now = asyncio.Event(), HOUR
        assert await names(host) == ["quote"]
        await settled()

    with_desk(desk, work, deadline_s=60.0)


def test_definition_that_changes_between_two_readings_is_refused_until_it_is_accepted(caplog):
    desk, book = Desk(tool(), tool("book")), Book()

    async def work(host, clock):
        assert await names(host) == ["quote", "book"]
        desk.tools[0] = tool(description=ORDER)
        clock.now = HOUR
        await names(host)
        await settled()
        assert await names(host) == ["book"]
        refused = await host.call("quote", {})
        assert "changed since it was pinned" in refused.text
        assert "sell_everything" not in json.dumps(tool_listing({"desk": await host.tools()}))
        await host.accept()
        assert await names(host) == ["quote", "book"]
        assert not (await host.call("quote", {})).is_error

    with caplog.at_level(logging.WARNING):
        with_desk(desk, work, book)
    assert "tools_changed_since_pinned" in caplog.text


def test_server_that_broke_off_is_read_again_before_its_next_use(monkeypatch):
    desk = Desk(tool())

    async def work(host, clock):
        assert await names(host) == ["quote"]
        desk.tools = [tool(), tool("book")]

        async def breaks(*_, **__):
            raise ConnectionResetError

        with monkeypatch.context() as patched:
            patched.setattr(type(host), "_call", staticmethod(breaks))
            reply = await host.call("quote", {})
        assert "broke off" in reply.text
        assert await names(host) == ["quote", "book"], "no hour is waited for"
        assert desk.listings == 2

    with_desk(desk, work)


def test_orders_pages_without_end_and_giant_definitions_reach_no_listing_whole(caplog):
    async def listed(context, params):
        at = int(params.cursor) if params is not None and params.cursor else 0
        giant = tool(f"t{at}", description=ORDER * 400)
        flood = tool(f"g{at}", description="x" * (10_000_000 if at == 0 else 70_000))
        return types.ListToolsResult(tools=[giant, flood], next_cursor=str(at + 1))

    async def work():
        async with McpTools("desk", Server("desk", on_list_tools=listed), Book()) as host:
            return tool_listing({"desk": await host.tools()})

    listing = asyncio.run(work())
    assert len(listing) == 50
    assert all(len(row["description"]) == 100 and row["description"].isprintable() for row in listing)
    (cut,) = [record for record in caplog.records if record.message == "tool_pages_cut"]
    assert (cut.server, cut.pages, cut.tools) == ("desk", 50, 50)


def test_tools_beyond_the_most_of_a_server_are_told_of(caplog):
    async def listed(context, params):
        return types.ListToolsResult(tools=[tool(f"t{number}") for number in range(503)])

    async def work():
        async with McpTools("desk", Server("desk", on_list_tools=listed), Book()) as host:
            return await host.tools()

    assert len(asyncio.run(work())) == 500
    (cut,) = [record for record in caplog.records if record.message == "tools_cut"]
    assert (cut.server, cut.left_out) == ("desk", 3)


def test_first_reading_that_cannot_pin_says_so_and_a_later_one_keeps_the_old(caplog):
    readings: list[object] = [StoreError("locked"), (), StoreError("locked")]
    definition = ToolDefinition(name="quote", description="", input_schema={"type": "object"})
    readings[1] = (definition,)
    clock = Clock()

    async def look():
        found = readings.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def work():
        kept = KeptDefinitions("desk", look, ttl_s=10, now_s=clock)
        with pytest.raises(StoreError, match="locked"):
            await kept.read()
        assert await kept.last_read() == (definition,)
        clock.now = 10
        assert await kept.read() == (definition,)
        await settled()
        assert await kept.last_read() == (definition,)
        await kept.close()

    with caplog.at_level(logging.WARNING):
        asyncio.run(work())
    assert "tool_definitions_kept" in caplog.text
    assert readings == []


def test_readers_at_one_time_wait_for_one_reading():
    desk = Desk(tool())

    async def work(host, clock):
        found = await asyncio.gather(*(names(host) for _ in range(8)))
        assert found == [["quote"]] * 8
        assert desk.listings == 1

    with_desk(desk, work)
