"""The backtest runner: drives the engine from boundary to boundary over bars that are all there already.

After the kernel come episodes, then the policy loop, then the slow loop; what the slow loop changes starts
with the next bar. A rules-only run depends on no wall time, so the same configuration and bars give the
same journal.
"""

import time
from collections.abc import Callable, Sequence

from agents.language_models.cassette import Cassette
from schemas.canonical import ns_to_datetime
from schemas.errors import ConfigError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.journal.writer import JournalWriter
from services.playbooks.assembly import given_playbooks
from trading_core.bars import BarSeries
from worker.bootstrap import OURS, OwnParts, assemble
from worker.models import Models
from worker.runs.run_result import RunResult
from worker.runs.sifted_bars import sifted_bars
from worker.runs.trials import NoTrial, RunTrial
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
    models: Models | None = None,
    cassette: Cassette | None = None,
    prepare: Callable[[Session], None] | None = None,
    trial: RunTrial | None = None,
    until: int | None = None,
    own: OwnParts = OURS,
) -> RunResult:
    """Run over all bars, recording into `journal`.

    Args:
        settings: the resolved configuration.
        bars: all bars of the run.
        journal: empty writer; flushed at the end, also when the run is interrupted.
        definitions: playbooks; None loads the configured folder or the embedded ones.
        progress: called with rows done and rows in all.
        models: language models to ask; None makes the configured ones.
        cassette: recorded replies to play instead of asking a model.
        prepare: changes the session once it has begun; only the ablation has a use for it.
        trial: says what was tried on these bars before, and counts what is tried now; None does neither.
        until: ns; bars that closed later are left for another time, and the run does not end. None: all.
        own: what the caller puts around parts of the session.

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
    trial = trial or NoTrial()
    ledger = await trial.begin(sifted.bars, books)
    session = assemble(settings, sifted.bars, journal, books, models, cassette, ledger=ledger, own=own)
    trial.follow(session.slow_loop)
    session.begin()
    if prepare is not None:
        prepare(session)
    try:
        while session.engine.t < rows:
            await session.step(timing, end=min(rows, sifted.next_row(session.engine.t)))
            sifted.tell(session)
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
    """How many bars had closed by then."""
    rows = bars.shape[0] if until is None else int(bars.close_times.searchsorted(until, side="right"))
    if rows == 0:
        first = ns_to_datetime(int(bars.close_times[0])).isoformat()
        raise ConfigError(f"the run had not closed a bar by then: its first closed at {first}")
    return rows
