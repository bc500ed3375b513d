"""Replay a stored run and compare it row by row: same configuration and bars must give the same hashes.

Of a run that did not finish, the rows up to its last one are compared. Models are not asked again: their
replies, failures and timeouts come from the run's own journal, everything else is done anew.
Writes nothing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from agents.language_models.cassette import KIND, Cassette, recorded_call
from schemas.config import Settings
from schemas.errors import ConfigError, ThinktwiceError
from schemas.playbook import PlaybookDefinition
from services.journal.chain import GENESIS_HASH
from services.journal.sinks import ComparingSink, ReplayStopped
from services.journal.writer import JournalWriter
from worker.operations.environment import STORE_REVISION, environment
from worker.runs.store_run import BacktestRunner, Progress, RunOutcome
from worker.runs.stored_document import differences
from worker.runs.trials import NoTrial, ledger_of_run

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from trading_core.bars import BarSeries


@dataclass(frozen=True)
class ReplayReport:
    """Result of a replay. `compared` rows were equal; `problem` says what happened after them.

    `document` tells what the stored document says otherwise than the one that comes out; None when it was not
    compared: the run has not finished, or its rows differ. `playable` is false for a run of another version,
    of which nothing could be compared.
    """

    ok: bool
    compared: int
    stored: int
    head_hash: str | None
    problem: str | None = None
    document: tuple[str, ...] | None = None
    playable: bool = True


class SettingsOfAnotherVersion(ConfigError):
    """A run was stored with settings that this version does not know, or takes otherwise."""


def stored_settings(record: "RunRecord") -> Settings:
    """The settings of a stored run.

    Raises:
        SettingsOfAnotherVersion: they no longer fit.
        ConfigError: they are not what the run recorded as hashed.
    """
    try:
        settings = Settings.model_validate(record.config)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise SettingsOfAnotherVersion(
            f"the stored configuration of {record.run_id} does not fit this version "
            f"({place}: {first['msg']}): use the version that made it"
        ) from error
    if settings.config_hash != record.config_hash:
        raise ConfigError(
            f"the stored configuration of {record.run_id} hashes to {settings.config_hash[:16]}, recorded "
            f"was {record.config_hash[:16]}: it was changed, or another version made it"
        )
    return settings


async def replay_run(
    runner: BacktestRunner,
    settings: Settings,
    bars: "BarSeries",
    store: "Store",
    record: "RunRecord",
    *,
    definitions: Sequence[PlaybookDefinition] | None = None,
    progress: Progress | None = None,
) -> ReplayReport:
    """Run again and compare; never raises for a difference."""
    recorded = record.data.get("sha256")
    if not isinstance(recorded, str):
        unnamed = f"not replayed: the row of {record.run_id} ({record.mode!r}) names no hash of its bars"
        return ReplayReport(False, 0, record.events, None, unnamed)
    if bars.sha256 != recorded:
        changed = (
            f"the bars hash to {bars.sha256[:16]}, not {recorded[:16]}: name those of the run with --data"
        )
        return ReplayReport(False, 0, record.events, None, changed)
    try:
        cassette = await stored_cassette(store, record) if settings.uses_models else None
    except (ValueError, TypeError):
        changed = "not replayed: a recorded reply cannot be read, so the journal was changed"
        return ReplayReport(False, 0, record.events, None, changed)
    sink = ComparingSink(store.journal, record.run_id, record.events)
    journal = JournalWriter(sink, settings.runtime.flush_rows)
    problem: str | None = None
    outcome: RunOutcome | None = None
    try:
        try:
            outcome = await runner(
                settings,
                bars,
                journal,
                definitions=definitions,
                progress=progress,
                cassette=cassette,
                trial=NoTrial(await ledger_of_run(store, record)),
            )
        except ThinktwiceError as error:
            problem = f"the replay failed after {journal.events} rows: {error}"
        await journal.flush()
    except ReplayStopped as stop:
        return stopped_report(stop, sink, record)
    if sink.compared < record.events:
        ended = f"the replay ended after {sink.compared} of {record.events} rows"
        return ReplayReport(False, sink.compared, record.events, journal.head_hash, problem or ended)
    ok = problem is None or record.status != "finished"
    told = compared_document(record, outcome, store.url) if ok else None
    return ReplayReport(
        ok and not told, sink.compared, record.events, journal.head_hash, None if ok else problem, told
    )


def compared_document(
    record: "RunRecord", outcome: RunOutcome | None, journal_url: str
) -> tuple[str, ...] | None:
    """What the stored document of a finished run says otherwise than its replay; None where there is none."""
    if outcome is None or record.status != "finished":
        return None
    present = environment()
    # Runs without a revision of the store are older than its note, whatever version they name.
    same = all(record.environment.get(name) == present[name] for name in ("thinktwice", STORE_REVISION))
    return differences(record.document, outcome.document(record.run_id, journal_url), same_version=same)


async def stored_cassette(store: "Store", record: "RunRecord") -> Cassette:
    """The replies that a run recorded in its own journal; empty when its models were never asked."""
    calls = [
        recorded_call(json.loads(row.payload), json.loads(row.telemetry or "null"))
        async for row in store.journal.rows(record.run_id, kinds={KIND})
    ]
    return Cassette(f"the journal of {record.run_id}", calls)


def stopped_report(stop: ReplayStopped, sink: ComparingSink, record: "RunRecord") -> ReplayReport:
    """What to say of a replay that a difference, or the end of what is stored, has stopped."""
    if stop.row is not None:
        problem = f"row {stop.row.seq} ({stop.row.kind}) differs from the stored one"
        return ReplayReport(False, sink.compared, record.events, None, problem)
    if record.status == "finished":
        problem = f"the replay went on after the {record.events} rows of the finished run"
        return ReplayReport(False, sink.compared, record.events, None, problem)
    head = record.head_hash if record.events else GENESIS_HASH
    return ReplayReport(True, sink.compared, record.events, head)
