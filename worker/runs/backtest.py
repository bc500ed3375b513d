"""The backtest runner: drives the engine from boundary to boundary over bars that are all there already.

After the kernel come episodes, then the policy loop, then the slow loop; what the slow loop changes starts
with the next bar. A rules-only run depends on no wall time, so the same configuration and bars give the
same journal.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError, DataError
from schemas.playbook import PlaybookDefinition
from schemas.settings import DataSettings, Settings
from services.feeds.plausibility import doubted_bars
from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from services.journal.writer import JournalWriter
from services.playbooks.assembly import given_playbooks
from trading_core.bars import BarSeries
from worker.bootstrap import assemble
from worker.models import NO_OVERRIDES, Overrides
from worker.runs.forecast import RunForecast
from worker.runs.run_result import RunResult
from worker.runs.trials import GivenTrial, RunTrial
from worker.runs.warm_up import compile_engine
from worker.session import Session, Timing

Progress = Callable[[int, int], None]


async def run_backtest(
    settings: Settings,
    bars: BarSeries,
    journal: JournalWriter,
    *,
    definitions: Sequence[PlaybookDefinition] | None = None,
    progress: Progress | None = None,
    trial: RunTrial | None = None,
    until: int | None = None,
    own: Overrides = NO_OVERRIDES,
) -> RunResult:
    """Run over all bars, recording into `journal`.

    The journal is flushed at the end, also when the run is interrupted. Without `definitions` the configured
    playbooks are loaded, without a `trial` nothing is counted. Bars that closed after `until`, ns, are left
    for another time, and the run does not end.

    Raises:
        ConfigError: no bar had closed by `until`.
        DataError: `data.plausibility` is `always`, and every bar is in doubt.
        InvariantViolation: a guarantee of the engine did not hold.
        CassetteMiss: a reply to be played back was not recorded.
    """
    started = time.perf_counter()
    timing = Timing(compile_s=compile_engine())
    sifted = sifted_bars(bars, settings.data)
    rows = _rows(sifted.bars, until)
    books = given_playbooks(settings, definitions)
    trial = trial or GivenTrial()
    ledger = await trial.begin(sifted.bars, books)
    session = assemble(settings, sifted.bars, journal, books, own, ledger=ledger)
    trial.follow(session.slow_loop)
    session.stops_without_model = settings.llm.on_lost != "rules"
    session.begin()
    own.prepare(session)
    forecast = RunForecast(session.models.account, own.say)
    try:
        while session.engine.t < rows and session.ended_early is None:
            await session.step(timing, end=min(rows, sifted.next_row(session.engine.t)))
            sifted.tell(session)
            forecast.look(session.engine.t, rows)
            await journal.checkpoint()
            if progress is not None:
                progress(session.engine.t, rows)
        if until is None:
            session.finish()
    finally:
        await session.models.live.close()
        await journal.flush()
    timing.total_s = time.perf_counter() - started
    return RunResult(session, timing)


def _rows(bars: BarSeries, until: int | None) -> int:
    rows = bars.shape[0] if until is None else int(bars.close_times.searchsorted(until, side="right"))
    if rows == 0:
        first = ns_to_datetime(int(bars.close_times[0])).isoformat()
        raise ConfigError(f"the run had not closed a bar by then: its first closed at {first}")
    return rows


@dataclass(frozen=True)
class SiftedBars:
    """Bars to trade on."""

    bars: BarSeries  # without those in doubt
    # what is to be journalled once so many rows are validated
    shown: Mapping[int, list[FeedAnomaly]] = field(default_factory=dict)

    def next_row(self, t: int) -> int:
        """The row before which the next doubt is told; else the number of rows."""
        return min((row for row in self.shown if row > t), default=self.bars.shape[0])

    def tell(self, session: Session) -> None:
        """Journal what is to be told where the session stands, once a step."""
        for anomaly in self.shown.get(session.engine.t, ()):
            session.note_anomaly(anomaly.payload())


def sifted_bars(bars: BarSeries, settings: DataSettings) -> SiftedBars:
    """The bars as a run over recorded bars takes them: all, unless `data.plausibility` is `always`.

    Raises:
        DataError: every bar is in doubt.
    """
    doubts = list(doubted_bars(bars, settings)) if settings.plausibility == "always" else []
    if not doubts:
        return SiftedBars(bars)
    present = bars.present.copy()
    for row, anomaly in doubts:
        if anomaly.kind is FeedAnomalyKind.UNSETTLED:
            continue
        present[row, bars.symbols.index(str(anomaly.symbol))] = False
    kept = present.any(axis=1)
    if not kept.any():
        raise DataError("every bar is implausible: data.plausibility = 'off' takes them as they are")
    left = bars.take(np.flatnonzero(kept), np.arange(len(bars.symbols)), present)
    payload: dict[int, list[FeedAnomaly]] = {}
    rows = np.flatnonzero(kept)
    for row, anomaly in doubts:
        before = max(1, int(np.searchsorted(rows, row)))  # nothing is journalled before the first row
        payload.setdefault(before, []).append(anomaly)
    return SiftedBars(left, payload)
