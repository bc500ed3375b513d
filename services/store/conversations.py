"""Conversations in a store: the last turns of each, with what tools answered; no server is asked again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, select

from schemas.canonical import canonical_json
from schemas.errors import StoreError
from services.store.database_time import now_ms
from services.store.failures import MEND, StoreDamaged
from services.store.repository import Repository
from services.store.tables import conversation_turns as turns

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
        async with self._read() as connection:
            rows = (await connection.execute(query)).all()
        return tuple(self._turn(row) for row in reversed(rows))

    def _turn(self, row: Any) -> ConversationTurn:
        try:
            document = json.loads(row.document)
        except ValueError:
            document = None
        if not isinstance(document, dict):
            turn = f"turn {row.number} of conversation {row.name!r}"
            raise StoreDamaged(f"store {self._url.text}: {turn} cannot be read; {MEND}")
        return ConversationTurn(row.number, row.question, document)

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
