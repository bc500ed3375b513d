"""Definitions of tools that are kept for a time, then read anew while the old ones are still served.

The first reading is waited for, and so is the one after a server broke off: it may come back as another. A
reading that fails leaves what was read before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from schemas.errors import StoreError
from schemas.tool import ToolDefinition

LOG = logging.getLogger("thinktwice.tools")
Definitions = tuple[ToolDefinition, ...]


class KeptDefinitions:
    """The definitions of one server.

    Args:
        server: its name, for warnings.
        look: reads them; None where the server does not say.
        ttl_s: how long they are good; 0: they are read each time.
        now_s: a clock that only runs forward.
    """

    def __init__(
        self,
        server: str,
        look: Callable[[], Awaitable[Definitions | None]],
        *,
        ttl_s: float,
        now_s: Callable[[], float],
    ) -> None:
        self._server, self._look, self._ttl_s, self._now_s = server, look, ttl_s, now_s
        self._kept: Definitions | None = None
        self._read_at: float | None = None
        self._reading: asyncio.Task[Exception | None] | None = None

    async def read(self) -> Definitions | None:
        """The definitions; None where none could ever be read."""
        if self._kept is None or self._read_at is None or self._ttl_s == 0:
            failed = await asyncio.shield(self._begin())
            if failed is not None and self._kept is None:
                raise failed
        elif self._now_s() - self._read_at >= self._ttl_s:
            self._begin()
        return self._kept

    async def last_read(self) -> Definitions | None:
        """The definitions without a reading, where there was one."""
        return self._kept if self._kept is not None else await self.read()

    def forget(self) -> None:
        """Wait for a reading before the next use."""
        self._read_at = None

    async def close(self) -> None:
        """End a reading that is under way."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    def _begin(self) -> "asyncio.Task[Exception | None]":
        """The one reading that is under way."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._renew())
        return self._reading

    async def _renew(self) -> Exception | None:
        try:
            found = await self._look()
        except Exception as error:  # noqa: BLE001 - nobody may wait for it: whoever does raises it
            LOG.warning(
                "tool_definitions_kept", extra={"server": self._server, "error": type(error).__name__}
            )
            return error
        if found is not None:
            self._kept, self._read_at = found, self._now_s()
        elif self._kept is not None:
            LOG.warning("tool_definitions_kept", extra={"server": self._server, "error": "silent"})
        return None


class NoPins:
    """A book of pins that is empty and stays so."""

    async def pins_of(self, client: str) -> dict[str, ToolDefinition]:
        """Nothing."""
        return {}

    async def pin(self, client: str, definitions: Sequence[ToolDefinition]) -> None:
        """Refuse.

        Raises:
            StoreError: always.
        """
        raise StoreError(f"definitions of {client} cannot be pinned: there is no store")
