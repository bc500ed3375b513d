"""A trading process around which nothing listens."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from services.journal.chain import JournalRow
from worker.operations.logs import EventSink
from worker.operations.status import VitalSource


class NullMonitor:
    """Events go to a sink, no person is told and nothing asks."""

    def __init__(self, note: EventSink) -> None:
        self.note = note

    def note_stored(self, row: JournalRow) -> None:
        """No person is told."""

    @asynccontextmanager
    async def around(self, source: VitalSource, run_id: str) -> AsyncIterator[None]:
        """Nothing asks."""
        yield
