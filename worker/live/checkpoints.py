"""Savepoints of a paper run: how a process goes on without playing its whole run again.

A savepoint is taken between two rows, when everything before it is stored and no evaluation is out. What bars
alone determine (features, regimes, rule columns) is not in it: it is computed from the bars at once, which
gives the same bits. Nothing depends on a savepoint: without one, or with one of another program, the run is
played from its first bar, and rows played behind one are compared with what is stored either way.
"""

import base64
import gc
import hashlib
import json
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from agents.judge_agent_client import JudgeAgentClient
from agents.language_models.accounted import LiveSource, RecordedSource, SplicedSource
from agents.language_models.cassette import CassetteWriter
from agents.strategies.model_strategist import ModelStrategist
from agents.strategies.rule_strategist import RuleStrategist
from schemas.errors import StoreError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from services.high_level_reflection_service import HighLevelReflectionService
from services.journal.writer import JournalWriter
from services.memory.episode_memory import MemoryView
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.savepoints.forms import OWN, NoSavepoint
from services.savepoints.reading import Reader
from services.savepoints.writing import Parts, Writer
from services.slow_loop.loop_facts import LoopFacts
from services.slow_loop.past_runs import PastRuns
from services.slow_loop.shadow_ledger import ShadowLedger, ShadowLedgers
from services.slow_loop.untraded_signals import UntradedSignals
from services.slow_loop_service import SlowLoopService
from services.store import RunRecord, Store
from services.store.checkpoints import DamagedSavepoint, Savepoint
from services.store.repository import Lease, LeaseLost
from trading_core.bars import COLUMNS, BarSeries
from trading_core.features.columns import FeatureColumns
from trading_core.live.growing_bars import GrowingBars
from trading_core.live.step import LiveStep
from trading_core.regime import RegimeColumns, RegimeTracker
from trading_core.rule_bank import SharedColumns
from trading_core.rules import RuleColumns
from trading_core.tick_events import TickEventDecoder
from trading_core.trigger_engine import TriggerEngine
from worker.bootstrap import assemble, given_playbooks
from worker.live.stepper import LiveStepper, Market
from worker.models import Models, RecordedPast
from worker.operations.logs import EventSink
from worker.session import Session

KEPT = (
    Settings, Models, GrowingBars, FeatureColumns, RuleColumns, SharedColumns, RegimeTracker, RegimeColumns,
    LiveStep, TickEventDecoder, LiveSource, RecordedSource, SplicedSource, CassetteWriter,
)  # fmt: skip
REMADE: Mapping[type, Mapping[str, Any]] = {
    TriggerEngine: dict.fromkeys(
        ("_equity", "_gross", "_flags", "_known_rows", "_events", "_count", "_trades", "_n_trades")
        + ("parameters",)
    ),
    ShadowLedger: {"_engines": [], "_rows": 0},
    JournalWriter: dict.fromkeys(("_sink", "_buffer", "_flush_rows", "_reader")),
    LoopFacts: dict.fromkeys(("_takers",)),
    PastRuns: dict.fromkeys(("takers",)),
    # What follows from the settings alone is never read back: limits are those of the settings, always.
    RuleStrategist: dict.fromkeys(("_directions", "_allowed")),
    MemoryView: dict.fromkeys(("_quotas", "_budget_ms")),
    ShadowLedgers: dict.fromkeys(("zones", "_execution")),
    UntradedSignals: dict.fromkeys(("_execution",)),
    SlowLoopService: dict.fromkeys(("_interval",)),
    HighLevelReflectionService: dict.fromkeys(("_wordings",)),
    JudgeAgentClient: dict.fromkeys(("_reflection_off", "_wordings")),
    ModelStrategist: dict.fromkeys(("_tolerances", "_wordings")),
    PolicyLevelReflectionService: dict.fromkeys(("_wordings",)),
}
LEVEL = 1  # of compression: a savepoint is written far more often than it is read
ROOM = Path(__file__).resolve().parents[2]


@cache
def _sources() -> str:
    """Hash of every source of the program and of its prompts."""
    files = [path for name in OWN for path in (ROOM / name).rglob("*") if path.suffix in (".py", ".txt")]
    digest = hashlib.sha256(f"{sys.version} numpy {np.__version__}".encode())
    for path in sorted(files):
        digest.update(path.relative_to(ROOM).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def maker(settings: Settings, definitions: Sequence[PlaybookDefinition] | None) -> str:
    """Who can write and read a savepoint: this very program with these playbooks.

    Raises:
        ConfigError: a playbook file is wrong.
    """
    books = sorted(one.content_hash for one in given_playbooks(settings, definitions))
    return hashlib.sha256("\n".join([_sources(), *books]).encode()).hexdigest()[:16]


def sections(settings: Settings) -> tuple[BaseModel, ...]:
    """The parts of the settings that decide, however deep, in the order of their fields."""
    found: list[BaseModel] = []

    def walk(value: Any) -> None:
        if isinstance(value, BaseModel):
            found.append(value)
            for name in type(value).model_fields:
                walk(getattr(value, name))
        elif isinstance(value, tuple):
            for one in value:
                walk(one)

    for name in type(settings).model_fields:
        if name != "runtime":
            walk(getattr(settings, name))
    return tuple(found)


@dataclass(frozen=True)
class ResumePoint:
    """Where a stepper stands beside its session.

    Attributes:
        rows: rows of bars taken.
        blocked: symbols that may not enter, with the reason.
    """

    rows: int
    blocked: dict[str, str]


class SavepointWriter:
    """Writes the savepoints of one process, each with what is new since the one before.

    Attributes:
        rows, events: where the last stored savepoint stands; 0 before the first.
    """

    def __init__(self, maker: str) -> None:
        self._maker = maker
        self._parts = Parts()
        self._number = 0
        self._columns = 0
        self._whole = True
        self._standing = 0, 0, 0
        self.rows = 0
        self.events = 0

    def written(self, session: Session, standing: ResumePoint) -> tuple[Savepoint, bool]:
        """A savepoint of a session between two rows, and whether it builds on no other.

        Call `stored` once it is stored; otherwise the next one holds its news, too.

        Raises:
            NoSavepoint: something in the session has no form.
        """
        whole = self._whole or self._parts.made > 2 * len(self._parts) + 1_000
        if whole:
            self._parts, self.rows, self._columns = Parts(), 0, session.columns_wired
        made = live_step(session).columns.features.made
        writer = Writer(self._parts, KEPT, REMADE, sections(session.settings))
        columns = writer.form(made[self._columns :])
        writer.reached.clear()  # nodes are named once; only the state refers to parts again
        state = {"session": writer.form(session), "rows": standing.rows, "blocked": standing.blocked}
        added = {"parts": self._parts.new, "columns": columns, "rows": _rows_from(session, self.rows)}
        self._parts.drop_all_but(writer.reached)
        self._standing = standing.rows, session.journal.events, len(made)
        rows, events, _ = self._standing
        point = Savepoint(self._number, rows, events, self._maker, (_packed(added),), _packed(state))
        return point, whole

    def stored(self) -> None:
        """The last savepoint that was written is stored."""
        self.rows, self.events, self._columns = self._standing
        self._number += 1
        self._whole = False
        self._parts.new.clear()

    @classmethod
    def behind(cls, point: Savepoint, parts: Parts, columns: int) -> "SavepointWriter":
        """A writer that goes on where a savepoint was read."""
        made = cls(point.code)
        made._parts, made._columns, made._whole = parts, columns, False
        made._number, made.rows, made.events = point.number + 1, point.bars, point.events
        return made


def live_step(session: Session) -> LiveStep:
    """The live step of a session that grows.

    Raises:
        NoSavepoint: it has all of its bars and cannot grow.
    """
    if session.live is None:
        raise NoSavepoint("only a session that grows has savepoints")
    return session.live


@dataclass(frozen=True)
class Restored:
    """A session as it stood, and what goes on with it."""

    session: Session
    standing: ResumePoint
    writer: SavepointWriter


def restored(
    point: Savepoint,
    market: Market,
    settings: Settings,
    journal: JournalWriter,
    definitions: Sequence[PlaybookDefinition] | None = None,
    models: Models | None = None,
    past: RecordedPast | None = None,
    *,
    market_waits: bool = True,
) -> Restored:
    """The session of a savepoint, wired anew.

    Args:
        point: of this program.
        market: what is traded.
        settings: the resolved configuration.
        journal: empty writer.
        definitions: playbooks, as they were.
        models: as `assemble` takes them.
        past: replies of the run from the savepoint on.
        market_waits: as `assemble` takes it.

    Raises:
        NoSavepoint: the savepoint does not fit the session.
    """

    def wired(bars: BarSeries) -> Session:
        return assemble(
            settings, bars, journal, definitions, models, recorded=past, market_waits=market_waits
        )

    try:
        with _without_collection():
            return _restored(point, market, wired, settings)
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise NoSavepoint(f"savepoint {point.number} cannot be read: {error!r}") from error


def _restored(
    point: Savepoint, market: Market, wired: Callable[[BarSeries], Session], settings: Settings
) -> Restored:
    parts = Parts()
    reader = Reader(parts, REMADE, KEPT, sections(settings))
    added, columns = [_unpacked(text) for text in point.added], []
    for one in added:
        reader.take_parts(one["parts"])
        columns += reader.read(one["columns"])
    rows = _joined([one["rows"] for one in added])
    bars: dict[str, Any] = {name: rows[name] for name in (*COLUMNS, "present")}
    series = BarSeries(rows["times"], market.symbols, market.timeframe, market.label, **bars)
    session = wired(GrowingBars(series))
    features = live_step(session).columns.features
    features.make_again((*features.made, *columns))
    state = _unpacked(point.state)
    buckets = session.engine.state["buckets"].copy()
    reader.read(state["session"], session)
    if not np.array_equal(buckets, session.engine.state["buckets"]):
        raise NoSavepoint(f"savepoint {point.number} has other correlation buckets than the settings")
    if (session.engine.t, session.journal.events, state["rows"]) != (point.bars, point.events, point.bars):
        raise NoSavepoint(f"savepoint {point.number} holds another moment than it says")
    session.engine.take_rows(0, rows)
    session.listen()
    standing = ResumePoint(state["rows"], state["blocked"])
    return Restored(session, standing, SavepointWriter.behind(point, parts, len(features.made)))


@contextmanager
def _without_collection() -> Iterator[None]:
    """Nothing that is read here is garbage, and looking for some takes longer than reading it."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _rows_from(session: Session, start: int) -> dict[str, Any]:
    bars = session.bars
    tables = {name: getattr(bars, name)[start:] for name in (*COLUMNS, "present", "times")}
    return {name: _written(table) for name, table in (tables | session.engine.rows_from(start)).items()}


def _joined(parts: Sequence[Mapping[str, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    return {name: np.concatenate([_read(part[name]) for part in parts]) for name in parts[0]}


def _written(table: np.ndarray[Any, Any]) -> list[Any]:
    return [table.dtype.str, list(table.shape), base64.b64encode(table.tobytes()).decode()]


def _read(written: list[Any]) -> np.ndarray[Any, Any]:
    kind, shape, text = written
    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(kind)).reshape(shape)


def _packed(document: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), LEVEL)


def _unpacked(text: bytes) -> Any:
    return json.loads(zlib.decompress(text))


@dataclass(frozen=True)
class Pace:
    """How much a process may have to play again.

    Attributes:
        events, rows: journal rows or rows of bars after which the next savepoint is due.
        share: of the time, at most one part in so many goes into savepoints.
    """

    events: int = 600
    rows: int = 500
    share: float = 10.0


class CheckpointSchedule:
    """The savepoints of one paper run.

    Args:
        store: open.
        run_id: the run.
        settings, definitions: of the run; playbooks as they are now.
        note: told when a savepoint cannot be used or written.
        pace: how often.
    """

    def __init__(
        self,
        store: Store,
        run_id: str,
        settings: Settings,
        definitions: Sequence[PlaybookDefinition],
        note: EventSink,
        pace: Pace,
    ) -> None:
        self._store = store
        self._run_id = run_id
        self._note = note
        self._pace = pace
        # A file of replies that is being recorded is compared from its first line on.
        self._wanted = settings.runtime.llm != "record"
        self._maker = maker(settings, definitions)
        self._writer = SavepointWriter(self._maker)
        self._cost_s = 0.0
        self._last_s = 0.0

    async def find(self, record: RunRecord) -> Savepoint | None:
        """The savepoint to go on from; None plays the run from its first bar.

        Raises:
            StoreError: the store failed.
        """
        if not record.events or not self._wanted:
            return None
        try:
            point = await self._store.savepoints.newest(self._run_id)
        except DamagedSavepoint as error:
            self.refused(str(error))
            return None
        if point is None:
            return None
        if point.events > record.events:
            self.refused(f"it stands behind {point.events} journal rows, and {record.events} are stored")
            return None
        if point.code != self._maker:
            self.refused("it is of another version of the program or of the playbooks")
            return None
        return point

    def refused(self, why: str) -> None:
        """Note that the run has to be played from its first bar."""
        self._note("savepoint_not_used", {"run_id": self._run_id, "reason": why})

    async def goes_on(self, found: Restored) -> None:
        """Go on behind a savepoint that was read.

        Raises:
            NoSavepoint: the stored journal is not the one that it was taken of.
        """
        journal = found.session.journal
        last = journal.events - 1
        if await self._store.journal.hashes(self._run_id, last, last) != [journal.head_hash]:
            raise NoSavepoint("the stored journal is not the one that it was taken of")
        self._writer = found.writer

    def due(self, stepper: LiveStepper) -> bool:
        """Whether enough has happened since the last one."""
        rests = time.monotonic() - self._last_s < self._pace.share * self._cost_s
        if rests or not self._wanted or not stepper.begun:
            return False
        events, rows = stepper.journal.events - self._writer.events, stepper.rows - self._writer.rows
        return events >= self._pace.events or rows >= self._pace.rows

    async def take(self, stepper: LiveStepper, lease: Lease) -> None:
        """Write a savepoint; everything before it is stored, and no evaluation is out.

        Raises:
            LeaseLost: another process trades this run.
        """
        began = time.monotonic()
        try:
            point, whole = self._writer.written(
                stepper.session, ResumePoint(stepper.rows, dict(stepper.blocked))
            )
            self._cost_s = time.monotonic() - began
            await self._store.savepoints.save(lease, self._run_id, point, whole=whole)
        except NoSavepoint as error:
            self._wanted = False
            self.refused(str(error))
            return
        except StoreError as error:
            if isinstance(error, LeaseLost):
                raise
            self._note("savepoint_not_stored", {"run_id": self._run_id, "reason": str(error)})
        else:
            self._writer.stored()
        self._last_s = time.monotonic()
