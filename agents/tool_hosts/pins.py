"""Where there is no store yet: nothing is pinned, and nothing can be."""

from collections.abc import Sequence

from schemas.errors import StoreError
from schemas.tool import ToolDefinition


class NoPins:
    """A book of pins that is empty and stays so."""

    async def pinned(self, client: str) -> dict[str, ToolDefinition]:
        """Nothing."""
        return {}

    async def pin(self, client: str, definitions: Sequence[ToolDefinition]) -> None:
        """Refuse.

        Raises:
            StoreError: always.
        """
        raise StoreError(f"definitions of {client} cannot be pinned: there is no store")
