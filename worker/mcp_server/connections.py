"""Connections of the HTTP server: one that sends no whole request gives way, whoever it is.

uvicorn waits for the rest of a request for ever, and refuses everybody while all places are taken.
"""

import asyncio
from typing import Any, cast

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

DEADLINE_S = 5.0


class HttpConnection(H11Protocol):
    """Ends when nothing is asked for a few seconds; where places run out, the oldest silent one does."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place."""
        super().connection_made(transport)
        self._seen: RequestResponseCycle | None = None
        self._since = self.loop.time()
        self.loop.call_later(DEADLINE_S, self._look)
        there = [cast("HttpConnection", other) for other in self.connections]
        held = [other for other in there if other is not self and not other.transport.is_closing()]
        silent = [other for other in held if other.silent]
        if silent and len(held) + 1 >= cast("int", self.limit_concurrency):
            min(silent, key=lambda other: other._since).transport.close()

    @property
    def silent(self) -> bool:
        """Whether no whole request waits for its answer."""
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        if self.silent and self.cycle is self._seen:
            self.transport.close()
            return
        self._seen = self.cycle
        self.loop.call_later(DEADLINE_S, self._look)
