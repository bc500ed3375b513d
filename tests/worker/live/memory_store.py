"""A store in memory with the methods that a trading process uses, and the same refusals as the real one.

For runs of which thousands of hours are played. It outlives the processes of a test: each gets a
`StoreOfOneProcess`, which is away, slow to answer or cut off for good when the test says so.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import replace
from inspect import isasyncgenfunction
from typing import Any

from schemas.errors import ConfigError, StoreError
from schemas.trials import NO_TRIALS, TrialCounts, TrialLedger
from services.feeds.port import BarRow
from services.journal.chain import GENESIS_HASH, JournalRow
from services.store import NewRun, RunRecord, Store
from services.store.checkpoints import Savepoint
from services.store.records import Closing
from services.store.repository import Lease, LeaseLost
from services.store.tables import ORDER_KINDS
from services.store.trading import OutgoingOrder
from services.store.trials import Trial, TriedOn


def nobody_minds(what: str) -> None:
    """A store that always answers."""


class MemoryStore:
    """What is stored: runs, journals, bars, orders, leases, the venue.

    Attributes:
        sends: how often each order of each account was sent to the venue.
    """

    def __init__(self) -> None:
        self.records: dict[str, RunRecord] = {}
        self.journals: dict[str, list[JournalRow]] = {}
        self.bars: dict[str, list[BarRow]] = {}
        self.orders: dict[str, dict[str, tuple[OutgoingOrder, str]]] = {}
        self.leases: dict[str, tuple[Lease, float]] = {}
        self.sends: dict[str, dict[str, int]] = {}
        self.savepoints: dict[str, Savepoint] = {}

    def demand(self, lease: Lease) -> None:
        """Refuse whoever lost the lease."""
        held = self.leases[lease.name][0]
        if (held.owner, held.epoch) != (lease.owner, lease.epoch):
            raise LeaseLost(f"lease {lease.name!r} is at epoch {held.epoch}")

    def opened(self, gate: Callable[[str], None] = nobody_minds) -> "StoreOfOneProcess":
        """The store as one process sees it; `gate` is asked before and after every call and may raise."""
        return StoreOfOneProcess(self, gate)


class StoreOfOneProcess:
    """A `Store` by shape, as far as a trading process looks."""

    url = "memory"

    def __init__(self, stored: MemoryStore, gate: Callable[[str], None]) -> None:
        self.runs = _Runs(stored, gate)
        self.leases = _Leases(stored, gate)
        self.journal = _Journal(stored, gate)
        self.trading = _Trading(stored, gate)
        self.operator = _NothingAsked(gate)
        self.plans = _NoPlans()
        self.reports = _NoReports(gate)
        self.savepoints = _Savepoints(stored, gate)
        self.seals = _NoSeals()
        self.trials = _NoTrials(gate)


class _Part:
    def __init__(self, stored: MemoryStore, gate: Callable[[str], None]) -> None:
        self._stored = stored
        self._gate = gate

    async def _turn(self, what: str) -> None:
        self._gate(what)
        await asyncio.sleep(0)
        self._gate(what)


class _Runs(_Part):
    async def all(self) -> list[RunRecord]:
        await self._turn("runs")
        return list(self._stored.records.values())

    async def find(self, name: str) -> RunRecord:
        await self._turn("runs")
        records = self._stored.records
        if not records or name not in ("latest", *records):
            raise ConfigError(f"no run {name!r}")
        return records[list(records)[-1] if name == "latest" else name]

    async def create(self, run: NewRun) -> RunRecord:
        await self._turn("runs")
        number = len(self._stored.records) + 1
        made = RunRecord(
            **vars(run), run_id=f"r{number:04d}", number=number, status="running", events=0,
            head_hash=GENESIS_HASH, document=None,
        )  # fmt: skip
        self._stored.records[made.run_id] = made
        self._stored.journals[made.run_id] = []
        self._stored.bars[made.run_id] = []
        self._stored.orders[made.run_id] = {}
        return made

    async def reopen(self, run_id: str, lease: Lease) -> None:
        self._stored.demand(lease)
        await self._change(run_id, "interrupted", status="running")

    async def _change(self, run_id: str, wanted: str, **values: Any) -> None:
        await self._turn("runs")
        record = self._stored.records[run_id]
        if record.status != wanted:
            raise StoreError(f"run {run_id!r} is {record.status}")
        self._stored.records[run_id] = replace(record, **values)


class _Leases(_Part):
    async def take(self, name: str, owner: str, ttl_ms: int) -> Lease | None:
        await self._turn("leases")
        now = asyncio.get_running_loop().time()
        held = self._stored.leases.get(name)
        if held is not None and held[0].owner != owner and held[1] > now:
            return None
        old = 0 if held is None else held[0].epoch
        epoch = old if held is not None and held[0].owner == owner else old + 1
        lease = Lease(name, owner, epoch, round(1e3 * now) + ttl_ms)
        self._stored.leases[name] = lease, now + ttl_ms / 1e3
        return lease

    async def release(self, lease: Lease) -> None:
        await self._turn("leases")
        held = self._stored.leases.get(lease.name)
        if held is not None and held[0].epoch == lease.epoch:
            self._stored.leases[lease.name] = held[0], 0.0

    async def holder(self, name: str) -> Lease | None:
        await self._turn("leases")
        held = self._stored.leases.get(name)
        return None if held is None else held[0]


class _Journal(_Part):
    async def hashes(self, run_id: str, first: int, last: int) -> list[str]:
        await self._turn("journal")
        return [row.hash for row in self._stored.journals[run_id][first : last + 1]]

    contents = hashes  # nothing lies in a file that could be changed

    async def rows(
        self, run_id: str, *, kinds: Collection[str] | None = None, after: int = -1
    ) -> AsyncIterator[JournalRow]:
        await self._turn("journal")
        for row in self._stored.journals[run_id][after + 1 :]:
            if kinds is None or row.kind in kinds:
                yield row


class _Trading(_Part):
    async def commit(
        self,
        lease: Lease,
        run_id: str,
        bars: Sequence[tuple[int, BarRow]],
        rows: Sequence[JournalRow],
        closing: Closing | None = None,
        counts: TrialCounts | None = None,
    ) -> None:
        self._gate("commit")
        await asyncio.sleep(0)
        self._gate("commit")
        self._store(lease, run_id, bars, rows)
        if closing is not None:
            record = self._stored.records[run_id]
            self._stored.records[run_id] = replace(record, status=closing.status, document=closing.document)
        self._gate("committed")

    def _store(
        self, lease: Lease, run_id: str, bars: Sequence[tuple[int, BarRow]], rows: Sequence[JournalRow]
    ) -> None:
        self._stored.demand(lease)
        known, kept = self._stored.bars[run_id], self._stored.journals[run_id]
        for number, row in bars:
            if number == len(known):
                known.append(row)
            elif number > len(known):
                raise StoreError(f"row {number} of the bars would leave a gap")
        new = [row for row in rows if row.seq >= len(kept)]
        if rows and rows[0].seq > len(kept):
            raise StoreError(f"row {rows[0].seq} would leave a gap")
        if new and new[0].prev_hash != (kept[-1].hash if kept else GENESIS_HASH):
            raise StoreError(f"row {new[0].seq} does not follow the stored head")
        kept.extend(new)
        for event in new:
            if event.kind in ORDER_KINDS:
                order = OutgoingOrder(json.loads(event.payload)["order_id"], event.seq, event.payload)
                self._stored.orders[run_id].setdefault(order.order_id, (order, "intended"))
        if new:
            record = self._stored.records[run_id]
            self._stored.records[run_id] = replace(record, events=len(kept), head_hash=kept[-1].hash)

    async def rows(self, run_id: str, start: int = 0) -> AsyncIterator[BarRow]:
        await self._turn("bars")
        for row in self._stored.bars[run_id][start:]:
            yield row

    async def list_unacknowledged(self, run_id: str) -> list[OutgoingOrder]:
        await self._turn("orders")
        return [order for order, state in self._stored.orders[run_id].values() if state == "intended"]

    async def acknowledge(self, run_id: str, order_ids: Sequence[str]) -> None:
        await self._turn("acknowledge")
        orders = self._stored.orders[run_id]
        for id_ in order_ids:
            orders[id_] = orders[id_][0], "acknowledged"

    async def send(self, account: str, orders: Sequence[OutgoingOrder]) -> None:
        await self._turn("send")
        known = self._stored.sends.setdefault(account, {})
        for order in orders:
            known[order.order_id] = known.get(order.order_id, 0) + 1

    async def at_venue(self, account: str) -> dict[str, int]:
        await self._turn("venue")
        return dict(self._stored.sends.get(account, {}))

    async def say(self, lease: Lease, run_id: str, signs: Any) -> None:
        await self._turn("say")


class _Savepoints(_Part):
    async def save(self, lease: Lease, run_id: str, point: Savepoint, *, whole: bool) -> None:
        await self._turn("savepoint")
        self._stored.demand(lease)
        before = None if whole else self._stored.savepoints[run_id]
        added = point.added if before is None else before.added + point.added
        self._stored.savepoints[run_id] = replace(point, added=added)

    async def newest(self, run_id: str) -> Savepoint | None:
        await self._turn("savepoint")
        return self._stored.savepoints.get(run_id)


class _NothingAsked:
    def __init__(self, gate: Callable[[str], None]) -> None:
        self._gate = gate

    async def waiting(self, run_id: str) -> list[Any]:
        self._gate("operator")
        return []


class _NoPlans:
    """Nobody asks for one, so none is claimed."""


class _NoReports:
    def __init__(self, gate: Callable[[str], None]) -> None:
        self._gate = gate

    async def take(self, run_id: str, consumer: str, hold_ms: int) -> None:
        self._gate("reports")


class _NoTrials:
    """An empty ledger that keeps nothing: one run is all that a memory holds."""

    def __init__(self, gate: Callable[[str], None]) -> None:
        self._gate = gate

    async def begin(self, run_id: str, on: TriedOn, hypotheses: int, *, fresh: bool = False) -> TrialLedger:
        self._gate("trials")
        return NO_TRIALS

    async def advance(self, run_id: str, counts: TrialCounts) -> None:
        self._gate("trials")

    async def all(self) -> list[Trial]:
        return []


class _NoSeals:
    async def demand(self, run_id: str) -> None:
        """Nobody else writes into memory."""


class GatedStore:
    """A real store behind the same gate: asked before and after each call of a repository."""

    def __init__(self, store: Store, gate: Callable[[str], None]) -> None:
        self._store = store
        self._gate = gate
        self.url = store.url

    def __getattr__(self, name: str) -> Any:
        return _GatedPart(getattr(self._store, name), self._gate)


class _GatedPart:
    def __init__(self, part: Any, gate: Callable[[str], None]) -> None:
        self._part = part
        self._gate = gate

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._part, name)
        if isasyncgenfunction(method):
            return method

        async def gated(*args: Any, **named: Any) -> Any:
            self._gate(name)
            answer = await method(*args, **named)
            self._gate("committed" if name == "commit" else name)
            return answer

        return gated
