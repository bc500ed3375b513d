"""Conversations with the planner: their last turns, and the definitions of tools that were accepted.

No server is asked again for what its tools answered. A definition that changed since it was accepted is
found by its pin.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select

from schemas.canonical import canonical_json
from schemas.errors import StoreError
from schemas.tool import ToolDefinition
from services.store.database_time import now_ms
from services.store.failures import readable
from services.store.repository import Repository
from services.store.tables import conversation_turns as turns
from services.store.tables import tool_pins

MOST_TURNS = 50  # of a conversation; older ones are forgotten
LONGEST_TURN = 4_000_000


@dataclass(frozen=True)
class ConversationTurn:
    """One question of a conversation, and the document of its answer."""

    number: int
    question: str
    document: Mapping[str, Any]


class Conversations(Repository):
    """The conversations of one store."""

    async def last(self, name: str, most: int) -> tuple[ConversationTurn, ...]:
        """The last turns of a conversation, at most so many, oldest first.

        Raises:
            StoreDamaged: a turn is not what was written.
        """
        if most == 0:
            return ()
        query = select(turns).where(turns.c.name == name).order_by(turns.c.number.desc()).limit(most)
        return tuple(self._turn(row) for row in reversed((await self._select(query)).all()))

    async def newest(self, most: int) -> list[Mapping[str, Any]]:
        """The documents of the newest turns of all conversations, newest first.

        Raises:
            StoreDamaged: a turn is not what was written.
        """
        query = (
            select(turns).order_by(turns.c.asked_ms.desc(), turns.c.name, turns.c.number.desc()).limit(most)
        )
        return [self._turn(row).document for row in (await self._select(query)).all()]

    def _turn(self, row: Any) -> ConversationTurn:
        with readable(f"store {self._url.text}: turn {row.number} of conversation {row.name!r}"):
            return ConversationTurn(row.number, row.question, {**json.loads(row.document)})

    async def keep(self, name: str, question: str, document: Mapping[str, Any]) -> int:
        """Keep a turn, and forget those beyond the last 50; its number.

        Raises:
            StoreError: the store cannot be written, or the turn is too long.
        """
        text = canonical_json(document)
        if len(text) > LONGEST_TURN:
            raise StoreError(f"the answer has {len(text):,} characters, a turn at most {LONGEST_TURN:,}")
        own = turns.c.name == name
        async with self._write() as connection:
            newest = await connection.scalar(select(func.max(turns.c.number)).where(own))
            number = (newest or 0) + 1
            row: dict[str, Any] = {"name": name, "number": number, "question": question, "document": text}
            await connection.execute(turns.insert().values(asked_ms=now_ms(self._url.dialect), **row))
            await connection.execute(delete(turns).where(own & (turns.c.number <= number - MOST_TURNS)))
        return number

    async def forget(self, name: str) -> int:
        """Delete a conversation; how many turns it had."""
        async with self._write() as connection:
            return int((await connection.execute(delete(turns).where(turns.c.name == name))).rowcount)


class ToolPins(Repository):
    """The pins of one store."""

    async def pins_of(self, client: str) -> dict[str, ToolDefinition]:
        """The pinned definitions of a client's tools, by name.

        Raises:
            StoreDamaged: a pin is not what was written.
        """
        query = select(tool_pins).where(tool_pins.c.client == client).order_by(tool_pins.c.tool)
        found = {}
        for row in await self._select(query):
            with readable(f"store {self._url.text}: the pin of {client}.{row.tool}"):
                definition = found[row.tool] = ToolDefinition.model_validate_json(row.definition)
                if definition.content_hash != row.hash:
                    raise ValueError("its definition is not that of its hash")
        return found

    async def pin(self, client: str, definitions: Sequence[ToolDefinition]) -> None:
        """Hold on to these definitions; a tool that was pinned before is pinned anew.

        Raises:
            StoreError: the store cannot be written.
        """
        async with self._write() as connection:
            for item in definitions:
                own = (tool_pins.c.client == client) & (tool_pins.c.tool == item.name)
                await connection.execute(delete(tool_pins).where(own))
                row: dict[str, Any] = {"client": client, "tool": item.name, "hash": item.content_hash}
                row |= {"definition": item.canonical_text(), "pinned_ms": now_ms(self._url.dialect)}
                await connection.execute(tool_pins.insert().values(row))
