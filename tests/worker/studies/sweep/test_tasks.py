"""A sweep on executors: the same rows, nothing repeated, and runs of the agent as sets."""

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import thinktwice as tt
from schemas.errors import ConfigError
from services.playbooks.loader import load_playbooks
from tests.worker.studies.executors.test_executors import Counting
from worker.feeds.sample_data.worlds import make_world
from worker.studies.sweep import result as sweep_result
from worker.studies.sweep.agent_family import AgentFamily
from worker.studies.sweep.result import sweep_bars
from worker.studies.sweep.sets import Family
from worker.studies.sweep.tasks import SweepTasks
from worker.studies.sweep.worth import Looking

BARS = make_world("random_walk", seed=5, bars=600, symbols=1)
FAMILY = Family(
    {"entry": "crosses_above(sma_{f}, sma_{s})", "stop_pct": 0.02, "target_pct": 0.04},
    {"f": [3, 5, "bad"], "s": [10, 20, 30, 40]},
)
FIELDS = (
    "trades",
    "total_r",
    "gain",
    "sharpe",
    "exposure",
    "entry_rows",
    "exit_rows",
    "r",
    "excess",
    "problem",
)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(sweep_result, "CHUNK_CELLS", 3 * BARS.shape[0])


def swept(tasks):
    return sweep_bars(BARS, FAMILY, Looking(), run=tasks.of_rules)


def same(found, expected):
    for mine, theirs in zip(found.rows, expected.rows, strict=True):
        for name in FIELDS:
            np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    assert found.table.equals(expected.table)


def test_chunks_on_processes_give_the_rows_of_one_call():
    whole = sweep_bars(BARS, FAMILY, Looking())
    assert sum(row.problem is not None for row in whole.rows) == 4
    same(swept(SweepTasks("serial")), whole)
    same(swept(SweepTasks(None, processes=2)), whole)


def test_sweep_that_is_killed_goes_on_and_repeats_no_chunk(tmp_path):
    ran = []
    for _ in range(3):
        executor = Counting(most=1)
        with pytest.raises(KeyboardInterrupt):
            swept(SweepTasks(executor, resume=tmp_path))
        ran += executor.ran
    last = Counting(most=9)
    found = swept(SweepTasks(last, resume=tmp_path))
    assert len(ran) == 3
    assert len({*ran, *last.ran}) == len(ran) + len(last.ran) == 4
    same(found, sweep_bars(BARS, FAMILY, Looking()))


def test_sets_of_runs_have_the_figures_of_backtests():
    name, values = _parameter()
    grid = {"execution__fee_bps": [1.0, 9.0], name: values}
    frame = _frame()
    found = tt.sweep(frame, None, grid, level="agent", executor="serial", symbols=["A"])
    assert found.table.columns.tolist()[:2] == ["execution.fee_bps", name.replace("__", ".")]
    for number, fee in ((0, 1.0), (2, 9.0)):
        run = tt.backtest(frame, execution__fee_bps=fee, symbols=["A"], progress=False)
        row = found.table.iloc[number]
        assert row["return"] == run.summary["total_return"]
        assert row["trades"] == run.summary["trades"] == len(found.rows[number].r)
    assert found.worth.sets_tried == 4


def _parameter():
    """A parameter of an embedded playbook with its own value and another of its grid."""
    book = next(book for book in load_playbooks(None) if book.parameters)
    name, parameter = next(iter(book.parameters.items()))
    other = next(value for value in parameter.grid if value != parameter.value)
    return f"{book.id}__{name}", [parameter.value, other]


def _frame():
    import pandas as pd

    world = make_world("random_walk", seed=3, bars=700, symbols=1)
    columns = {name: getattr(world, name)[:, 0] for name in ("open", "high", "low", "close", "volume")}
    return pd.DataFrame(columns, index=pd.to_datetime(world.times, utc=True))


def test_grid_of_runs_names_what_it_does_not_know():
    shown = tt.settings()
    with pytest.raises(ConfigError, match=r"'execution.fee_bp' is no setting.*execution.fee_bps"):
        AgentFamily.of(shown, (), {"execution__fee_bp": [1.0]}, None)
    name, _ = _parameter()
    family = AgentFamily.of(shown, load_playbooks(None), {name: [1e9]}, None)
    with pytest.raises(ConfigError, match="is not on its grid"):
        family.set_of(family.points()[0])
    with pytest.raises(ConfigError, match="keep: sets at level 'rule' have no store"):
        tt.sweep(_frame(), grid={"f": [3], "s": [9]}, keep="stores")
    both: Any = "both"
    with pytest.raises(ConfigError, match="neither 'rule' nor 'agent'"):
        tt.sweep(_frame(), grid={"f": [3], "s": [9]}, level=both)


def test_feature_of_the_script_is_refused_before_workers_get_it(tmp_path, monkeypatch):
    (tmp_path / "notes_of_mine.py").write_text(
        "def mine(open, high, low, close, volume):\n    return close\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    notes_of_mine = import_module("notes_of_mine")
    tt.feature("mine", notes_of_mine.mine, lookback=0)
    family = Family({"entry": "mine > sma_{s}"}, {"s": [10, 20, 30, 40]})
    monkeypatch.setattr(notes_of_mine.mine, "__module__", "__main__")
    tasks = SweepTasks("processes", processes=2)
    with pytest.raises(ConfigError, match="feature 'mine' is defined in '__main__'"):
        sweep_bars(BARS, family, Looking(), run=tasks.of_rules)
    here = sweep_bars(BARS, family, Looking(), run=SweepTasks("serial").of_rules)
    assert [row.problem for row in here.rows] == [None] * 4
