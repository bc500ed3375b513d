"""What surrounds a trading process: where its events go, who is told, and who can ask how it is."""

import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Protocol

from services.journal.chain import JournalRow
from worker.operations.alerts import CHANGE_KINDS, Alert, WaitingChanges, of_journal, of_worker
from worker.operations.logs import level_of, logger
from worker.operations.monitoring import Prepared, operate
from worker.operations.notifications import Notifier
from worker.operations.status import VitalSource

NEWS_KINDS = frozenset({"envelope_breach", "policy_reflection", "feed_anomaly", "entries_blocked", "error"})
QUIET = frozenset({"lease_taken", "lease_released", "start_withdrawn"})


class Monitor(Protocol):
    """What a trading process is given from outside."""

    def note(self, kind: str, detail: dict[str, Any]) -> None:
        """Something happened beside the bars."""
        ...

    def note_stored(self, row: JournalRow) -> None:
        """A journal row is stored."""
        ...

    def around(self, source: VitalSource, run_id: str) -> AbstractAsyncContextManager[None]:
        """Open what can ask how the process is, while the block runs."""
        ...


class Companion(Protocol):
    """What runs beside a process and shows it."""

    def over(self, inner: Monitor) -> Monitor:
        """A monitor around which it runs, too."""
        ...

    def around(self, source: VitalSource, run_id: str) -> AbstractAsyncContextManager[None]:
        """Run while the block does."""
        ...


class OperatedMonitor:
    """Events go to the log, news to a person, status to the endpoint.

    Args:
        prepared: settings and secrets, checked.
        console: address at which people reach the console; None without one.
    """

    def __init__(self, prepared: Prepared, console: str | None = None) -> None:
        self._prepared, self._console = prepared, console
        self._log = logger("trading")
        self._notifier: Notifier | None = None
        self._changes: WaitingChanges | None = None

    def note(self, kind: str, detail: dict[str, Any]) -> None:
        """Log an event, and tell a person what is news in it."""
        self._log.log(logging.DEBUG if kind in QUIET else level_of(kind), kind, **detail)
        self._tell(of_worker(kind, detail, time.time_ns()))

    def note_stored(self, row: JournalRow) -> None:
        """Tell a person what is news in a stored row."""
        if row.kind in NEWS_KINDS:
            self._tell(of_journal(row.kind, json.loads(row.payload), row.known_at, row.symbol))
        if row.kind in CHANGE_KINDS and self._changes is not None:
            for news in self._changes.of(row.kind, json.loads(row.payload), row.known_at):
                self._log.info("change_waits", **news.detail)
                self._tell(news)

    @asynccontextmanager
    async def around(self, source: VitalSource, run_id: str) -> AsyncIterator[None]:
        """Endpoint and notifier, open while the block runs."""
        async with operate(self._prepared, source, run_id, "paper") as operations:
            self._notifier = operations.notifier
            self._changes = WaitingChanges(
                run_id,
                lambda: source.status().playbooks,
                lambda: source.status().plans_waiting,
                self._console,
            )
            try:
                yield
            finally:
                self._notifier = self._changes = None

    def _tell(self, news: Alert | None) -> None:
        if news is not None and self._notifier is not None:
            self._notifier.tell(news)
