"""Savepoints of a paper run: how a process goes on without playing its whole run again.

A savepoint is taken between two rows, when everything before it is stored and no evaluation is out. It holds
the bars, the episodes, the rows that a judge's tools read, and what each service says of its state; columns,
regimes and limits are made from the bars and the settings. Nothing depends on a savepoint: without one, or
with one of another program, the run is played from its first bar, and rows played behind one are compared
with what is stored either way.
"""

import base64
import hashlib
import json
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from schemas.episode import Episode
from schemas.errors import InvariantViolation, StoreError
from schemas.playbook import PlaybookDefinition
from schemas.settings import Settings
from schemas.state import demand_fields, read_as, write_as
from schemas.trials import TrialLedger
from services.journal.chain import JournalRow
from services.journal.writer import JournalWriter
from services.playbooks.assembly import given_playbooks
from services.store import RunRecord
from services.store.checkpoints import DamagedSavepoint, Savepoint
from services.store.repository import Lease, LeaseLost
from trading_core.bars import COLUMNS, BarSeries
from trading_core.features.sources import Made
from trading_core.live.growing_bars import FURTHER, GrowingBars
from trading_core.live.step import LiveStep
from trading_core.tick_events import PolicyTag
from trading_core.trigger_engine import TriggerEngine
from worker.bootstrap import assemble
from worker.live.process_inputs import ProcessInputs
from worker.live.stepper import BarAxes, LiveStepper
from worker.models import NO_OVERRIDES, Overrides
from worker.session import Session

LEVEL: Final = 1  # of compression: a savepoint is written far more often than it is read
ROOM: Final = Path(__file__).resolve().parents[2]
SOURCES: Final = ("agents", "prompts", "schemas", "services", "trading_core", "worker")
ENGINE: Final[Mapping[str, Any]] = {
    "t": int,
    "state": str,
    "portfolio": str,
    "tags": dict[int, PolicyTag],
    "installed": int,
    "entries": dict[int, dict[str, Any]],
}
DOCUMENT: Final[Mapping[str, Any]] = {
    "session": dict[str, Any],
    "engine": dict[str, Any],
    "ledger": TrialLedger,
    "rows": int,
    "blocked": dict[str, str],
}


class NoSavepoint(StoreError):
    """A session cannot be written, or what was written cannot be put back; nothing depends on savepoints."""


@cache
def _sources() -> str:
    """Hash of every source of the program and of its prompts."""
    files = [path for name in SOURCES for path in (ROOM / name).rglob("*") if path.suffix in (".py", ".txt")]
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
    books = sorted(playbook.content_hash for playbook in given_playbooks(settings, definitions))
    return hashlib.sha256("\n".join([_sources(), *books]).encode()).hexdigest()[:16]


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
        self._number = 0
        self._columns = 0
        self._episodes = 0
        self._kept = 0
        self._written = 0, 0, 0, 0, 0
        self.rows = 0
        self.events = 0

    def write(self, session: Session, reached: ResumePoint) -> tuple[Savepoint, bool]:
        """A savepoint of a session between two rows, and whether it builds on no other.

        Call `stored` once it is stored; otherwise the next one holds its news, too.

        Raises:
            NoSavepoint: the session has all of its bars, or an evaluation is out.
        """
        whole = self._number == 0
        if whole:
            self._columns = session.columns_wired
        made, episodes = live_step(session).columns.features.made, session.slow_loop.facts.episodes
        kept = _list_kept(session)
        added = {
            "start": self.rows,
            "rows": _rows_from(session, self.rows),
            "columns": write_as(list[Made], list(made[self._columns :])),
            "episodes": write_as(list[Episode], episodes[self._episodes :]),
            "kept": write_as(list[JournalRow], kept[self._kept :]),
        }
        try:
            shown = session.state()
        except (InvariantViolation, ValueError) as error:
            raise NoSavepoint(str(error)) from error
        state = {
            "session": shown,
            "engine": _engine_state(session.engine),
            "ledger": write_as(TrialLedger, session.ledger),
            "rows": reached.rows,
            "blocked": reached.blocked,
        }
        self._written = reached.rows, session.journal.events, len(made), len(episodes), len(kept)
        rows, events, *_ = self._written
        return Savepoint(self._number, rows, events, self._maker, (_pack(added),), _pack(state)), whole

    def note_stored(self) -> None:
        """The last savepoint that was written is stored."""
        self.rows, self.events, self._columns, self._episodes, self._kept = self._written
        self._number += 1

    @classmethod
    def following(cls, point: Savepoint, session: Session) -> "SavepointWriter":
        """A writer that goes on where a savepoint was read."""
        made = cls(point.code)
        columns, episodes = live_step(session).columns.features.made, session.slow_loop.facts.episodes
        made._written = point.bars, point.events, len(columns), len(episodes), len(_list_kept(session))
        made._number = point.number
        made.note_stored()
        return made


def live_step(session: Session) -> LiveStep:
    """The live step of a session that grows.

    Raises:
        NoSavepoint: it has all of its bars and cannot grow.
    """
    if session.live is None:
        raise NoSavepoint("only a session that grows has savepoints")
    return session.live


def _list_kept(session: Session) -> list[JournalRow]:
    return [] if session.kept is None else session.kept.rows


@dataclass(frozen=True)
class Restored:
    """A session as it stood, and what goes on with it."""

    session: Session
    resume_point: ResumePoint
    writer: SavepointWriter


def restore(
    point: Savepoint,
    market: BarAxes,
    settings: Settings,
    journal: JournalWriter,
    definitions: Sequence[PlaybookDefinition] | None = None,
    own: Overrides = NO_OVERRIDES,
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
        own: as `assemble` takes it; its past begins at the savepoint.
        market_waits: as `assemble` takes it.

    Raises:
        NoSavepoint: the savepoint does not fit the session.
    """
    try:
        added, state = [_unpack(text) for text in point.added], _unpack(point.state)
        demand_fields("a savepoint", state, DOCUMENT)
        bars, rows = _bars(added, market, point)
        session = assemble(
            settings, GrowingBars(bars), journal, definitions, own,
            market_waits=market_waits, ledger=read_as(TrialLedger, state["ledger"]),
        )  # fmt: skip
        _restore(session, added, state)
        session.engine.take_rows(0, rows)
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise NoSavepoint(f"savepoint {point.number} cannot be read: {error!r}") from error
    if (session.engine.t, session.journal.events, state["rows"]) != (point.bars, point.events, point.bars):
        raise NoSavepoint(f"savepoint {point.number} holds another moment than it says")
    return _restore_at(point, session, state)


def _restore_at(point: Savepoint, session: Session, state: Mapping[str, Any]) -> Restored:
    session.listen()
    resume_point = ResumePoint(state["rows"], read_as(dict[str, str], state["blocked"]))
    return Restored(session, resume_point, SavepointWriter.following(point, session))


def _bars(
    added: Sequence[Mapping[str, Any]], market: BarAxes, point: Savepoint
) -> tuple[BarSeries, dict[str, Any]]:
    """The bars so far, and every table of their rows."""
    rows = {name: np.concatenate([_read(part["rows"][name]) for part in added]) for name in added[0]["rows"]}
    starts = np.cumsum([0, *(_read(part["rows"]["times"]).size for part in added)]).tolist()
    if [part["start"] for part in added] != starts[:-1]:
        raise NoSavepoint(f"savepoint {point.number} builds on one that is missing")
    bars: dict[str, Any] = {name: rows[name] for name in (*COLUMNS, "present")}
    bars["zone"] = market.zone
    further = {name.removeprefix(FURTHER): rows[name] for name in rows if name.startswith(FURTHER)}
    bars["extra"] = further
    return BarSeries(rows["times"], market.symbols, market.timeframe, market.label, **bars), rows


def _restore(session: Session, added: Sequence[Mapping[str, Any]], state: Mapping[str, Any]) -> None:
    features = live_step(session).columns.features
    columns = [made for part in added for made in read_as(list[Made], part["columns"])]
    features.make_again((*features.made, *columns))
    session.books.registry.restore(
        state["session"]["books"]["registry"]
    )  # episodes are kept by the rules of their version
    for part in added:
        for episode in read_as(list[Episode], part["episodes"]):
            session.remember(episode)
        if session.kept is not None:
            session.kept.remember(read_as(list[JournalRow], part["kept"]))
    session.restore(state["session"])
    _restore_engine(session.engine, state["engine"])


def _engine_state(engine: TriggerEngine) -> dict[str, Any]:
    saved = engine.snapshot()
    for name in ("state", "portfolio"):
        saved[name] = base64.b64encode(saved[name].tobytes()).decode()
    return {name: write_as(kind, saved[name]) for name, kind in ENGINE.items()}


def _restore_engine(engine: TriggerEngine, state: Mapping[str, Any]) -> None:
    """Stand where the engine stood; membership in correlation buckets follows from the settings."""
    demand_fields("TriggerEngine", state, ENGINE)
    saved = {name: read_as(kind, state[name]) for name, kind in ENGINE.items()}
    for name in ("state", "portfolio"):
        there = getattr(engine, name)
        cells = np.frombuffer(base64.b64decode(saved[name]), dtype=there.dtype)
        saved[name] = cells.reshape(there.shape).copy()
    if not np.array_equal(saved["state"]["buckets"], engine.state["buckets"]):
        raise NoSavepoint("the savepoint has other correlation buckets than the settings")
    engine.restore(saved | {"columns": engine.columns})


def _rows_from(session: Session, start: int) -> dict[str, Any]:
    bars = session.bars
    tables = {name: getattr(bars, name)[start:] for name in (*COLUMNS, "present", "times")}
    tables |= {FURTHER + name: values[start:] for name, values in bars.extra.items()}
    return {name: _write_table(table) for name, table in (tables | session.engine.rows_from(start)).items()}


def _write_table(table: np.ndarray[Any, Any]) -> list[Any]:
    return [table.dtype.str, list(table.shape), base64.b64encode(table.tobytes()).decode()]


def _read(written: list[Any]) -> np.ndarray[Any, Any]:
    kind, shape, text = written
    return np.frombuffer(base64.b64decode(text), dtype=np.dtype(kind)).reshape(shape)


def _pack(document: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(document, separators=(",", ":")).encode(), LEVEL)


def _unpack(text: bytes) -> Any:
    return json.loads(zlib.decompress(text))


class CheckpointSchedule:
    """The savepoints of one paper run.

    Args:
        inputs: of the process: where savepoints are stored, how often, and who hears that one is refused.
        run_id: the run.
        definitions: playbooks as they are now.
    """

    def __init__(
        self,
        inputs: ProcessInputs,
        run_id: str,
        definitions: Sequence[PlaybookDefinition],
    ) -> None:
        settings = inputs.settings
        self._store, self._pace, self._note = inputs.store, inputs.pace, inputs.surroundings.note
        self._run_id = run_id
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
            self.note_refusal(str(error))
            return None
        if point is None:
            return None
        if point.events > record.events:
            self.note_refusal(f"it stands behind {point.events} journal rows, and {record.events} are stored")
            return None
        if point.code != self._maker:
            self.note_refusal("it is of another version of the program or of the playbooks")
            return None
        return point

    def note_refusal(self, why: str) -> None:
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
            point, whole = self._writer.write(
                stepper.session, ResumePoint(stepper.rows, dict(stepper.blocked))
            )
            self._cost_s = time.monotonic() - began
            await self._store.savepoints.save(lease, self._run_id, point, whole=whole)
        except NoSavepoint as error:
            self._wanted = False
            self.note_refusal(str(error))
            return
        except StoreError as error:
            if isinstance(error, LeaseLost):
                raise
            self._note("savepoint_not_stored", {"run_id": self._run_id, "reason": str(error)})
        else:
            self._writer.note_stored()
        self._last_s = time.monotonic()
