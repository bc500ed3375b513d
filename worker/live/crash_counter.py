"""Counts the processes of a run that crashed, so that a run whose processes keep dying starts in safe mode.

Each process keeps a start of its own in the store as soon as it holds the lease of the run, and takes it back
when it ends and says why: a stop, or an error that the operator, a machine or a service has to mend. A start
that is there without the lease is a crash: killed, or ended by a mistake of this program.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count

from schemas.errors import InfrastructureError, OperatorError, StoreError
from schemas.settings.live import OperationsSettings
from services.store.claims import LeaseRepository
from services.store.repository import Lease
from worker.operations.logs import EventSink

# Ends that say why. An InvariantViolation and whatever nobody foresaw are not among them: those are crashes.
SAID_WHY = (OperatorError, InfrastructureError, asyncio.CancelledError, KeyboardInterrupt, SystemExit)


class StartLimit:
    """The start of one process, in whatever run it trades.

    Args:
        leases: a start is one of them, which nobody renews and which runs out by the clock of the store.
        owner: of the process.
        settings: how many crashes are too many, and within what time.
        note: told when the start was taken back, or could not be.
    """

    def __init__(
        self, leases: LeaseRepository, owner: str, settings: OperationsSettings, note: EventSink
    ) -> None:
        self._leases = leases
        self._owner = owner
        self._settings = settings
        self._note = note
        self._start: Lease | None = None

    async def crashed_too_often(self, run_id: str) -> bool:
        """Keep a start of the run, whose lease is held; whether the processes before crashed too often.

        Raises:
            StoreError: the store failed.
        """
        prefix, window_ms = f"start/{run_id}/", self._settings.start_window_s * 1_000
        starts = {start.name: start.owner for start in await self._leases.list_in_force(prefix)}
        names = (f"{prefix}{number}" for number in count())
        free = next(name for name in names if starts.get(name, self._owner) == self._owner)
        self._start = await self._leases.take(free, self._owner, window_ms)
        return sum(owner != self._owner for owner in starts.values()) > self._settings.start_limit

    @asynccontextmanager
    async def withdrawn(self) -> AsyncIterator[None]:
        """Take the start back where the block ends and says why; what it raises goes on."""
        try:
            yield
        except SAID_WHY as error:
            await self._withdraw()
            if self._start is not None and isinstance(error, Exception):
                self._note("start_withdrawn", {"reason": f"{type(error).__name__}: {error}"})
            raise
        await self._withdraw()

    async def _withdraw(self) -> None:
        if self._start is None:
            return
        try:
            await self._leases.release(self._start)
        except StoreError as error:
            self._start = None
            self._note("start_not_withdrawn", {"reason": f"{error}; this end counts as a crash"})
