"""The status of `thinktwice worker`, read off the events that it notes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from schemas.settings import Settings
from services.ports import Clock
from services.statistics.slots import next_slot
from services.store import RunRecord, Store
from worker.operations.logs import EventSink
from worker.operations.status import ProcessStatus, State
from worker.slow_worker.ports import JOB
from worker.slow_worker.service import Looks

FAILURES = frozenset({"slot_failed", "look_failed", "waker_silent", "worker_died"})
DECIDED = frozenset({"slot_skipped", "report_written", "slot_failed"})


class SlowLoopStatus:
    """Told of every event of a worker; says how it is. `last` is the newest slot that was decided before."""

    def __init__(
        self, record: RunRecord, settings: Settings, owner: str, clock: Clock, last: int | None
    ) -> None:
        self._clock = clock
        self._interval = settings.high_level.interval_for(record.data["timeframe"])
        self._last = last
        self._begun = ProcessStatus(record.run_id, record.mode, "slow_loop", owner, clock.now)
        self._state: State = "running"
        self._reason: str | None = None
        self._errors = 0
        self.away_since: int | None = None

    @classmethod
    async def of_run(
        cls, store: Store, record: RunRecord, settings: Settings, owner: str, clock: Clock
    ) -> "SlowLoopStatus":
        """Of a stored run, as it stands when its worker begins."""
        claimed = await store.claims.newest_state(record.run_id, JOB)
        return cls(record, settings, owner, clock, claimed.newest)

    def note(self, name: str, payload: Mapping[str, Any]) -> None:
        """Something happened."""
        if name == "store_away" and self.away_since is None:
            self.away_since = self._clock.now
        elif name == "store_back":
            self.away_since = None
        elif name == "standing_by":
            self._reason = f"standing by, {payload.get('held_by')} works"
        elif name == "lease_taken":
            self._reason = None
        elif name == "stopping":
            self._state, self._reason = "stopping", str(payload.get("signal"))
        self._errors += name in FAILURES
        if name in DECIDED:
            self._last = max(self._last or 0, int(payload["slot"]))

    def status(self) -> ProcessStatus:
        """The present status."""
        return replace(
            self._begun,
            state=self._state,
            reason=self._reason,
            store_ok=self.away_since is None,
            store_away_since=self.away_since,
            errors=self._errors,
            slow_loop_last=self._last,
            slow_loop_next=next_slot(self._clock.now, self._interval),
        )


class StatusFromEvents:
    """A worker whose every look that came to its end is a sign that the store is there."""

    def __init__(self, worker: Looks, status: SlowLoopStatus, note: EventSink) -> None:
        self._worker = worker
        self._status = status
        self._note = note

    async def look(self) -> bool:
        """One look of the worker.

        Raises:
            StoreError: the store failed.
        """
        worked = await self._worker.look()
        if self._status.away_since is not None:
            self._note("store_back", {"away_since": self._status.away_since})
        return worked

    async def close(self) -> None:
        """Release the lease."""
        await self._worker.close()
