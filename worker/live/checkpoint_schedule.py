"""When a paper run takes a savepoint, and which one a process goes on from."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.errors import StoreError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.savepoints.forms import NoSavepoint
from services.store import RunRecord, Store
from services.store.checkpoints import DamagedSavepoint, Savepoint
from services.store.leases import Lease, LeaseLost
from worker.live.checkpoints import Restored, ResumePoint, SavepointWriter, maker
from worker.live.stepper import LiveStepper
from worker.operations.logs import EventSink


@dataclass(frozen=True)
class Pace:
    """How much a process may have to play again.

    Attributes:
        events, rows: journal rows or rows of bars after which the next savepoint is due.
        share: of the time, at most one part in so many goes into savepoints.
    """

    events: int = 600
    rows: int = 500
    share: float = 10.0


class CheckpointSchedule:
    """The savepoints of one paper run.

    Args:
        store: open.
        run_id: the run.
        settings, definitions: of the run; playbooks as they are now.
        note: told when a savepoint cannot be used or written.
        pace: how often.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        settings: Settings,
        definitions: Sequence[PlaybookDefinition],
        note: EventSink,
        pace: Pace,
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._note = note
        self._pace = pace
        # A file of replies that is being recorded is compared from its first line on.
        self._wanted = settings.runtime.llm != "record"
        self._maker = maker(settings, definitions)
        self._writer = SavepointWriter(self._maker)
        self._cost_s = 0.0
        self._last_s = 0.0

    async def find(self, record: RunRecord) -> Savepoint | None:
        """The savepoint to go on from; None plays the run from its first bar.

        Raises:
            StoreError: the store failed.
        """
        if not record.events or not self._wanted:
            return None
        try:
            point = await self._store.savepoints.newest(self._run_id)
        except DamagedSavepoint as error:
            self.refused(str(error))
            return None
        if point is None:
            return None
        if point.events > record.events:
            self.refused(f"it stands behind {point.events} journal rows, and {record.events} are stored")
            return None
        if point.code != self._maker:
            self.refused("it is of another version of the program or of the playbooks")
            return None
        return point

    def refused(self, why: str) -> None:
        """Note that the run has to be played from its first bar."""
        self._note("savepoint_not_used", {"run_id": self._run_id, "reason": why})

    async def goes_on(self, found: Restored) -> None:
        """Go on behind a savepoint that was read.

        Raises:
            NoSavepoint: the stored journal is not the one that it was taken of.
        """
        journal = found.session.journal
        last = journal.events - 1
        if await self._store.journal.hashes(self._run_id, last, last) != [journal.head_hash]:
            raise NoSavepoint("the stored journal is not the one that it was taken of")
        self._writer = found.writer

    def due(self, desk: LiveStepper) -> bool:
        """Whether enough has happened since the last one."""
        rests = time.monotonic() - self._last_s < self._pace.share * self._cost_s
        if rests or not self._wanted or not desk.begun:
            return False
        events, rows = desk.journal.events - self._writer.events, desk.rows - self._writer.rows
        return events >= self._pace.events or rows >= self._pace.rows

    async def take(self, desk: LiveStepper, lease: Lease) -> None:
        """Write a savepoint; everything before it is stored, and no evaluation is out.

        Raises:
            LeaseLost: another process trades this run.
        """
        began = time.monotonic()
        try:
            point, whole = self._writer.written(desk.session, ResumePoint(desk.rows, dict(desk.blocked)))
            self._cost_s = time.monotonic() - began
            await self._store.savepoints.save(lease, self._run_id, point, whole=whole)
        except NoSavepoint as error:
            self._wanted = False
            self.refused(str(error))
            return
        except StoreError as error:
            if isinstance(error, LeaseLost):
                raise
            self._note("savepoint_not_stored", {"run_id": self._run_id, "reason": str(error)})
        else:
            self._writer.stored()
        self._last_s = time.monotonic()
