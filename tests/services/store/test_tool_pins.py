"""Pins of tools: kept apart by client, pinned anew, told when they are damaged, on both dialects."""

import asyncio

import pytest
from sqlalchemy import update

from schemas.tool import ToolDefinition
from services.store import open_store
from services.store.failures import StoreDamaged
from services.store.tables import tool_pins


def tool(name="quote", description="The price."):
    return ToolDefinition(
        name=name,
        description=description,
        input_schema={"type": "object", "properties": {"a": {"maximum": 0.5}}},
    )


def test_pins_are_kept_by_client_and_pinned_anew(address):
    async def scenario():
        async with await open_store(address, create=True) as store:
            await store.tool_pins.pin("desk", [tool(), tool("book")])
            await store.tool_pins.pin("feed", [tool(description="Another price.")])
            await store.tool_pins.pin("desk", [tool(description="The price, now.")])
        async with await open_store(address, create=False, read_only=True) as store:
            return await store.tool_pins.pins_of("desk"), await store.tool_pins.pins_of("feed")

    desk, feed = asyncio.run(scenario())
    assert desk == {"book": tool("book"), "quote": tool(description="The price, now.")}
    assert feed == {"quote": tool(description="Another price.")}


@pytest.mark.parametrize("damage", [{"hash": "0" * 64}, {"definition": "{}"}])
def test_pin_that_is_not_what_was_written_is_damage(address, damage):
    async def scenario():
        async with await open_store(address, create=True) as store:
            await store.tool_pins.pin("desk", [tool()])
            async with store._engine.begin() as connection:
                await connection.execute(update(tool_pins).values(damage))
            await store.tool_pins.pins_of("desk")

    with pytest.raises(StoreDamaged, match=r"the pin of desk\.quote is damaged, it cannot be read"):
        asyncio.run(scenario())
