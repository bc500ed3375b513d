"""What a trading process keeps: bars and journal in one transaction a bar, and its orders on their way.

Rows of bars are inputs: with them a run is replayed. An order goes out in three steps that a crash may part:
it is intended (with the journal, in one transaction), sent to the venue, acknowledged. Whoever starts again
sends what was intended and not acknowledged; the venue knows an order by its id, which is a hash of what it
means, so sending twice is one order.
"""

import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, select, update

from schemas.canonical import canonical_json
from schemas.trials import TrialCounts
from services.journal.chain import JournalRow
from services.store.bar_rows import checked_bars, store_bars
from services.store.connections import AsyncConnection
from services.store.database_time import insert_into, insert_once, now_ms
from services.store.failures import MEND, StoreDamaged, losses_of, readable, require_readable
from services.store.journal_repository import append_rows
from services.store.records import Closing
from services.store.repository import Lease, Repository
from services.store.run_repository import close_run, is_closed
from services.store.seals import hash_values
from services.store.tables import (
    ORDER_KINDS,
    journal,
    paper_bars,
    paper_orders,
    savepoints,
    trading_processes,
    venue_orders,
)
from services.store.trials import advance_trial

if TYPE_CHECKING:
    from services.feeds.port import BarRow

OF_ORDER = (paper_orders.c.run_id == bindparam("of_run")) & (paper_orders.c.order_id == bindparam("named"))
ACKNOWLEDGED = update(paper_orders).where(OF_ORDER).values(state="acknowledged", hash=bindparam("new_hash"))
SENT = (venue_orders.c.account == bindparam("at")) & (venue_orders.c.order_id == bindparam("named"))
COUNTED = update(venue_orders).where(SENT).values(hash=bindparam("new_hash"))


@dataclass(frozen=True)
class OutgoingOrder:
    """An order on its way: the journal row `seq` says what it is."""

    order_id: str
    seq: int
    instruction: str


@dataclass(frozen=True)
class ProcessSeen:
    """What a trading process last said of itself, and how long ago, in ms of the database's clock."""

    owner: str
    age_ms: int
    signs: dict[str, Any]


class TradingRepository(Repository):
    """Bars, orders and processes of paper runs."""

    async def commit(
        self,
        lease: Lease,
        run_id: str,
        bars: Sequence[tuple[int, "BarRow"]],
        rows: Sequence[JournalRow],
        closing: Closing | None = None,
        counts: TrialCounts | None = None,
    ) -> None:
        """Bars, journal rows and the orders in them, in one transaction; what is stored already stays.

        Args:
            lease: of the writer; fenced.
            run_id: the run.
            bars: rows of bars with their numbers, from 0.
            rows: journal rows that follow what is stored.
            closing: the run ends with them; a run that is finished needs no savepoint any more.
            counts: what the run has tried with them, for the ledger of trials; None: nothing new.

        Raises:
            LeaseLost: another process trades this run.
            StoreError: the store failed, or the rows do not fit what it holds.
        """

        async def work(connection: AsyncConnection) -> None:
            head = rows[-1].hash if rows else None
            if closing is not None and await is_closed(connection, run_id, closing, head):
                return  # the first answer was lost
            if bars:
                await store_bars(connection, self._url.dialect, run_id, bars)
            if rows:
                await append_rows(connection, run_id, rows)
            if orders := [_order_values(run_id, row) for row in rows if row.kind in ORDER_KINDS]:
                await connection.execute(insert_once(self._url.dialect, paper_orders), orders)
            if counts is not None:
                await advance_trial(connection, run_id, counts)
            if closing is not None:
                await close_run(connection, run_id, closing)
                if closing.status == "finished":
                    await connection.execute(delete(savepoints).where(savepoints.c.run_id == run_id))

        with losses_of(run_id):
            await self._run_write(work, lease)
            if closing is not None:
                await require_readable(self._url)

    async def rows(self, run_id: str, start: int = 0) -> AsyncIterator["BarRow"]:
        """The rows of bars that a run took from row `start` on, in order, each held against its hash.

        Raises:
            StoreDamaged: a row is not what was written, is missing, or is one that the run never took.
        """
        async for row, problem in checked_bars(self._run_read, run_id, start):
            if row is None or problem is not None:
                raise StoreDamaged(f"store {self._url.text}: run {run_id!r}: {problem}; {MEND}")
            yield _bar_row(row.label, row.bars)

    async def last_bars(self, run_id: str) -> tuple[int, int] | None:
        """Number and label of the last row of bars that a run took; None before the first."""
        own = paper_bars.c.run_id == run_id
        query = select(paper_bars.c.number, paper_bars.c.label).where(own)
        query = query.order_by(paper_bars.c.number.desc()).limit(1)
        row = (await self._select(query)).one_or_none()
        return None if row is None else (int(row.number), int(row.label))

    async def list_unacknowledged(self, run_id: str) -> list[OutgoingOrder]:
        """Orders that were intended and not acknowledged, in the order of the journal."""
        query = (
            select(paper_orders.c.order_id, paper_orders.c.seq, journal.c.payload)
            .join_from(
                paper_orders,
                journal,
                (journal.c.run_id == paper_orders.c.run_id) & (journal.c.seq == paper_orders.c.seq),
            )
            .where(paper_orders.c.run_id == run_id, paper_orders.c.state == "intended")
            .order_by(paper_orders.c.seq)
        )
        return [OutgoingOrder(*row) for row in await self._select(query)]

    async def acknowledge(self, run_id: str, order_ids: Sequence[str]) -> None:
        """Note that the venue has these orders."""
        if not order_ids:
            return
        own = (paper_orders.c.run_id == run_id) & paper_orders.c.order_id.in_(order_ids)

        async def work(connection: AsyncConnection) -> None:
            found = await connection.execute(select(paper_orders.c.order_id, paper_orders.c.seq).where(own))
            orders = [
                {"of_run": run_id, "named": name, "new_hash": hash_values(name, seq, "acknowledged")}
                for name, seq in found
            ]
            if orders:
                await connection.execute(ACKNOWLEDGED, orders)

        await self._run_write(work)

    async def send(self, account: str, orders: Sequence[OutgoingOrder]) -> None:
        """The paper venue takes orders; one that it knows already is counted and is no second order."""
        if not orders:
            return
        values = [
            {"account": account, "order_id": sent.order_id, "instruction": sent.instruction}
            | {"sends": 1, "hash": hash_values(sent.order_id, sent.instruction, 1)}
            for sent in orders
        ]
        own = (venue_orders.c.account == account) & venue_orders.c.order_id.in_(
            [sent.order_id for sent in orders]
        )
        statement = insert_into(self._url.dialect, venue_orders).on_conflict_do_update(
            index_elements=[venue_orders.c.account, venue_orders.c.order_id],
            set_={"sends": venue_orders.c.sends + 1},
        )

        async def work(connection: AsyncConnection) -> None:
            await connection.execute(statement, values)
            again = select(venue_orders.c.order_id, venue_orders.c.instruction, venue_orders.c.sends).where(
                own, venue_orders.c.sends > 1
            )
            hashes = [
                {"at": account, "named": row.order_id, "new_hash": hash_values(*row)}
                for row in await connection.execute(again)
            ]
            if hashes:
                await connection.execute(COUNTED, hashes)

        await self._run_write(work)

    async def at_venue(self, account: str) -> dict[str, int]:
        """How often each order of an account was sent, by order id."""
        query = select(venue_orders.c.order_id, venue_orders.c.sends).where(venue_orders.c.account == account)
        return {order_id: sends for order_id, sends in await self._select(query)}

    async def say(self, lease: Lease, run_id: str, signs: Mapping[str, Any]) -> None:
        """Keep what a running process says of itself.

        Raises:
            LeaseLost: another process trades this run.
        """
        answer = {"owner": lease.owner, "seen_ms": now_ms(self._url.dialect), "signs": canonical_json(signs)}
        statement = insert_into(self._url.dialect, trading_processes).values(run_id=run_id, **answer)
        statement = statement.on_conflict_do_update(index_elements=[trading_processes.c.run_id], set_=answer)
        with losses_of(run_id):
            await self._run_write(lambda connection: connection.execute(statement), lease)

    async def last_seen(self, run_id: str) -> ProcessSeen | None:
        """What the process of a run last said; None when none ever did.

        Raises:
            StoreDamaged: it cannot be read.
        """
        columns = trading_processes.c
        age = now_ms(self._url.dialect) - columns.seen_ms
        query = select(columns.owner, age, columns.signs).where(columns.run_id == run_id)
        row = (await self._select(query)).one_or_none()
        if row is None:
            return None
        with readable(f"store {self._url.text}: what the process of run {run_id} said last"):
            return ProcessSeen(row[0], int(row[1]), {**json.loads(row[2])})


def _bar_row(label: int, text: str) -> "BarRow":
    from services.feeds.port import BarRow  # a command that only lists runs needs no arrays
    from trading_core.live.growing_bars import bar_of

    stored = json.loads(text)
    bars = {
        symbol: bar_of(*(math.nan if value is None else float(value) for value in values))
        for symbol, values in stored["bars"].items()
    }
    return BarRow(label, bars, stored["blocked"], stored.get("history", False), stored.get("extra", {}))


def _order_values(run_id: str, row: JournalRow) -> dict[str, Any]:
    order_id = json.loads(row.payload)["order_id"]
    order = {"run_id": run_id, "order_id": order_id, "seq": row.seq, "state": "intended"}
    return order | {"hash": hash_values(order_id, row.seq, "intended")}
