"""Runs as trials: what a run starts with from the ledger of its store.

The ledger is read once, before a run's first row, which holds it from then on: whoever plays the run again,
goes on with it or looks at it reads that row and never the ledger. A run that is given no trial is none.
"""

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from pydantic import ValidationError

from schemas.playbook import PlaybookDefinition
from schemas.trials import NO_TRIALS, TrialCounts, TrialLedger

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from trading_core.bars import BarSeries


class TrialCounter(Protocol):
    """Counts what a run tries."""

    def tried(self, declared: Collection[str]) -> TrialCounts:
        """What was tried so far, the declared hypotheses included."""
        ...


class RunTrial(Protocol):
    """What a runner asks before the first row of a run, and tells once it has begun."""

    async def begin(
        self, bars: "BarSeries", definitions: Sequence[PlaybookDefinition], *, grows: bool = False
    ) -> TrialLedger:
        """What the run starts with; `bars` are all of its bars, or the first row of those that `grows`."""
        ...

    def follow(self, slow_loop: TrialCounter) -> None:
        """The slow loop of the run: what it tries is counted from here on."""
        ...


class NoTrial:
    """A run that is no trial of its own: it starts with what it is given."""

    def __init__(self, ledger: TrialLedger = NO_TRIALS) -> None:
        self._ledger = ledger

    async def begin(
        self, bars: "BarSeries", definitions: Sequence[PlaybookDefinition], *, grows: bool = False
    ) -> TrialLedger:
        """What it was given."""
        return self._ledger

    def follow(self, slow_loop: TrialCounter) -> None:
        """Nothing is counted."""


async def ledger_of_run(store: "Store", record: "RunRecord") -> TrialLedger:
    """What a stored run started with: the word of its first row.

    Raises:
        StoreDamaged: the row cannot be read.
    """
    from services.store.failures import MEND, StoreDamaged

    async for row in store.journal.rows(record.run_id, kinds={"genesis"}):
        try:
            told = json.loads(row.payload).get("ledger")
            return NO_TRIALS if told is None else TrialLedger.model_validate(told)
        except (ValueError, TypeError, AttributeError, RecursionError, ValidationError) as error:
            raise StoreDamaged(
                f"store {store.url}: run {record.run_id!r}: its first row cannot be read ({error}); {MEND}"
            ) from error
    return NO_TRIALS
