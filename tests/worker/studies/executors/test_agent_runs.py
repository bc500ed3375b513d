"""A run of the agent as a task is the backtest that a script makes."""

from typing import Any

import numpy as np
import pytest

import thinktwice as tt
from schemas.settings import Settings
from services.playbooks.loader import load_playbooks
from worker.feeds.sample_data.worlds import make_world
from worker.feeds.selected_bars import load_bars
from worker.studies.executors.agent_runs import agent_answers, agent_settings
from worker.studies.executors.choosing import opened_executor
from worker.studies.executors.kept_answers import KeptAnswers

BARS = make_world("random_walk", seed=3, bars=700, symbols=2)
BOOKS = load_playbooks(None)
GRID: list[dict[str, Any]] = [
    {"account__cash": 50_000.0},
    {"account__cash": 50_000.0, "reflection__mode": "off"},
]
SETS = [(agent_settings(Settings(), changes), BOOKS) for changes in GRID]


def unseen(done, of):
    """Nobody watches."""


def ran(executor, sets=SETS, **options):
    given = {"kept": None, "keep": False, "shown": unseen, **options}
    with opened_executor(executor, processes=2) as opened:
        return agent_answers(opened, BARS, sets, **given)


@pytest.fixture(scope="module")
def serial():
    return ran("serial")


def test_pool_gives_the_answers_of_one_process_bit_by_bit(serial):
    for mine, theirs in zip(ran("processes"), serial, strict=True):
        assert mine.keys() == theirs.keys()
        assert mine["document"] == theirs["document"]
        for name in set(mine) - {"document"}:
            np.testing.assert_array_equal(mine[name], theirs[name])
    assert serial[0]["head"] != serial[1]["head"]


def test_kept_store_of_a_run_is_verified_as_any_other(tmp_path):
    settings = agent_settings(Settings(), {"data__symbols": ["IBM"], "runtime__start": "2010-01-01"})
    bars = load_bars(settings, lambda note: None)
    with opened_executor("serial") as opened:
        (answer,) = agent_answers(
            opened, bars, [(settings, BOOKS)], kept=KeptAnswers(tmp_path / "kept"), keep=True, shown=unseen
        )
        (again,) = agent_answers(
            opened, bars, [(settings, BOOKS)], kept=KeptAnswers(tmp_path / "kept"), keep=True, shown=unseen
        )
    file = tmp_path / "run.sqlite"
    file.write_bytes(again["store"])
    run = tt.load("latest", db=f"sqlite:///{file}")
    assert run.verify()
    shown = tt.backtest(settings=settings, progress=False)
    assert answer["head"] == again["head"] == shown.document["journal"]["head_hash"]


def test_set_that_cannot_run_costs_itself():
    bad = agent_settings(
        Settings(),
        {"envelope__correlation_buckets": [{"name": "tech", "symbols": ["NONE"], "max_exposure": 1.0}]},
    )
    first, second = ran("serial", [(bad, BOOKS), SETS[1]])
    assert "NONE" in first["error"]
    assert second["head"]
