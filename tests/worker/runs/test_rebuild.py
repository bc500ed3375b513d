"""A session rebuilt at a bar stands as the run stood there; what does not replay is not answered for."""

import asyncio
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ConfigError
from services.journal.sinks import MemorySink
from services.journal.writer import JournalWriter
from services.store import open_store
from tests.worker.planted_store import definitions, new_planted, world
from tests.worker.replays import backtest_replay
from tests.worker.shared_runs import Run, losing_settings, run_on
from trading_core.bars import BarSeries
from worker.bootstrap import assemble
from worker.feeds.sample_data.worlds import make_world
from worker.runs.interrupts import RunInterrupted
from worker.runs.replay import Rebuilt
from worker.runs.store_run import record_run
from worker.session import Timing

SETTINGS = losing_settings()
ROWS = 420


@cache
def bars() -> BarSeries:
    return make_world("reverting", seed=3, bars=ROWS, symbols=6)


@pytest.fixture(scope="module")
def whole() -> Run:
    return run_on(bars(), SETTINGS, definitions())


def test_session_cut_at_any_bar_decides_the_same_as_one_that_runs_through(whole: Run) -> None:
    sink = MemorySink()
    made = assemble(SETTINGS, bars(), JournalWriter(sink), definitions())
    made.begin()

    async def drive() -> None:
        timing, end = Timing(), 0
        while not made.engine.done:
            end = max(end, made.engine.t) + 7
            while made.engine.t < min(end, ROWS):
                await made.step(timing, end=min(end, ROWS))
        made.finish()
        await made.journal.flush()

    asyncio.run(drive())
    assert made.slow_loop.counters.runs >= 1
    assert sink.rows[-1].hash == whole.rows[-1].hash


def recorded(path: Path, stopped_at: int | None = None) -> Path:
    """A store with a run, broken off at a bar or finished."""
    from worker.runs.backtest import run_backtest

    def stop(done: int, _all: int | None) -> None:
        if stopped_at is not None and done >= stopped_at:
            raise RunInterrupted(2)

    async def scenario() -> None:
        async with await open_store(f"sqlite:///{path}", create=True) as store:
            new = new_planted(SETTINGS)
            new = type(new)(**vars(new) | {"data": new.data | {"sha256": bars().sha256}})
            try:
                await record_run(
                    run_backtest, SETTINGS, bars(), store, new, definitions=definitions(), progress=stop
                )
            except RunInterrupted:
                assert stopped_at is not None

    asyncio.run(scenario())
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("rebuilt") / "t.db")


def in_store(path: Path, work: Any) -> Any:
    """What `work(store, record)` gives on a stored run."""

    async def scenario() -> Any:
        async with await open_store(f"sqlite:///{path}", create=False) as store:
            return await work(store, await store.runs.find("latest"))

    return asyncio.run(scenario())


def at(row: int) -> int:
    return int(bars().close_times[row])


async def rebuilt(store: Any, record: Any, row: int | None = None) -> Rebuilt:
    moment = None if row is None else at(row) + 1
    return await backtest_replay(SETTINGS, bars(), store, record, definitions()).rebuild(moment)


def test_rebuilt_session_stands_at_the_bar_and_was_compared_up_to_it(finished: Path, whole: Run) -> None:
    judged = next(row.known_at for row in whole.rows if row.kind == "replan_verdict")
    first = bars().close_times.tolist().index(judged)

    async def work(store: Any, record: Any) -> list[Rebuilt]:
        return [await rebuilt(store, record, row) for row in (0, first - 1, first, None)]

    made = in_store(finished, work)
    for shown, row in zip(made, (0, first - 1, first, ROWS - 1), strict=True):
        past = [known for known in whole.rows if known.known_at <= at(row)]
        assert (shown.row, shown.known_at, shown.session.engine.t) == (row, at(row), row + 1)
        assert shown.compared == len(past)
        moved = [known for known in past if known.kind == "playbook_version"]
        assert len(shown.session.books.registry.history()) == len(moved)
    assert len(made[1].session.books.registry.history()) < len(made[2].session.books.registry.history())


def test_run_that_broke_off_is_rebuilt_up_to_what_it_recorded(tmp_path: Path) -> None:
    made = in_store(recorded(tmp_path / "t.db", 200), rebuilt)
    assert 190 <= made.row <= 200
    assert made.compared > 100


def test_run_is_not_rebuilt_on_other_bars_or_playbooks_or_before_its_first_bar(finished: Path) -> None:
    async def work(store: Any, record: Any) -> None:
        with pytest.raises(ConfigError, match="name those of the run with --data"):
            await backtest_replay(SETTINGS, world(), store, record, definitions()).rebuild()
        with pytest.raises(
            ConfigError, match=r"does not replay as it was stored .*`thinktwice verify r0001`"
        ):
            await backtest_replay(SETTINGS, bars(), store, record, definitions()[:2]).rebuild()
        with pytest.raises(ConfigError, match="had not closed a bar by then"):
            await backtest_replay(SETTINGS, bars(), store, record, definitions()).rebuild(at(0) - 1)

    in_store(finished, work)
