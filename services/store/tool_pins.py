"""Pins of tools in a store: a definition that changed since it was accepted is told from the one that was."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from sqlalchemy import delete, select

from schemas.tool import ToolDefinition
from services.store.database_time import now_ms
from services.store.failures import MEND, StoreDamaged
from services.store.repository import Repository
from services.store.tables import tool_pins


class ToolPins(Repository):
    """The pins of one store."""

    async def pins_of(self, client: str) -> dict[str, ToolDefinition]:
        """The pinned definitions of a client's tools, by name.

        Raises:
            StoreDamaged: a pin is not what was written.
        """
        query = select(tool_pins).where(tool_pins.c.client == client).order_by(tool_pins.c.tool)
        async with self._read() as connection:
            rows = (await connection.execute(query)).all()
        found = {}
        for row in rows:
            try:
                definition = ToolDefinition.model_validate_json(row.definition)
            except ValidationError as error:
                raise self._describe_damage(client, row.tool) from error
            if definition.content_hash != row.hash:
                raise self._describe_damage(client, row.tool)
            found[row.tool] = definition
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

    def _describe_damage(self, client: str, tool: str) -> StoreDamaged:
        return StoreDamaged(f"store {self._url.text}: the pin of {client}.{tool} cannot be read; {MEND}")
