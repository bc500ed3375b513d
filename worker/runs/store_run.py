"""Run a backtest into the store, so that the run row and its journal agree however the run ends.

Finished, interrupted and failed runs all keep what they had decided; an interrupted one is what `verify`
accepts up to its last row. The runner itself knows no store.
"""

import asyncio
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from schemas.episode import Episode
from schemas.errors import StoreError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.journal.sinks import StoreSink
from services.journal.writer import JournalWriter
from worker.operations.environment import environment
from worker.runs.interrupts import RunInterrupted
from worker.runs.progress import Progress
from worker.runs.trials import RunTrial

if TYPE_CHECKING:
    from services.store import NewRun, RunRecord, RunStatus, Store
    from trading_core.bars import BarSeries
    from worker.models import Overrides
    from worker.runs.stored_trial import StoredTrial


def new_run(settings: Settings, name: str, mode: str, data: dict[str, Any]) -> "NewRun":
    """The row of a run that begins now; `data` says which bars it takes."""
    from services.store import NewRun, mask_password

    config = settings.payload()
    config["runtime"]["db"] = mask_password(settings.runtime.db)
    return NewRun(
        name=name,
        created_at=time.time_ns(),
        mode=mode,
        config_hash=settings.config_hash,
        config=config,
        data=data,
        environment=environment(),
    )


class RunOutcome(Protocol):
    """What a runner gives back."""

    @property
    def trades(self) -> Sequence[Episode]:
        """Closed positions in order."""

    @property
    def equity(self) -> tuple[Sequence[int], Sequence[float]]:
        """Close times (ns) and equity at them."""

    @property
    def stale_positions(self) -> Sequence[str]:
        """Open positions whose symbols have stopped trading, and what waits for them."""

    def document(self, run_id: str, journal_url: str) -> dict[str, Any]:
        """The JSON document of the run."""


class BacktestRunner(Protocol):
    """`worker.runs.backtest.run_backtest`, by shape."""

    async def __call__(
        self,
        settings: Settings,
        bars: "BarSeries",
        journal: JournalWriter,
        *,
        definitions: Sequence[PlaybookDefinition] | None = None,
        progress: Progress | None = None,
        trial: RunTrial | None = None,
        until: int | None = None,
        own: "Overrides" = ...,
    ) -> RunOutcome:
        """Run over the bars closed by `until` into `journal`; `own` answers for the models."""


@dataclass(frozen=True)
class RecordedRun:
    """A finished run as stored."""

    record: "RunRecord"
    outcome: RunOutcome
    document: dict[str, Any]


async def record_run(
    runner: BacktestRunner,
    settings: Settings,
    bars: "BarSeries",
    store: "Store",
    run: "NewRun",
    *,
    definitions: Sequence[PlaybookDefinition] | None = None,
    progress: Progress | None = None,
    fresh_ledger: bool | None = None,
) -> RecordedRun:
    """Store the run, run it, store its end.

    A run that is entered in the ledger of trials starts as on an empty store where that is `fresh`; where it
    is None, the run is no trial of its own. `progress` may raise `RunInterrupted`.

    Raises:
        RunInterrupted: the operator stopped it; the run is stored as interrupted.
        StoreDamaged: the ledger of trials is not as it was sealed; no run is stored.
    """
    if fresh_ledger is not None:
        await store.trials.all()  # a ledger that is damaged refuses the run before it is stored
    record = await store.runs.create(run)
    journal = JournalWriter(StoreSink(store.journal, record.run_id), settings.runtime.flush_rows)
    trial = None
    if fresh_ledger is not None:
        from worker.runs.stored_trial import StoredTrial

        trial = StoredTrial(store, record.run_id, settings, fresh=fresh_ledger)
    try:
        outcome = await runner(
            settings, bars, journal, definitions=definitions, progress=progress, trial=trial
        )
        await journal.flush()
        if trial is not None:
            await trial.advance()
        document = outcome.document(record.run_id, store.url)
        await store.runs.close(record.run_id, "finished", document)
    except (RunInterrupted, KeyboardInterrupt, asyncio.CancelledError) as stop:
        await _close_early(store, record.run_id, journal, "interrupted", trial)
        signum = stop.signum if isinstance(stop, RunInterrupted) else signal.SIGINT
        raise RunInterrupted(signum, record.run_id) from stop
    except BaseException:
        # The failure itself is what the operator has to see, not that the store could not take its last rows.
        with suppress(StoreError):
            await _close_early(store, record.run_id, journal, "failed", trial)
        raise
    return RecordedRun(await store.runs.find(record.run_id), outcome, document)


async def _close_early(
    store: "Store", run_id: str, journal: JournalWriter, status: "RunStatus", trial: "StoredTrial | None"
) -> None:
    await journal.flush()
    if trial is not None:
        await trial.advance()
    await store.runs.close(run_id, status)
