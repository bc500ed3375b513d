"""A paper run starts with the ledger of its store once; every process after the first reads its first row."""

import asyncio
import json

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
    asked,
    killed,
    replayed,
    rows_stored,
    traded,
    waiting_feed,
)
from tests.worker.replays import paper_replay
from tests.worker.shared_runs import embedded_bars
from tests.worker.trials_stored import stored_run
from worker.live.process_inputs import Pace

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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.worker.trials_stored.address", address)
    return tmp_path


def ledger_of(outcome):
    assert outcome.document is not None
    return TrialLedger.of_document(outcome.document["ledger"]).payload()


async def played_again(store):
    return await paper_replay(Settings(), store, await store.runs.find(PAPER)).compare()


def entered(folder):
    return asked(folder, lambda store: store.trials.all())


def test_paper_on_the_bars_of_its_backtest_is_the_same_trial(folder):
    tried(folder, 0)
    tried(folder, 1)
    outcome = traded(folder, Settings(), feed())
    heads = asked(folder, lambda store: store.runs.all())
    assert outcome.record.head_hash == heads[0].head_hash
    assert "ledger" not in genesis(folder, "r0003")
    assert len({one.on.key for one in entered(folder)}) == 2


@pytest.mark.parametrize("savepoints", [True, False], ids=["from_a_savepoint", "from_the_first_row"])
def test_successor_of_a_paper_process_starts_with_what_its_run_started_with(folder, monkeypatch, savepoints):
    tried(folder, 1)
    often = Pace(events=20, rows=20, share=0.0)
    pace = often if savepoints else Pace(events=10**9, rows=10**9)
    with pytest.raises(Killed):
        traded(folder, Settings(), feed(), points=KillAt("committed", 120), pace=pace)
    assert bool(asked(folder, lambda store: store.savepoints.newest(PAPER))) is savepoints
    begun = genesis(folder)["ledger"]
    tried(folder, 2)
    outcome = traded(folder, Settings(), feed(), pace=pace)
    assert outcome.record.status == "finished"
    assert genesis(folder)["ledger"] == begun
    assert ledger_of(outcome) == begun
    assert TrialLedger.model_validate(begun).configurations == 1
    report = asked(folder, played_again)
    assert (report.ok, report.problem) == (True, None)
    assert [one.ledger.configurations for one in entered(folder)] == [0, 1, 2]


def test_process_that_dies_before_its_first_row_is_stored_is_entered_once(folder):
    tried(folder, 1)
    assert killed(folder, Settings(), feed(), "validated", 1)
    tried(folder, 2)
    outcome = traded(folder, Settings(), feed())
    assert genesis(folder)["ledger"]["configurations"] == 1
    assert len(entered(folder)) == 3
    assert asked(folder, lambda store: store.seals.problems(outcome.record.run_id)) == []


def test_worker_process_asks_with_the_ledger_of_the_first_row(folder):
    tried(folder, 1)
    traded(folder, Settings(), feed())
    tried(folder, 2)
    facts = LoopFacts(Settings())
    for row in rows_stored(folder, "r0002"):
        facts.add(row)
    later = facts.started_at + 10**18
    asked_with = facts.request(Run(later, "slot", structural_allowed=True), later, None).ledger
    assert asked_with is not None
    assert asked_with.configurations == 1


def test_paper_with_a_fresh_ledger_counts_nothing_and_says_so(folder):
    tried(folder, 1)
    outcome = traded(folder, Settings(), feed(), fresh_ledger=True)
    assert genesis(folder)["ledger"] == ledger_of(outcome)
    assert (ledger_of(outcome)["configurations"], ledger_of(outcome)["fresh"]) == (1, True)
    report = replayed(folder, Settings())
    assert (report.ok, report.problem) == (True, None)


def test_backup_and_restore_keep_the_ledger(folder):
    from services.store.backup import back_up, restore

    tried(folder, 1)
    traded(folder, Settings(), feed())
    asyncio.run(back_up(address(folder), folder / "copy.db"))
    asyncio.run(restore(folder / "copy.db", f"sqlite:///{folder}/again.db"))

    async def kept():
        async with await open_store(f"sqlite:///{folder}/again.db", create=False) as store:
            return await store.trials.all()

    assert asyncio.run(kept()) == entered(folder)
