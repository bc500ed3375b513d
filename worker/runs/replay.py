"""Replay a stored run and compare it row by row: same configuration and inputs must give the same hashes.

What is played is a script: the bars of a backtest, or the bars of a paper run with everything else that came
from outside. Models are not asked again: their replies, failures and timeouts come from the run's own
journal, everything else is done anew. Of a run that did not finish, the rows up to its last one are compared.

What is asked about a run that is over needs more than its journal holds: features, ledgers, lifecycle. So its
session is made again the same way, up to a bar close. Writes nothing.

The stored document is compared with the one that comes out, but for what was measured and not decided (times,
latencies, overruns) and where the store lies; of another version only the figures that both have.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

from agents.language_models.cassette import KIND, Cassette, recorded_call
from schemas.errors import CassetteMiss, ConfigError, ThinktwiceError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.journal.chain import GENESIS_HASH
from services.journal.sinks import ComparingSink, ReplayStopped
from services.journal.writer import JournalWriter
from services.model_calls.quoting import visible
from worker.runs.progress import Progress
from worker.runs.store_run import BacktestRunner, RunOutcome
from worker.runs.stored_settings import is_of_this_version
from worker.runs.trials import GivenTrial, ledger_of_run

if TYPE_CHECKING:
    from services.store import RunRecord, Store
    from trading_core.bars import BarSeries
    from worker.runs.run_result import RunResult
    from worker.session import Session

MEASURED = frozenset(
    {"timing", "latency_ms", "reflection_latency_ms", "over_budget", "budget_held_share", "response_time_ms"}
    | {"forecast", "unused_early"}
)
PLACES = frozenset({"journal.url"})
SHOWN = 5


@dataclass(frozen=True)
class ReplayReport:
    """Result of a replay. `compared` rows were equal; `problem` says what happened after them.

    `document` tells what the stored document says otherwise than the one that comes out; None when it was not
    compared: the run has not finished, or its rows differ. `playable` is false for a run of another version
    or of parts that no store keeps, of which nothing could be compared.
    """

    ok: bool
    compared: int
    stored: int
    head_hash: str | None
    problem: str | None = None
    document: tuple[str, ...] | None = None
    playable: bool = True


class NotReplayable(ConfigError):
    """What a run is to be played from is not there, or not what it was."""


class Script(Protocol):
    """A stored run with everything that came into it, ready to be played."""

    @property
    def settings(self) -> Settings:
        """As they were stored with the run."""

    async def find_end(self) -> int | None:
        """The end of what the run has recorded, ns; None where its script ends there, too."""

    async def play(
        self, journal: JournalWriter, until: int | None, progress: Progress | None
    ) -> RunOutcome | None:
        """Play from the first row to the last bar that closed at or before `until`, ns.

        None plays all of it, and the end of a run that has finished. Before the first row nothing comes out.

        Raises:
            NotReplayable: its bars or recorded replies are not those of the run.
        """


@dataclass(frozen=True)
class BacktestScript:
    """A script of bars alone; `definitions` None loads the configured playbooks."""

    runner: BacktestRunner
    settings: Settings
    bars: "BarSeries"
    store: "Store"
    record: "RunRecord"
    definitions: Sequence[PlaybookDefinition] | None = None

    async def find_end(self) -> int | None:
        """The last stored row of a run that broke off: its file has more bars."""
        if self.record.status == "finished":
            return None
        end = -1
        async for last in self.store.journal.rows(self.record.run_id, after=self.record.events - 2):
            end = last.known_at
        return end

    async def play(
        self, journal: JournalWriter, until: int | None, progress: Progress | None
    ) -> RunOutcome | None:
        """Run the backtest again."""
        from worker.models import NO_OVERRIDES, Overrides  # with the clients, which a start does not wait for

        record, request = self.record, self.settings.uses_models
        demand_bars_of(record, self.bars)
        return await self.runner(
            self.settings,
            self.bars,
            journal,
            definitions=self.definitions,
            progress=progress,
            trial=GivenTrial(await ledger_of_run(self.store, record)),
            until=until,
            own=Overrides(cassette=await stored_cassette(self.store, record)) if request else NO_OVERRIDES,
        )


def demand_bars_of(record: "RunRecord", bars: "BarSeries") -> None:
    """Refuse bars that are not those of a run.

    Raises:
        NotReplayable: they are others, or the run does not name its own.
    """
    found, recorded = bars.sha256, record.data.get("sha256")
    if not isinstance(recorded, str):
        unnamed = f"the row of {record.run_id} ({record.mode!r}) names no hash of its bars"
        raise NotReplayable(f"not replayed: {unnamed}")
    if found != recorded:
        other = f"the bars hash to {found[:16]}, not {recorded[:16]}"
        raise NotReplayable(f"{other}: name those of the run with --data")
    further = record.data.get("extra", {})
    others = [name for name in further if bars.extra_hashes.get(name) != further[name]]
    if others:
        named = visible(", ".join(others))
        raise NotReplayable(f"further columns are not those of the run ({named}): name its bars with --data")


@dataclass(frozen=True)
class Rebuilt:
    """A session that stands at the close of bar `row`, `known_at` in ns; `compared` rows were as stored."""

    run_id: str
    session: "Session"
    row: int
    known_at: int
    compared: int


@dataclass(frozen=True)
class Replay:
    """A stored run, played again and held against what is stored."""

    script: Script
    store: "Store"
    record: "RunRecord"

    async def compare(self, progress: Progress | None = None) -> ReplayReport:
        """Play the whole run; never raises for a difference.

        `progress` is told (bars done, bars to do or None) between bars.
        """
        record = self.record
        sink = ComparingSink(self.store.journal, record.run_id, record.events)
        journal, problem = self._journal(sink), None
        outcome: RunOutcome | None = None
        try:
            try:
                outcome = await self.script.play(journal, None, progress)
            except NotReplayable as error:
                return ReplayReport(False, 0, record.events, None, str(error))
            except CassetteMiss as miss:
                problem = f"the replay asks a model what was not recorded: {miss}"
            except ThinktwiceError as error:
                problem = f"the replay failed after {journal.events} rows: {error}"
            await journal.flush()
        except ReplayStopped as stop:
            return _report_stop(stop, sink, record)
        if sink.compared < record.events:
            ended = f"the replay ended after {sink.compared} of {record.events} rows"
            return ReplayReport(False, sink.compared, record.events, journal.head_hash, problem or ended)
        ok = problem is None or record.status != "finished"
        shown = compared_document(record, outcome, self.store.url) if ok else None
        return ReplayReport(
            ok and not shown, sink.compared, record.events, journal.head_hash, None if ok else problem, shown
        )

    async def rebuild(self, at: int | None = None, progress: Progress | None = None) -> Rebuilt:
        """The session of a run that is over, as of the last bar close at or before a time, ns.

        None is the end of what the run has recorded.

        Raises:
            ConfigError: the bars are others, no bar had closed by then, or a row differs from the stored one.
        """
        record, ends = self.record, await self.script.find_end()
        until = min((moment for moment in (at, ends) if moment is not None), default=None)
        async for _ in self.store.journal.rows(record.run_id):
            pass  # each is held against its hash, with which those that are played are compared
        sink = ComparingSink(self.store.journal, record.run_id, record.events, beyond=ends is not None)
        journal = self._journal(sink)
        try:
            outcome = await self.script.play(journal, until, progress)
            await journal.flush()
        except ReplayStopped as stop:
            problem = "it goes on after its stored end"
            if stop.row is not None:
                problem = f"row {stop.row.seq} ({stop.row.kind}) differs"
            raise _differs(record, problem) from stop
        except ConfigError:
            raise
        except ThinktwiceError as error:
            raise _differs(record, str(error)) from error
        if outcome is None:
            raise ConfigError(f"run {record.run_id} had not closed a bar by then")
        session = cast("RunResult", outcome).session
        row = session.engine.t - 1
        return Rebuilt(record.run_id, session, row, int(session.bars.close_times[row]), sink.compared)

    def _journal(self, sink: ComparingSink) -> JournalWriter:
        return JournalWriter(sink, self.script.settings.runtime.flush_rows)


def compared_document(
    record: "RunRecord", outcome: RunOutcome | None, journal_url: str
) -> tuple[str, ...] | None:
    """What the stored document of a finished run says otherwise than its replay; None where there is none."""
    if outcome is None or record.status != "finished":
        return None
    document = outcome.document(record.run_id, journal_url)
    return differences(record.document, document, same_version=is_of_this_version(record))


async def stored_cassette(store: "Store", record: "RunRecord", start: int = 0) -> Cassette:
    """The replies that a run recorded in its own journal from row `start` on; empty when it asked no model.

    Raises:
        NotReplayable: one cannot be read.
    """
    try:
        calls = [
            recorded_call(json.loads(row.payload), json.loads(row.telemetry or "null"))
            async for row in store.journal.rows(record.run_id, kinds={KIND}, after=start - 1)
        ]
    except (ValueError, TypeError) as error:
        changed = "not replayed: a recorded reply cannot be read, so the journal was changed"
        raise NotReplayable(changed) from error
    return Cassette(f"the journal of {record.run_id}", calls)


def _report_stop(stop: ReplayStopped, sink: ComparingSink, record: "RunRecord") -> ReplayReport:
    problem = None
    if stop.row is not None:
        problem = f"row {stop.row.seq} ({stop.row.kind}) differs from the stored one"
    elif record.status == "finished":
        problem = f"the replay went on after the {record.events} rows of the finished run"
    head = None if problem else record.head_hash if record.events else GENESIS_HASH
    return ReplayReport(problem is None, sink.compared, record.events, head, problem)


def _differs(record: "RunRecord", problem: str) -> ConfigError:
    return ConfigError(
        f"run {record.run_id} does not replay as it was stored ({problem}): see "
        f"`thinktwice verify {record.run_id}`"
    )


def differences(
    stored: Mapping[str, Any] | None, replayed: Mapping[str, Any], *, same_version: bool = True
) -> tuple[str, ...]:
    """What a stored document says otherwise than the replayed one, the first few; empty when nothing.

    Only documents of the same version have to have the same figures.
    """
    if stored is None:
        return ("there is no document, and a finished run has one",)
    found = _differing(stored, json.loads(json.dumps(replayed, allow_nan=False)), "", same_version)
    return tuple(line for _, line in zip(range(SHOWN), found, strict=False))


def _differing(stored: Any, replayed: Any, path: str, whole: bool) -> Iterator[str]:
    if isinstance(stored, dict) and isinstance(replayed, dict):
        for name in sorted(stored.keys() | replayed.keys() if whole else stored.keys() & replayed.keys()):
            inner = f"{path}.{name}" if path else name
            if name not in stored:
                yield f"{inner} is missing and comes out as {_quote(replayed[name])}"
            elif name not in replayed:
                yield f"{inner} is {_quote(stored[name])} and does not come out"
            elif name not in MEASURED and inner not in PLACES:
                yield from _differing(stored[name], replayed[name], inner, whole)
    elif isinstance(stored, list) and isinstance(replayed, list) and len(stored) == len(replayed):
        for number, (kept, other) in enumerate(zip(stored, replayed, strict=True)):
            yield from _differing(kept, other, f"{path}.{number}", whole)
    elif json.dumps(stored) != json.dumps(replayed):  # as text: 1, 1.0, "1" and true are four figures
        yield f"{path} is {_quote(stored)} and comes out as {_quote(replayed)}"


def _quote(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= 60 else f"{text[:57]}..."
