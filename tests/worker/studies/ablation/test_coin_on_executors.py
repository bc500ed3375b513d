"""The coin's unstored runs go to processes where that pays, and come to the same there."""

import pytest

from schemas.settings import Settings
from services.playbooks.loader import load_playbooks
from tests.worker.studies.ablation.planted import run
from worker.feeds.sample_data.worlds import make_world
from worker.studies.ablation import runner
from worker.studies.executors.process_pool import ProcessPool

BARS = make_world("random_walk", seed=2, bars=500, symbols=1)


@pytest.fixture
def pools(monkeypatch):
    """Every task that a pool was given."""
    found, plain = [], ProcessPool.run

    def seen(self, work, tasks, look):
        found.extend(tasks)
        return plain(self, work, tasks, look)

    monkeypatch.setattr(ProcessPool, "run", seen)
    return found


def ablated(folder, name):
    found, _ = run(BARS, Settings(), load_playbooks(None), f"sqlite:///{folder / name}", seeds=4)
    return [(veto.seed, veto.head_hash, veto.curve.tolist(), veto.run_id) for veto in found.vetoes]


def test_coin_on_processes_throws_as_it_does_here(tmp_path, monkeypatch, pools):
    here = ablated(tmp_path, "here.db")
    assert not pools  # so little is not worth the start of a process
    monkeypatch.setattr(runner, "POOL_PAYS", 0)
    monkeypatch.setattr("worker.studies.executors.choosing.cores", lambda: 2)
    assert ablated(tmp_path, "there.db") == here
    assert pools == ["random_veto 1", "random_veto 2", "random_veto 3"]
    assert [run_id is None for *_, run_id in here] == [False, True, True, True]
