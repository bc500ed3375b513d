"""Going on from a savepoint: the same run, bit by bit, with only the rows behind it played again."""

import asyncio
import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from schemas.errors import ConfigError
from schemas.settings import EnvelopeSettings, Settings
from services.playbooks.loader import load_playbooks
from services.slow_loop_service import SlowLoopService
from services.store import open_store
from services.store.failures import StoreDamaged
from tests.worker.live.paper_runs import (
    KillAt,
    Killed,
    RunningFeed,
    address,
    process_in,
    replayed,
    rows_stored,
    waiting_feed,
)
from tests.worker.shared_runs import Run, embedded_bars, losing_settings, run_on
from tests.worker.test_session_with_a_model import FULL, AnsweringModel
from tests.worker.wire import AGREES
from trading_core.bars import BarSeries
from worker.cli import app
from worker.feeds.sample_data.worlds import make_world
from worker.live.checkpoints import CheckpointSchedule
from worker.live.commit_loop import CommitLoop
from worker.live.process import PaperOutcome
from worker.live.process_inputs import Pace
from worker.live.stepper import DRAIN_AFTER, LiveStepper
from worker.live.traded_run import TradedRun
from worker.models import Models
from worker.runs.replay import MEASURED
from worker.studies.scenarios import PLANTED

OVER_THE_CAP = 1e-4  # as the fixture of that name has it
OFTEN = Pace(events=10**9, rows=50, share=0.0)
NEVER = Pace(events=10**9, rows=10**9)


@cache
def bars() -> BarSeries:
    """A world in which reports, verdicts and shadow trials come early."""
    return make_world("reverting", seed=3, bars=560, symbols=3)


@cache
def few() -> BarSeries:
    """Bars whose state is quickly made again."""
    return make_world("reverting", seed=3, bars=260, symbols=2)


PLAYBOOKS = tuple(load_playbooks(PLANTED))


@cache
def calm(series: Callable[[], BarSeries] = bars) -> Run:
    """The backtest over the same bars."""
    return run_on(series(), losing_settings(), PLAYBOOKS)


class Process:
    """Paper processes over one store, one after the other.

    Attributes:
        told: what the last one said.
    """

    def __init__(self, folder: Any, settings: Settings | None = None, **named: Any) -> None:
        self._folder = folder
        self._settings = settings or losing_settings()
        self._named = named if settings is not None else {"definitions": PLAYBOOKS} | named
        self.shown: list[tuple[str, dict[str, Any]]] = []

    def trades(self, feed: Any = None, pace: Pace = OFTEN, **named: Any) -> PaperOutcome:
        """One process, from open to close."""
        self.shown = []

        async def run() -> PaperOutcome:
            async with await open_store(address(self._folder), create=True) as store:
                given = {"pace": pace} | self._named | named
                return await process_in(
                    store, self._settings, feed or waiting_feed(bars()), self.shown, **given
                )

        return asyncio.run(run())

    def dies(self, times: int, point: str = "validated", **named: Any) -> None:
        """One process that is killed when it reaches a point for the n-th time."""
        with pytest.raises(Killed):
            self.trades(points=KillAt(point, times), **named)

    def quoted(self, kind: str) -> list[dict[str, Any]]:
        """Details of one kind."""
        return [detail for name, detail in self.shown if name == kind]


def test_paper_run_killed_again_and_again_goes_on_from_savepoints_to_the_head_of_the_backtest(
    tmp_path,
) -> None:
    process, played = Process(tmp_path), []
    for rows in (130, 260, 90, 30):
        process.dies(rows)
        played += [entry["rows_played"] for entry in process.quoted("recovered")]
    kinds = {row.kind for row in rows_stored(tmp_path)}
    assert {"shadow_episode", "high_level_report", "replan_verdict", "episode"} <= kinds
    outcome = process.trades()
    played += [entry["rows_played"] for entry in process.quoted("recovered")]
    assert outcome.document is not None
    head = calm().document["journal"]["head_hash"]
    assert outcome.document["journal"]["head_hash"] == head
    assert outcome.document["errors"] == 0
    assert len(played) == 4
    assert max(played) <= 50, "only what lies behind a savepoint is played again"
    assert process.quoted("savepoint_not_used") == []
    for part in (
        "performance",
        "policy_loop",
        "memory",
        "high_level",
        "judge",
        "playbooks",
        "signals",
        "tick_validation",
    ):
        assert _counted(outcome.document[part]) == _counted(calm().document[part]), part


DAMAGED = {
    "journal": "UPDATE journal SET payload = replace(payload, ':', ': ') WHERE seq = 17",
    "journal_time": "UPDATE journal SET known_at = known_at + 1 WHERE seq = 17",
    "journal_and_its_hash": "UPDATE journal SET hash = (SELECT hash FROM journal WHERE seq = 16) "
    "WHERE seq = 17",
    "journal_row_gone": "DELETE FROM journal WHERE seq = 17",
    "bars": "UPDATE paper_bars SET bars = replace(bars, ':', ': ') WHERE number = 17",
    "bars_gone": "DELETE FROM paper_bars WHERE number = 17",
    "order": "UPDATE venue_orders SET sends = 7",
    "trial": "UPDATE trials SET hypotheses = 0",
    "description": "UPDATE runs SET name = 'another'",
}


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The store of a run that was killed behind a savepoint."""
    folder = tmp_path_factory.mktemp("left")
    Process(folder).dies(170, feed=waiting_feed(few()))
    with closing(sqlite3.connect(folder / "paper.db")) as store:
        store.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return (folder / "paper.db").read_bytes()


@pytest.mark.parametrize("name", DAMAGED)
def test_paper_run_does_not_go_on_from_a_savepoint_over_a_damaged_row_before_it(left, tmp_path, name) -> None:
    (tmp_path / "paper.db").write_bytes(left)
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store, store:
        assert store.execute(DAMAGED[name]).rowcount > 0
    process = Process(tmp_path)
    with pytest.raises(StoreDamaged, match=r"r0001.*(17|order|trials|description).*`thinktwice db restore"):
        process.trades(waiting_feed(few()))
    assert process.quoted("recovered") == []
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store:
        ((status,),) = store.execute("SELECT status FROM runs").fetchall()
        assert status == "running"
    for words in (["verify", "r0001"], ["db", "check", "--full"]):
        done = CliRunner().invoke(app, [*words, "--db", address(tmp_path)])
        assert done.exit_code == 1, done.output


def test_paper_run_goes_on_from_the_backup_that_the_refusal_names(left, tmp_path) -> None:
    backup, restored = tmp_path / "backup.db", tmp_path / "restored"
    backup.write_bytes(left)
    (tmp_path / "paper.db").write_bytes(left)
    with closing(sqlite3.connect(tmp_path / "paper.db")) as store, store:
        store.execute(DAMAGED["journal"])
    with pytest.raises(StoreDamaged, match="row 17 ") as refused:
        Process(tmp_path).trades(waiting_feed(few()))
    restored.mkdir()
    (given,) = re.findall(r"`thinktwice (db restore [^`]*)`", str(refused.value))
    words = given.replace("FILE", str(backup)).replace("URL", address(restored)).split()
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    process = Process(restored)
    outcome = process.trades(waiting_feed(few()))
    assert process.quoted("recovered")[0]["rows_played"] < 170
    assert outcome.record.head_hash == calm(few).document["journal"]["head_hash"]


def _counted(part: Any) -> Any:
    """A part of the document without what was measured."""
    if isinstance(part, dict):
        timed = ("_ms", "seconds", "_s")
        kept = {key: part[key] for key in part if key not in MEASURED and not key.endswith(timed)}
        return {key: _counted(item) for key, item in kept.items()}
    return part


@pytest.mark.usefixtures("over_the_cap")
def test_paper_live_run_with_a_model_goes_on_from_a_savepoint_and_replays_to_its_hash(
    tmp_path, monkeypatch
) -> None:
    live, feed = embedded_bars("2009-01-01", "2009-12-31").select(("AAPL", "IBM")), RunningFeed
    first, second = AnsweringModel(json.dumps(AGREES)), AnsweringModel(json.dumps(AGREES))

    writing: list[CommitLoop] = []
    wake = CommitLoop.wake

    def woken(committing: CommitLoop) -> None:
        writing[:] = [committing]
        wake(committing)

    async def unhurried(number: int) -> None:
        """The next row comes once what came before it is stored."""
        await asyncio.sleep(0.004)
        for loop in writing:
            await asyncio.wait_for(loop.caught_up(), 60)

    monkeypatch.setattr(CommitLoop, "wake", woken)
    process, often = Process(tmp_path, FULL, look_s=0.01), Pace(events=1, share=0.0)
    asking = Models(fast=first, slow=first)
    process.dies(100, "committed", feed=feed(live, unhurried), models=asking, pace=often)
    request = len(rows_stored(tmp_path, "latest", "model_call"))
    writing.clear()
    outcome = process.trades(feed(live, unhurried), models=Models(fast=second, slow=second))
    recovered = process.quoted("recovered")[0]
    assert recovered["rows_played"] < recovered["rows"] / 2, "a live run takes savepoints, too"
    assert len(second.prompts) == len(rows_stored(tmp_path, "latest", "model_call")) - request > 5
    assert outcome.document is not None
    assert outcome.document["errors"] == 0
    report = replayed(tmp_path, FULL)
    assert (report.ok, report.problem) == (True, None)


class Paced(AnsweringModel):
    """Takes as many rows as it is told for each answer: what is out when is no matter of time.

    Args:
        rows: how many.

    Attributes:
        out: evaluations that were out when each row came.
        stepper, committing: of the run; None before its first row.
    """

    def __init__(self, rows: int) -> None:
        super().__init__(json.dumps(AGREES))
        self._rows = rows
        self._row = 0
        self._next = asyncio.Event()
        self.stepper: LiveStepper | None = None
        self.committing: CommitLoop | None = None
        self.out: list[int] = []

    async def complete(self, **named: Any) -> Any:
        until = self._row + self._rows
        while self._row < until:
            await self._next.wait()
        return await super().complete(**named)

    async def row(self, number: int) -> None:
        """A row comes, once what came before it is stored."""
        self._row += 1
        self._next.set()
        self._next = asyncio.Event()
        if self.stepper is None or self.committing is None:
            return
        await asyncio.wait_for(self.committing.caught_up(), 60)
        self.out.append(self.stepper.session.policy_loop.in_flight)

    def is_over(self) -> None:
        """No row comes any more."""
        self._rows, self._row = 0, 10**9
        self._next.set()


def paced(tmp_path: Any, monkeypatch: Any, symbols: tuple[str, ...], every: int, **named: Any) -> Any:
    """A live run whose answers come with its rows: how many were out, rows of savepoints and of trials."""
    taken: list[int] = []
    trials: list[int] = []
    take, came, wake = CheckpointSchedule.take, LiveStepper.take, CommitLoop.wake
    keep = SlowLoopService._keep_trials
    model = Paced(every)

    async def seen(stepper: CheckpointSchedule, trading: LiveStepper, lease: Any) -> None:
        assert trading.session.policy_loop.in_flight == 0
        taken.append(trading.rows)
        await take(stepper, trading, lease)

    async def took(stepper: LiveStepper, row: Any) -> None:
        model.stepper = stepper
        await came(stepper, row)

    def woken(committing: CommitLoop) -> None:
        model.committing = committing
        wake(committing)

    def kept(loop: SlowLoopService, row: int, now: int) -> None:
        trials.append(row)
        keep(loop, row, now)

    monkeypatch.setattr(CheckpointSchedule, "take", seen)
    monkeypatch.setattr(LiveStepper, "take", took)
    monkeypatch.setattr(CommitLoop, "wake", woken)
    monkeypatch.setattr(SlowLoopService, "_keep_trials", kept)
    process = Process(tmp_path, FULL, models=Models(fast=model, slow=model))
    live = embedded_bars("2009-01-01", "2010-03-31").select(symbols)

    async def paces(number: int) -> None:
        await model.row(number)
        if number == live.shape[0] - 1:
            model.is_over()

    process.trades(RunningFeed(live, paces), pace=Pace(events=1, rows=1, share=0.0), **named)
    return model.out, taken, trials


@pytest.mark.parametrize(("draining", "taken"), [(False, 1), (True, 0)])
def test_paper_savepoint_is_not_taken_while_no_evaluation_may_begin(draining, taken) -> None:
    """Whether a run drains is in no savepoint: whoever went on from it would begin what the journal skips."""
    saved: list[Any] = []

    async def take(stepper: Any, lease: Any) -> None:
        saved.append(stepper)

    quiet = SimpleNamespace(policy_loop=SimpleNamespace(in_flight=0))
    process: Any = SimpleNamespace(
        stepper=SimpleNamespace(draining=draining, session=quiet),
        committer=SimpleNamespace(lease=object()),
        requests=SimpleNamespace(busy=False),
        reports=None,
        savepoints=SimpleNamespace(due=lambda stepper: True, take=take),
        recovering=False,
    )
    asyncio.run(TradedRun._save(process))
    assert len(saved) == taken


MANY = ("AAPL", "IBM", "GOOG", "MSFT")


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A live run whose model is always behind: its folder, and what `paced` gives."""
    folder = tmp_path_factory.mktemp("behind")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EnvelopeSettings, "risk_cap", OVER_THE_CAP)
        return folder, *paced(folder, patch, MANY, 6)


def test_paper_savepoint_is_not_taken_while_an_evaluation_is_out(behind) -> None:
    """What an evaluation is thinking about is in no savepoint: `paced` sees none taken while it thinks."""
    _, out, taken, _ = behind
    assert max(out) > 0, "some evaluations take longer than a row"
    assert len(taken) > 20


@pytest.mark.usefixtures("over_the_cap")
def test_paper_savepoints_and_trials_do_not_starve_under_a_model_that_is_always_behind(behind) -> None:
    folder, out, taken, trials = behind
    begun = next(row for row, busy in enumerate(out) if busy)
    assert sum(busy == 0 for busy in out[begun:]) < 0.1 * (len(out) - begun), "the model is always behind"
    drained = DRAIN_AFTER + 7 * len(MANY)  # rows: until nothing begins, and until all is answered
    for kept in (taken, trials):
        rows = [begun, *(row for row in kept if row > begun), len(out)]
        assert max(later - row for row, later in zip(rows, rows[1:], strict=False)) < 2 * drained
    skipped = [row for row in rows_stored(folder, "latest", "policy_skip") if "draining" in row.payload]
    assert skipped, "what began no evaluation meanwhile stands in the journal"
    report = replayed(folder, FULL)
    assert (report.ok, report.problem) == (True, None)


def test_paper_run_killed_while_it_drains_goes_on_to_a_head_that_replays(tmp_path, monkeypatch) -> None:
    with pytest.raises(Killed):
        paced(tmp_path, monkeypatch, MANY, 6, points=KillAt("committed", 150))
    monkeypatch.undo()
    out, taken, _ = paced(tmp_path, monkeypatch, MANY, 6)
    assert max(out) > 0
    assert taken
    report = replayed(tmp_path, FULL)
    assert (report.ok, report.problem) == (True, None)


def _changed(folder: Any, change: str) -> None:
    with sqlite3.connect(folder / "paper.db") as connection:
        connection.execute(change)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE savepoints SET state = zeroblob(64) WHERE state IS NOT NULL", "is damaged"),
        ("UPDATE savepoints SET code = 'other'", "another version of the program"),
        ("UPDATE savepoints SET events = events + 1000000", "are stored"),
        ("UPDATE savepoints SET bars = bars + 1 WHERE state IS NOT NULL", "another moment"),
        ("DELETE FROM savepoints WHERE number = (SELECT MIN(number) FROM savepoints)", "missing"),
    ],
)
def test_paper_savepoint_that_cannot_be_used_is_named_and_the_run_is_played_whole(
    left, tmp_path, change, reason
) -> None:
    (tmp_path / "paper.db").write_bytes(left)
    process = Process(tmp_path)
    _changed(tmp_path, change)
    process.dies(60, feed=waiting_feed(few()))
    assert reason in process.quoted("savepoint_not_used")[0]["reason"]
    recovered = process.quoted("recovered")[0]
    assert recovered["rows_played"] == recovered["rows"] == 169
    process.dies(1, feed=waiting_feed(few()))
    assert process.quoted("savepoint_not_used") == [], "a new savepoint has taken its place"
    assert process.quoted("recovered")[0]["rows_played"] < 60


def test_paper_savepoint_does_not_hide_playbooks_that_were_changed(left, tmp_path) -> None:
    (tmp_path / "paper.db").write_bytes(left)
    process = Process(tmp_path)
    changed = PLAYBOOKS[0].model_copy(update={"risk_fraction": PLAYBOOKS[0].risk_fraction / 2})
    with pytest.raises(ConfigError, match="does not come out as it was stored"):
        process.trades(waiting_feed(few()), definitions=(changed, *PLAYBOOKS[1:]))


def test_paper_savepoint_of_another_journal_is_not_believed(left, tmp_path) -> None:
    (tmp_path / "paper.db").write_bytes(left)
    process = Process(tmp_path)
    last = "(SELECT MAX(events) - 1 FROM savepoints)"
    _changed(tmp_path, f"UPDATE journal SET hash = 'x' WHERE seq = {last}")
    with pytest.raises(StoreDamaged, match=r"row \d+ .* is damaged"):
        process.trades(waiting_feed(few()))
    assert "not the one that it was taken of" in process.quoted("savepoint_not_used")[0]["reason"]


def test_paper_run_that_is_over_keeps_no_savepoint(tmp_path) -> None:
    process = Process(tmp_path, Settings())
    process.trades(waiting_feed(embedded_bars("2009-01-01", "2009-06-30").select(("AAPL",))))
    with sqlite3.connect(tmp_path / "paper.db") as connection:
        assert connection.execute("SELECT COUNT(*) FROM savepoints").fetchone() == (0,)
