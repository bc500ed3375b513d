"""Runs as trials: what a run starts with from the ledger of its store.

The ledger is read once, before a run's first row, which holds it from then on: whoever plays the run again,
goes on with it or looks at it reads that row and never the ledger. A run that is given no trial is none.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import ValidationError

from schemas.canonical import ns_to_datetime
from schemas.playbook import PlaybookDefinition
from schemas.trials import COUNTS, NO_TRIALS, TrialLedger
from services.ports import TrialCounter

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from services.store.trials import Trial
    from trading_core.bars import BarSeries


class RunTrial(Protocol):
    """What a runner asks before the first row of a run, and tells once it has begun."""

    async def begin(
        self, bars: "BarSeries", definitions: Sequence[PlaybookDefinition], *, grows: bool = False
    ) -> TrialLedger:
        """What the run starts with; `bars` are all of its bars, or the first row of those that `grows`."""

    def follow(self, slow_loop: TrialCounter) -> None:
        """The slow loop of the run: what it tries is counted from here on."""


@dataclass(frozen=True)
class GivenTrial:
    """A run that starts with what it is given: one of another process, which `follow` counts on, or none."""

    ledger: TrialLedger = NO_TRIALS
    follow: Callable[[TrialCounter], None] = lambda slow_loop: None

    async def begin(
        self, bars: "BarSeries", definitions: Sequence[PlaybookDefinition], *, grows: bool = False
    ) -> TrialLedger:
        """What it was given."""
        return self.ledger


async def ledger_of_run(store: "Store", record: "RunRecord") -> TrialLedger:
    """What a stored run started with: the word of its first row.

    Raises:
        StoreDamaged: the row cannot be read.
    """
    from services.store.failures import MEND, StoreDamaged

    async for row in store.journal.rows(record.run_id, kinds={"genesis"}):
        try:
            shown = json.loads(row.payload).get("ledger")
            return NO_TRIALS if shown is None else TrialLedger.model_validate(shown)
        except (ValueError, TypeError, AttributeError, RecursionError, ValidationError) as error:
            raise StoreDamaged(
                f"store {store.url}: run {record.run_id!r}: its first row cannot be read ({error}); {MEND}"
            ) from error
    return NO_TRIALS


def list_ranges(trials: "Sequence[Trial]") -> list[dict[str, Any]]:
    """What was tried, by bars; those that begin with the same row are one range, however long."""
    ranges: dict[str, list[Trial]] = {}
    for trial in trials:
        ranges.setdefault(trial.on.data, []).append(trial)
    return [_range(tried, trials) for tried in ranges.values()]


def _range(runs: "Sequence[Trial]", every: "Sequence[Trial]") -> dict[str, Any]:
    from services.store.trials import TriedOn, by_key, count_before, sum_trials

    on = runs[0].on
    last = max(label for run in runs if (label := run.on.last_label) is not None)
    new = TriedOn("", "", on.data, on.timeframe, on.symbols, on.first_label, last)
    tried, coming = sum_trials(by_key(runs).values()), count_before(every, new)
    return {
        "timeframe": on.timeframe,
        "symbols": list(on.symbols),
        "start": ns_to_datetime(on.first_label).isoformat(),
        "end": ns_to_datetime(last).isoformat(),
        "runs": [run.run_id for run in runs],
        **{name: getattr(tried, name) for name in COUNTS},
        "next": {name: getattr(coming, name) for name in COUNTS},
    }
