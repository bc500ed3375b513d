"""A graceful stop that was asked for: why, and how long the store is waited for then."""

import asyncio
import time

from worker.operations.logs import EventSink

STOP_S = 10.0


class StopRequest:
    """Whether a process is to end before its feed does; `note` is told once.

    Attributes:
        why: the first reason; None while nothing asked to stop.
        patience_s: how long a store that stays away is waited for after a stop was asked for.
        until: monotonic seconds at which a store that stays away is given up; None never.
    """

    def __init__(self, note: EventSink) -> None:
        self._note = note
        self.patience_s = STOP_S
        self._asked = asyncio.Event()
        self.why: str | None = None
        self.until: float | None = None

    def ask(self, why: str) -> None:
        """End: the row in hand is finished and stored."""
        if self.why is None:
            self._note("stopping", {"reason": why})
        self.why = self.why or why
        self.until = self.until or time.monotonic() + self.patience_s
        self.wake()

    def wake(self) -> None:
        """Wait for no more bars, whatever the reason."""
        self._asked.set()

    @property
    def asked(self) -> bool:
        """Whether no more bars are waited for."""
        return self._asked.is_set()

    async def wait(self) -> None:
        """Until no more bars are waited for."""
        await self._asked.wait()
