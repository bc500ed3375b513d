"""Replay a stored paper run from what it took in, and compare it row by row, as `verify` does.

Its bars, the anomalies of its feed, the bars at which answers arrived, what was late and what the operator
asked all stand in the store: nothing is measured, nobody is asked, no file is read.
"""

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from schemas.config import Settings
from schemas.errors import CassetteMiss, ConfigError, ThinktwiceError
from schemas.playbook import PlaybookDefinition
from schemas.vocabulary import TIMEFRAME_SECONDS
from services.feeds.port import BarRow
from services.journal.sinks import ComparingSink, ReplayStopped
from services.journal.writer import JournalWriter
from services.store.journal_repository import StoredContents
from trading_core.bars import NS
from worker.live.recorded_inputs import Player, read_script
from worker.live.stepper import LiveStepper, Market
from worker.models import Models, RecordedPast
from worker.runs.rebuild import Rebuilt, differs
from worker.runs.replay import ReplayReport, compared_document, stopped_report, stored_cassette
from worker.runs.run_result import RunResult
from worker.runs.store_run import Progress
from worker.runs.trials import NoTrial, ledger_of_run

if TYPE_CHECKING:
    from services.store import RunRecord, Store


async def replay_paper(
    settings: Settings,
    store: "Store",
    record: "RunRecord",
    *,
    definitions: Sequence[PlaybookDefinition] | None = None,
    progress: Progress | None = None,
) -> ReplayReport:
    """Play a paper run again and compare; never raises for a difference."""
    sink = ComparingSink(store.journal, record.run_id, record.events)
    journal = JournalWriter(sink, settings.runtime.flush_rows)
    desk, player = await _desk(settings, store, record, journal, definitions)
    problem: str | None = None
    try:
        try:
            async for rows in player.play(desk, store.trading.rows(record.run_id)):
                await journal.checkpoint()
                if progress is not None:
                    progress(rows, None)
            if record.status == "finished" and desk.begun:
                desk.session.finish()
        except CassetteMiss as miss:
            problem = f"the replay asks a model what was not recorded: {miss}"
        except ThinktwiceError as error:
            problem = f"the replay failed after {journal.events} rows: {error}"
        await journal.flush()
    except ReplayStopped as stop:
        return stopped_report(stop, sink, record)
    if sink.compared < record.events:
        ended = f"the replay ended after {sink.compared} of {record.events} rows"
        return ReplayReport(False, sink.compared, record.events, journal.head_hash, problem or ended)
    whole = problem is None and desk.begun
    outcome = RunResult(desk.session, desk.timing) if whole else None
    told = compared_document(record, outcome, store.url)
    ok = problem is None and not told
    return ReplayReport(ok, sink.compared, record.events, journal.head_hash, problem, told)


async def rebuild_paper(
    settings: Settings,
    store: "Store",
    record: "RunRecord",
    *,
    at: int | None = None,
    definitions: Sequence[PlaybookDefinition] | None = None,
    progress: Progress | None = None,
) -> Rebuilt:
    """The session of a paper run as of the last bar close at or before a time; see `rebuilding.rebuild`.

    Args:
        settings: as they were stored with the run.
        store: an open store.
        record: of the run; it is over.
        at: ns; None for its end.
        definitions: playbooks; None loads the configured ones.
        progress: told (rows done, None) between rows: how many there are is not known.

    Raises:
        ConfigError: no bar had closed by then, or a row differs from the stored one.
    """
    sink = ComparingSink(StoredContents(store.journal), record.run_id, record.events)
    journal = JournalWriter(sink, settings.runtime.flush_rows)
    desk, player = await _desk(settings, store, record, journal, definitions)
    data = record.data
    shift = 0 if data["label"] == "close" else TIMEFRAME_SECONDS[data["timeframe"]] * NS

    async def until() -> AsyncIterator[BarRow]:
        async for row in store.trading.rows(record.run_id):
            if at is not None and row.label + shift > at:
                return
            yield row

    try:
        async for rows in player.play(desk, until()):
            await journal.checkpoint()
            if progress is not None:
                progress(rows, None)
        await journal.flush()
    except ReplayStopped as stop:
        problem = "it goes on after its stored end" if stop.row is None else f"row {stop.row.seq} differs"
        raise differs(record, problem) from stop
    except ConfigError:
        raise
    except ThinktwiceError as error:
        raise differs(record, str(error)) from error
    if not desk.begun:
        raise ConfigError(f"run {record.run_id} had not closed a bar by then")
    row = desk.rows - 1
    known_at = int(desk.session.bars.close_times[row])
    return Rebuilt(record.run_id, desk.session, row, known_at, sink.compared)


async def _desk(
    settings: Settings,
    store: "Store",
    record: "RunRecord",
    journal: JournalWriter,
    definitions: Sequence[PlaybookDefinition] | None,
) -> tuple[LiveStepper, Player]:
    """A desk for the stored run, and the player of its script.

    Its own journal answers for its models: no file of replies is played, and none is written.
    """
    silent = settings.runtime.model_copy(update={"llm": "live", "cassette": None})
    settings = settings.model_copy(update={"runtime": silent})
    past = None
    if settings.uses_models:
        past = RecordedPast(await stored_cassette(store, record), lambda: True)
    player, data = Player(await read_script(store, record.run_id)), record.data
    desk = LiveStepper(
        settings,
        Market(tuple(data["symbols"]), data["timeframe"], data["label"]),
        journal,
        lock_step=data["lock_step"],
        ask=player.ask,
        definitions=definitions,
        models=Models(),
        past=past,
        trial=NoTrial(await ledger_of_run(store, record)),
    )
    return desk, player
