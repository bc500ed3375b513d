"""Replay a stored paper run from what it took in, and compare it row by row, as `verify` does.

Its bars, the anomalies of its feed, the bars at which answers arrived, what was late and what the operator
asked all stand in the store: nothing is measured, nobody is asked, no file is read.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from schemas.config import Settings
from schemas.errors import CassetteMiss, ThinktwiceError
from schemas.playbook import PlaybookDefinition
from services.journal.sinks import ComparingSink, ReplayStopped
from services.journal.writer import JournalWriter
from worker.models import Models, RecordedPast
from worker.replay import ReplayReport, stopped_report, stored_cassette
from worker.trading.desk import Market, TradingDesk
from worker.trading.script import Player, read_script

if TYPE_CHECKING:
    from services.store import RunRecord, Store


async def replay_paper(
    settings: Settings,
    store: "Store",
    record: "RunRecord",
    *,
    definitions: Sequence[PlaybookDefinition] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReplayReport:
    """Play a paper run again and compare; never raises for a difference."""
    sink = ComparingSink(store.journal, record.run_id, record.events)
    journal = JournalWriter(sink, settings.runtime.flush_rows)
    past = None
    if settings.uses_models:
        past = RecordedPast(await stored_cassette(store, record), lambda: True)
    script = await read_script(store, record.run_id)
    player = Player(script)
    data = record.data
    desk = TradingDesk(
        settings,
        Market(tuple(data["symbols"]), data["timeframe"], data["label"]),
        journal,
        lock_step=data["lock_step"],
        ask=player.ask,
        definitions=definitions,
        models=Models(),
        past=past,
    )
    problem: str | None = None
    try:
        try:
            async for rows in player.play(desk, store.trading.rows(record.run_id)):
                await journal.checkpoint()
                if progress is not None:
                    progress(rows, rows)
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
    return ReplayReport(problem is None, sink.compared, record.events, journal.head_hash, problem)
