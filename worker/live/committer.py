"""The committer: bars and journal rows into the store, one transaction a bar, and orders on to the venue.

A crash may come between any two steps. Before the transaction the bar has not happened, and the feed hands it
over again; after it the orders in it are intended, and whoever starts again sends them. While the store is
away everything waits here, in order; nothing is dropped.
"""

import json
import time
from collections.abc import Sequence

from schemas.errors import InvariantViolation
from services.feeds.port import BarRow
from services.journal.chain import JournalRow
from services.store.records import Closing
from services.store.repository import Lease
from services.store.tables import ORDER_KINDS
from services.store.trading import OutgoingOrder
from worker.live.process_inputs import ProcessInputs
from worker.runs.stored_trial import StoredTrial
from worker.slow_worker.ports import NO_CRASH

CRASH_POINTS = ("validated", "committed", "intended", "sent", "acknowledged")
CLOSED = "closed"  # the one behind the last transaction of a run


class BarCommitter:
    """Sink of a paper run's journal.

    Args:
        inputs: of the process; its surroundings are told of each row once it is stored, and of none before.
        run_id: the run.
        trial: what the run tries, for the ledger of its store; None: it is no trial.

    Attributes:
        run_id: the run.
        lease: of this process; None until it is held.
        orders: how many were sent.
    """

    def __init__(self, inputs: ProcessInputs, run_id: str, trial: StoredTrial | None = None) -> None:
        self._store, self._points = inputs.store, inputs.points or NO_CRASH
        self.run_id = run_id
        self._account = inputs.settings.account.name
        self._shown = inputs.surroundings.note_stored
        self._trial = trial
        self._bars: list[tuple[int, BarRow]] = []
        self._waits_since = 0.0
        self._closing: Closing | None = None
        self.lease: Lease | None = None
        self.orders = 0

    @property
    def venue_account(self) -> str:
        """The account at the venue: runs of one store do not share orders."""
        return f"{self._account}/{self.run_id}"

    @property
    def waiting(self) -> int:
        """Rows of bars that are not stored yet."""
        return len(self._bars)

    @property
    def closing(self) -> bool:
        """Whether the run still has to be closed."""
        return self._closing is not None

    def close(self, closing: Closing) -> None:
        """The run ends with what is written next, in the same transaction."""
        self._closing = closing

    @property
    def waits_s(self) -> float:
        """How long the oldest row has been waiting, seconds."""
        return time.monotonic() - self._waits_since if self._bars else 0.0

    def bar(self, number: int, row: BarRow) -> None:
        """A row that was validated; it is stored with what follows from it."""
        self._points.reach("validated")
        if not self._bars:
            self._waits_since = time.monotonic()
        self._bars.append((number, row))

    async def write(self, rows: list[JournalRow]) -> None:
        """Store what waits and these rows, then send the orders in them; the same rows again change nothing.

        Raises:
            LeaseLost: another process trades this run.
            StoreError: the store is away; everything waits.
        """
        if self.lease is None:
            raise InvariantViolation("a paper run is written without a lease")
        bars = list(self._bars)
        closing = self._closing
        trial = self._trial if rows or closing else None  # what was tried changes with rows alone
        counts = None if trial is None else trial.news()
        await self._store.trading.commit(self.lease, self.run_id, bars, rows, closing, counts)
        if trial is not None and counts is not None:
            trial.note_stored(counts)
        self._points.reach("committed" if closing is None else CLOSED)
        if self._closing is closing:  # one that came during the commit is written with what comes next
            self._closing = None
        del self._bars[: len(bars)]
        self._waits_since = time.monotonic()
        for row in rows:
            self._shown(row)
        orders = [
            OutgoingOrder(json.loads(row.payload)["order_id"], row.seq, row.payload)
            for row in rows
            if row.kind in ORDER_KINDS
        ]
        if orders:
            self._points.reach("intended")
        await self._pass_on(orders)

    async def reconcile(self) -> int:
        """Send what a process before this one intended and did not see acknowledged; how many there were."""
        orders = await self._store.trading.list_unacknowledged(self.run_id)
        await self._pass_on(orders)
        return len(orders)

    async def _pass_on(self, orders: Sequence[OutgoingOrder]) -> None:
        if not orders:
            return
        await self._store.trading.send(self.venue_account, orders)
        self._points.reach("sent")
        await self._store.trading.acknowledge(self.run_id, [order.order_id for order in orders])
        self._points.reach("acknowledged")
        self.orders += len(orders)
