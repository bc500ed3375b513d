"""A paper run starts with the ledger of its store once; every process after the first reads its first row."""

import asyncio
import json
import shutil

import pytest

from schemas.settings import Settings
from schemas.trials import TrialLedger
from services.slow_loop.cadence import Run
from services.slow_loop.loop_facts import LoopFacts
from services.store import open_store
from tests.worker.live.paper_runs import (
    KillAt,
    Killed,
    address,
    killed,
    read_requests,
    replayed,
    rows_stored,
    traded,
    waiting_feed,
)
from tests.worker.replays import paper_replay
from tests.worker.shared_runs import embedded_bars
from tests.worker.trials_stored import stored_run
from worker.live.process_inputs import Pace
from worker.runs.stored_trial import StoredTrial

BARS = ("2003-01-01", "2004-03-31")


def bars():
    return embedded_bars(*BARS).select(("AAPL", "IBM"))


def feed():
    return waiting_feed(bars())


def tried(folder, seed):
    """A backtest on the bars that are traded, stored in their store."""
    stored_run(folder, Settings(seed=seed), bars())


PAPER = "r0002"  # one backtest comes before it


def genesis(folder, run=PAPER):
    [row] = rows_stored(folder, run, "genesis")
    return json.loads(row.payload)


@pytest.fixture(autouse=True)
def _stored_beside_paper(monkeypatch):
    monkeypatch.setattr("tests.worker.trials_stored.address", address)


@pytest.fixture(scope="module")
def one_backtest(tmp_path_factory):
    """A store with one backtest; whoever wants another store behind it copies its file."""
    made = tmp_path_factory.mktemp("backtest")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.worker.trials_stored.address", address)
        tried(made, 1)
    return made


@pytest.fixture
def tried_once(one_backtest, tmp_path):
    """A folder with a store of one backtest."""
    return shutil.copytree(one_backtest, tmp_path, dirs_exist_ok=True)


@pytest.fixture(scope="module")
def traded_behind(one_backtest, tmp_path_factory):
    """The same, and a paper run behind it."""
    made = shutil.copytree(one_backtest, tmp_path_factory.mktemp("traded"), dirs_exist_ok=True)
    traded(made, Settings(), feed())
    return made


def ledger_of(outcome):
    assert outcome.document is not None
    return TrialLedger.of_document(outcome.document["ledger"]).payload()


async def played_again(store):
    return await paper_replay(Settings(), store, await store.runs.find(PAPER)).compare()


def entered(folder):
    return read_requests(folder, lambda store: store.trials.all())


def test_paper_on_the_bars_of_its_backtest_is_the_same_trial(tmp_path):
    tried(tmp_path, 0)
    tried(tmp_path, 1)
    outcome = traded(tmp_path, Settings(), feed())
    heads = read_requests(tmp_path, lambda store: store.runs.all())
    assert outcome.record.head_hash == heads[0].head_hash
    assert "ledger" not in genesis(tmp_path, "r0003")
    assert len({item.on.key for item in entered(tmp_path)}) == 2


@pytest.mark.parametrize("savepoints", [True, False], ids=["from_a_savepoint", "from_the_first_row"])
def test_successor_of_a_paper_process_starts_with_what_its_run_started_with(
    tried_once, savepoints, monkeypatch
):
    often = Pace(events=20, rows=20, share=0.0)
    pace = often if savepoints else Pace(events=10**9, rows=10**9)
    with pytest.raises(Killed):
        traded(tried_once, Settings(), feed(), points=KillAt("committed", 120), pace=pace)
    assert bool(read_requests(tried_once, lambda store: store.savepoints.newest(PAPER))) is savepoints
    begun = genesis(tried_once)["ledger"]
    tried(tried_once, 2)
    followed = list[object]()

    def follow(trial, slow_loop):
        followed.append(slow_loop)

    monkeypatch.setattr(StoredTrial, "follow", follow)
    outcome = traded(tried_once, Settings(), feed(), pace=pace)
    assert outcome.record.status == "finished"
    assert followed, "what the successor tries is counted as well"
    assert genesis(tried_once)["ledger"] == begun
    assert ledger_of(outcome) == begun
    assert TrialLedger.model_validate(begun).configurations == 1
    report = read_requests(tried_once, played_again)
    assert (report.ok, report.problem) == (True, None)
    assert [item.ledger.configurations for item in entered(tried_once)] == [0, 1, 2]


def test_process_that_dies_before_its_first_row_is_stored_is_entered_once(tried_once):
    assert killed(tried_once, Settings(), feed(), "validated", 1)
    tried(tried_once, 2)
    outcome = traded(tried_once, Settings(), feed())
    assert genesis(tried_once)["ledger"]["configurations"] == 1
    assert len(entered(tried_once)) == 3
    assert read_requests(tried_once, lambda store: store.seals.problems(outcome.record.run_id)) == []


def test_worker_process_asks_with_the_ledger_of_the_first_row(tmp_path, traded_behind):
    shutil.copytree(traded_behind, tmp_path, dirs_exist_ok=True)
    tried(tmp_path, 2)
    facts = LoopFacts(Settings())
    for row in rows_stored(tmp_path, "r0002"):
        facts.add(row)
    later = facts.started_at + 10**18
    asked_with = facts.request(Run(later, "slot", structural_allowed=True), later, None).ledger
    assert asked_with is not None
    assert asked_with.configurations == 1


def test_paper_with_a_fresh_ledger_counts_nothing_and_says_so(tried_once):
    outcome = traded(tried_once, Settings(), feed(), fresh_ledger=True)
    assert genesis(tried_once)["ledger"] == ledger_of(outcome)
    assert (ledger_of(outcome)["configurations"], ledger_of(outcome)["fresh"]) == (1, True)
    report = replayed(tried_once, Settings())
    assert (report.ok, report.problem) == (True, None)


def test_backup_and_restore_keep_the_ledger(tmp_path, traded_behind):
    from services.store.backup import back_up, restore

    asyncio.run(back_up(address(traded_behind), tmp_path / "copy.db"))
    asyncio.run(restore(tmp_path / "copy.db", f"sqlite:///{tmp_path}/again.db"))

    async def kept():
        async with await open_store(f"sqlite:///{tmp_path}/again.db", create=False) as store:
            return await store.trials.all()

    assert len(asyncio.run(kept())) == 2
    assert asyncio.run(kept()) == entered(traded_behind)
