"""Conversations: the last turns in order, bounded, deleted whole, told when damaged, on both dialects."""

import asyncio

import pytest
from sqlalchemy import update

from schemas.errors import StoreError
from services.store import open_store
from services.store.conversations import LONGEST_TURN, MOST_TURNS
from services.store.failures import StoreDamaged
from services.store.tables import conversation_turns


def test_last_turns_come_oldest_first_and_of_one_conversation_alone(address):
    async def scenario():
        async with await open_store(address, create=True) as store:
            for number in range(3):
                await store.conversations.keep("desk", f"q{number}", {"answer": "\u00e9", "n": number})
            await store.conversations.keep("other", "else", {})
        async with await open_store(address, create=False, read_only=True) as store:
            shown = store.conversations
            return await shown.last("desk", 2), await shown.last("desk", 0), await shown.last("none", 5)

    two, none, unknown = asyncio.run(scenario())
    assert [(turn.number, turn.question, turn.document) for turn in two] == [
        (2, "q1", {"answer": "\u00e9", "n": 1}),
        (3, "q2", {"answer": "\u00e9", "n": 2}),
    ]
    assert (none, unknown) == ((), ())


def test_conversation_is_bounded_and_forgotten_whole(address):
    async def scenario():
        async with await open_store(address, create=True) as store:
            for number in range(MOST_TURNS + 2):
                await store.conversations.keep("desk", str(number), {})
            await store.conversations.keep("other", "else", {})
            kept = await store.conversations.last("desk", 100)
            with pytest.raises(StoreError, match="a turn at most"):
                await store.conversations.keep("desk", "long", {"text": "x" * LONGEST_TURN})
            gone = await store.conversations.forget("desk"), await store.conversations.forget("desk")
            return kept, gone, await store.conversations.last("other", 1)

    kept, gone, other = asyncio.run(scenario())
    assert (len(kept), kept[0].question, kept[-1].number) == (MOST_TURNS, "2", MOST_TURNS + 2)
    assert gone == (MOST_TURNS, 0)
    assert len(other) == 1


@pytest.mark.parametrize("document", ["{", "[]"])
def test_turn_that_is_not_what_was_written_is_damage(address, document):
    async def scenario():
        async with await open_store(address, create=True) as store:
            await store.conversations.keep("desk", "q", {})
            async with store._engine.begin() as connection:
                await connection.execute(update(conversation_turns).values(document=document))
            await store.conversations.last("desk", 1)

    with pytest.raises(StoreDamaged, match="turn 1 of conversation 'desk' is damaged, it cannot be read"):
        asyncio.run(scenario())
