"""A run as a trial of its store: entered in the ledger when it begins, and told as it advances."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from schemas.canonical import content_hash
from schemas.errors import StoreError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.trials import TrialCounts, TrialLedger
from services.high_level.hypotheses import declared_hypotheses
from services.ports import TrialCounter
from services.store.trials import TriedOn
from trading_core.bars import BarSeries

if TYPE_CHECKING:
    from services.store import Store


@dataclass(eq=False)
class StoredTrial:
    """What a run of a store starts with, and what it has tried."""

    store: "Store"  # open, with every table
    run_id: str
    settings: Settings
    fresh: bool = False  # it starts as on an empty store
    # awaited when the store is away, before it is asked again; it may raise
    away: Callable[[StoreError], Awaitable[None]] | None = None
    _declared: frozenset[str] = field(default_factory=frozenset, init=False)
    _slow_loop: TrialCounter | None = field(default=None, init=False)
    _shown: TrialCounts | None = field(default=None, init=False)

    async def begin(
        self, bars: BarSeries, definitions: Sequence[PlaybookDefinition], *, grows: bool = False
    ) -> TrialLedger:
        """Enter the run; one that was entered before keeps what it started with.

        Raises:
            StoreError: the ledger cannot be read or written.
        """
        self.declares(definitions, bars.timeframe)
        on = describe_trial(self.settings, definitions, bars, grows=grows)
        while True:
            try:
                return await self.store.trials.begin(self.run_id, on, len(self._declared), fresh=self.fresh)
            except StoreError as error:
                if self.away is None or not error.retryable:
                    raise
                await self.away(error)

    def declares(self, definitions: Sequence[PlaybookDefinition], timeframe: str) -> None:
        """The playbooks of the run, where it began in another process."""
        self._declared = frozenset(declared_hypotheses(definitions, [timeframe]))

    def follow(self, slow_loop: TrialCounter) -> None:
        """Count what the slow loop tries."""
        self._slow_loop = slow_loop

    def news(self) -> TrialCounts | None:
        """What has been tried so far; None where the ledger knows it already, or nothing has begun."""
        counts = None if self._slow_loop is None else self._slow_loop.count_trials(self._declared)
        return None if counts == self._shown else counts

    def note_stored(self, counts: TrialCounts) -> None:
        """The ledger knows these."""
        self._shown = counts

    async def advance(self) -> None:
        """Tell the ledger how far the run has come."""
        counts = self.news()
        if counts is not None:
            await self.store.trials.advance(self.run_id, counts)
            self.note_stored(counts)


def describe_trial(
    settings: Settings, definitions: Sequence[PlaybookDefinition], bars: BarSeries, *, grows: bool = False
) -> TriedOn:
    """A configuration on bars, as the ledger knows it."""
    return TriedOn(
        settings.config_hash,
        content_hash(sorted(definition.content_hash for definition in definitions)),  # in whatever order
        bars.select(end_ns=int(bars.times[0])).sha256,
        bars.timeframe,
        tuple(bars.symbols),
        int(bars.times[0]),
        None if grows else int(bars.times[-1]),
    )
