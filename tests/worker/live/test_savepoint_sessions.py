"""A session that was restored is the session that it was: state, columns in their places, and wires."""

import asyncio
import inspect
import json
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from schemas.settings import Settings
from services.feeds.port import BarRow
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store.checkpoints import Savepoint
from tests.worker.live.paper_runs import rows_of
from worker.feeds.sample_data.worlds import make_world
from worker.live.checkpoints import ResumePoint, SavepointWriter, live_step, restore
from worker.live.recovery import Player, RecordedInput, Script
from worker.live.stepper import BarAxes, LiveStepper
from worker.session import Session

SERIES = make_world("reverting", seed=3, bars=420, symbols=2)
MARKET = BarAxes(SERIES.symbols, SERIES.timeframe, SERIES.label)
ROWS = rows_of(SERIES)


@dataclass
class Traded:
    """A stepper behind some rows, with the savepoints that it took on its way."""

    stepper: LiveStepper
    points: list[Savepoint]

    @property
    def session(self) -> Session:
        return self.stepper.session

    def point(self) -> Savepoint:
        """The newest with what it builds on."""
        last = self.points[-1]
        added = tuple(point.added[0] for point in self.points)
        return Savepoint(last.number, last.bars, last.events, last.code, added, last.state)


def traded(rows: int, every: int) -> Traded:
    """A stepper that has taken some rows and a savepoint after each so many."""
    found = Traded(stepper(), [])
    writer = SavepointWriter("this program")
    for number in range(every, rows + 1, every):
        go_on(found.stepper, number - every, number)
        if number == every:
            place(found.session, "close > sma_7")  # a rule that nobody had when the session was wired
        point, whole = writer.write(found.session, ResumePoint(found.stepper.rows, {}))
        assert whole == (number == every)
        writer.note_stored()
        found.points.append(point)
    return found


def stepper() -> LiveStepper:
    journal = JournalWriter(MemorySink(), 10**9)
    return LiveStepper(Settings(), MARKET, journal, lock_step=True, ask=lambda evaluation: None)


def go_on(one: LiveStepper, start: int, stop: int, rows: Sequence[BarRow] = ROWS) -> None:
    async def take() -> None:
        for row in rows[start:stop]:
            await one.take(row)

    asyncio.run(take())


def resumed(point: Savepoint) -> LiveStepper:
    """A stepper that goes on from a savepoint."""
    one = stepper()
    found = restore(point, MARKET, Settings(), one.journal)
    one.resume(found.session, found.resume_point.rows, found.resume_point.blocked)
    return one


def place(session: Session, rule: str) -> Any:
    return live_step(session).columns.place(rule, 1)


def state(session: Session) -> Any:
    """What a session says of its state, whatever the order of fields, with its engine's and its episodes."""
    engine = session.engine.snapshot() | {"columns": None}
    for name in ("state", "portfolio"):
        engine[name] = engine[name].tobytes()
    return json.dumps(session.state(), sort_keys=True), engine, session.slow_loop.facts.episodes


@pytest.mark.parametrize("rows", [120, 360])
def test_session_restored_has_the_state_that_was_written(rows) -> None:
    one = traded(rows, 60)
    again = resumed(one.point())
    assert state(again.session) == state(one.session)
    for name, kept in one.session.engine.rows_from(0).items():
        assert np.array_equal(kept, again.session.engine.rows_from(0)[name], equal_nan=True), name


def test_session_restored_goes_on_to_the_same_rows_of_the_journal() -> None:
    one = traded(240, 60)
    again = resumed(one.point())
    go_on(one.stepper, 240, 420)
    go_on(again, 240, 420)
    assert again.journal.events == one.stepper.journal.events > 500
    assert again.journal.head_hash == one.stepper.journal.head_hash


def test_session_restored_has_its_rule_columns_in_the_places_where_they_were() -> None:
    """The engine knows the rules of its policies by the numbers of their columns."""
    one = traded(120, 60)
    again = resumed(one.point())
    later = "close < sma_9"
    place(again.session, later)
    assert place(again.session, "close > sma_7") == place(one.session, "close > sma_7")
    assert place(again.session, later) == place(one.session, later)


def test_session_restored_is_wired_as_one_that_began() -> None:
    one = traded(120, 120)
    wires, again = dict(wired(one.session)), dict(wired(resumed(one.point()).session))
    assert len(wires) >= 6
    assert again == wires


OWN = frozenset({"agents", "prompts", "schemas", "services", "trading_core", "worker"})


def attributes_of(value: Any) -> list[tuple[str, Any]]:
    """Name and value of every attribute, slots included."""
    slots = [name for base in type(value).__mro__ for name in getattr(base, "__slots__", ())]
    found = [(name, getattr(value, name)) for name in slots if hasattr(value, name)]
    return [*found, *getattr(value, "__dict__", {}).items()]


def wired(root: Any) -> Iterator[tuple[str, str]]:
    """Path and name of every function that an object of a session holds."""
    seen: set[int] = set()
    rest = [("session", root)]
    while rest:
        path, value = rest.pop()
        if id(value) in seen or type(value).__module__.partition(".")[0] not in OWN:
            continue
        seen.add(id(value))
        for name, item in attributes_of(value):
            if inspect.isroutine(item):
                yield f"{path}.{name}", str(getattr(item, "__qualname__", "partial"))
            else:
                rest.append((f"{path}.{name}", item))


def test_session_restored_between_a_row_and_what_came_behind_it_plays_that_first() -> None:
    """A savepoint may be taken while an anomaly or an answer is still on its way to the last row."""
    one = traded(120, 60)
    point = one.point()
    payload = {
        "anomaly": "duplicate",
        "symbol": SERIES.symbols[0],
        "bar_label": ROWS[119].label,
        "detail": {},
    }
    later = RecordedInput(one.stepper.journal.events, one.session.clock.now, "feed_anomaly", payload)
    one.stepper.session.note_anomaly(payload)
    go_on(one.stepper, 120, 140)
    again = resumed(point)
    player = Player(Script(deque([later]), {}, {}, {}))

    async def rows() -> AsyncIterator[BarRow]:
        for row in ROWS[120:140]:
            yield row

    async def play() -> list[int]:
        return [number async for number in player.play(again, rows())]

    assert asyncio.run(play()) == list(range(121, 141))
    assert again.journal.head_hash == one.stepper.journal.head_hash
