"""The session of a stored run as it stood at a bar close: replayed, compared row by row, and stopped there.

What is asked about a run that is over needs more than its journal holds: features, ledgers, lifecycle. A run
is a function of its settings and bars, so all of it is made again, and every row is held against the stored
one; a run that does not come out the same is not answered for. Writes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from schemas.canonical import ns_to_datetime
from schemas.config import Settings
from schemas.errors import ConfigError, ThinktwiceError
from schemas.playbook import PlaybookDefinition
from services.journal.sinks import ComparingSink, ReplayStopped
from services.journal.writer import JournalWriter
from services.store.journal_repository import StoredContents
from trading_core.bars import BarSeries
from worker.bootstrap import assemble
from worker.runs.replay import stored_cassette
from worker.runs.sifted_bars import SiftedBars, sifted_bars
from worker.runs.store_run import Progress
from worker.runs.trials import ledger_of_run
from worker.session import Session, Timing

if TYPE_CHECKING:
    from services.store import RunRecord, Store


@dataclass(frozen=True)
class Rebuilt:
    """A session that stands at the close of bar `row`, `known_at` in ns; `compared` rows were as stored."""

    run_id: str
    session: Session
    row: int
    known_at: int
    compared: int


async def rebuild(
    settings: Settings,
    bars: BarSeries,
    store: "Store",
    record: "RunRecord",
    *,
    at: int | None = None,
    definitions: Sequence[PlaybookDefinition] | None = None,
    progress: Progress | None = None,
) -> Rebuilt:
    """The session of a run as of the last bar close at or before a time.

    Args:
        settings: as they were stored with the run.
        bars: all bars of the run.
        store: an open store.
        record: of the run; it is over.
        at: ns; None for the end of what the run has recorded.
        definitions: playbooks; None loads the configured ones.
        progress: told (bars done, bars to do) between bars.

    Raises:
        ConfigError: the bars are others, no bar had closed by then, or a row differs from the stored one.
    """
    if bars.sha256 != record.data["sha256"]:
        raise ConfigError(
            f"the bars hash to {bars.sha256[:16]}, those of {record.run_id} to {record.data['sha256'][:16]}: "
            "name the run's file with --data"
        )
    sifted = sifted_bars(bars, settings.data)
    bars = sifted.bars
    row = await _row(bars, store, record, at)
    cassette = await stored_cassette(store, record) if settings.uses_models else None
    sink = ComparingSink(StoredContents(store.journal), record.run_id, record.events)
    journal = JournalWriter(sink, settings.runtime.flush_rows)
    try:
        ledger = await ledger_of_run(store, record)
        session = assemble(settings, bars, journal, definitions, cassette=cassette, ledger=ledger)
        await _run_to(session, row, sifted, progress)
    except ReplayStopped as stop:
        if stop.row is not None:
            raise differs(record, f"row {stop.row.seq} ({stop.row.kind}) differs") from stop
        # The stored rows of a run that broke off have ended; what was made beyond them decides nothing here.
    except ConfigError:
        raise
    except ThinktwiceError as error:
        raise differs(record, str(error)) from error
    return Rebuilt(record.run_id, session, row, int(bars.close_times[row]), sink.compared)


async def _run_to(session: Session, row: int, sifted: SiftedBars, progress: Progress | None) -> None:
    session.begin()
    timing = Timing()
    while session.engine.t <= row:
        await session.step(timing, end=min(row + 1, sifted.next_row(session.engine.t)))
        sifted.tell(session)
        await session.journal.checkpoint()
        if progress is not None:
            progress(session.engine.t, row + 1)
    await session.journal.flush()


async def _row(bars: BarSeries, store: "Store", record: "RunRecord", at: int | None) -> int:
    """The last row whose close was known at a time and within what the run has recorded."""
    end = int(bars.close_times[-1])
    if record.status != "finished":
        end = -1
        async for last in store.journal.rows(record.run_id, after=record.events - 2):
            end = last.known_at
    moment = end if at is None else min(at, end)
    row = int(np.searchsorted(bars.close_times, moment, side="right")) - 1
    if row < 0:
        first = ns_to_datetime(int(bars.close_times[0])).isoformat()
        raise ConfigError(f"run {record.run_id} had not closed a bar by then: its first closed at {first}")
    return row


def differs(record: "RunRecord", problem: str) -> ConfigError:
    """What to say of a run that does not come out as it was stored."""
    return ConfigError(
        f"run {record.run_id} does not replay as it was stored ({problem}): see "
        f"`thinktwice verify {record.run_id}`"
    )
