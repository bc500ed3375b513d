"""Start-up and recovery are one path: play what is stored, compare every hash, then read new bars.

A fresh run has nothing stored; one that was killed has everything up to its last transaction. What it had
decided comes out again bit by bit, or the run does not go on.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from schemas.errors import ConfigError
from services.journal.chain import JournalRow
from services.journal.writer import JournalSink
from worker.live.recorded_inputs import Player, Script
from worker.live.stepper import LiveStepper
from worker.models import RecordedPast
from worker.runs.replay import stored_cassette

if TYPE_CHECKING:
    from services.store import RunRecord, Store


class StoppedEarly(Exception):
    """A stop was asked for before the stepper stood where its run stands."""


class RecoveringSink:
    """Compares what is played with what is stored; behind the last stored row everything goes on to `behind`.

    Attributes:
        stored: rows that the store holds.
        compared: rows that were equal, or that lie before the savepoint that is gone on from.
    """

    def __init__(
        self, store: "Store", run_id: str, stored: int, behind: JournalSink, compared: int = 0
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._behind = behind
        self.stored = stored
        self.compared = compared

    @property
    def past(self) -> bool:
        """Whether rows are still compared."""
        return self.compared < self.stored

    async def write(self, rows: list[JournalRow]) -> None:
        """Compare a batch, and hand on what is new.

        Raises:
            ConfigError: a row differs from what is stored.
            StoreDamaged: what is stored is not what was written.
        """
        old = [row for row in rows if row.seq < self.stored]
        if old:
            stored = await self._store.journal.contents(self._run_id, old[0].seq, old[-1].seq)
            for row, digest in zip(old, stored, strict=True):
                if row.hash != digest:
                    raise ConfigError(
                        f"run {self._run_id} does not come out as it was stored: row {row.seq} ({row.kind}) "
                        f"differs. `thinktwice verify {self._run_id}` says more; another version of the "
                        "program or of the playbooks may have made it. Trade a new run with --new"
                    )
                self.compared = row.seq + 1
        new = rows[len(old) :]
        if new or not rows:
            await self._behind.write(new)


async def past_of(store: "Store", record: "RunRecord", sink: RecoveringSink) -> RecordedPast:
    """The replies that a run has had from its models, played until its past is over."""
    cassette = await stored_cassette(store, record, sink.compared)
    return RecordedPast(cassette, lambda: sink.past, recorded=record.events > 0)


async def recover(
    store: "Store",
    record: "RunRecord",
    stepper: LiveStepper,
    script: Script,
    player: Player,
    progress: Callable[[int], None] = lambda rows: None,
    stopped: Callable[[], bool] = lambda: False,
) -> int | None:
    """Bring a stepper to where its run stands, from its first row or from the savepoint that it stands at.

    Returns:
        The label of the last row, ns; None when there is none.

    Raises:
        StoppedEarly: a stop was asked for; nothing was changed.
        ConfigError: it does not come out as it was stored.
        StoreError: the store failed, or is damaged.
    """
    await store.seals.demand(record.run_id)
    async for rows in player.play(stepper, store.trading.rows(record.run_id, stepper.rows)):
        progress(rows)
        await asyncio.sleep(0)  # others say that this process lives, and hear that it shall stop
        if stopped():
            raise StoppedEarly
    await stepper.journal.flush()
    if stepper.journal.events < record.events:
        raise ConfigError(
            f"run {record.run_id} comes out with {stepper.journal.events} of {record.events} stored rows: "
            "its bars are incomplete. Restore a backup, or trade a new run with --new"
        )
    return int(stepper.session.bars.times[stepper.rows - 1]) if stepper.begun else None
