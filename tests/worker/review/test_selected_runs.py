"""`tt.trials` and `thinktwice trials --pbo`: is the best of a store's runs real?"""

import json
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

import thinktwice as tt
from services.statistics.selection import deflated_sharpe, overfitting_probability
from worker.cli import app

DEARER, BOLDER = {"execution__fee_bps": 30.0}, {"envelope__risk_fraction": 0.01}


def run(**more):
    return tt.backtest(symbols=["AAPL"], start="2003-01-01", end="2003-12-31", **more)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Three configurations on the same bars, the first under two seeds, and one on weekly bars of them."""
    url = f"sqlite:///{tmp_path_factory.mktemp('selected')}/s.sqlite"
    made = [run(**more) for more in ({}, {"seed": 5}, DEARER, BOLDER)]
    with pytest.warns(UserWarning, match="1w bar"):
        weekly = run(resample="1w")
    return url, made, [result.save(url) for result in [*made, weekly]]


@pytest.fixture(scope="module")
def found(store):
    return tt.trials(store[0])


def equity_returns(result):
    curve = np.concatenate([[result.settings.account.cash], np.ravel(result.equity["equity"])])
    return np.diff(curve) / curve[:-1]


def test_trials_compare_configurations_on_the_same_bars_and_a_seed_is_none(store, found):
    _, made, ids = store
    daily = found.selection.set_index("timeframe").loc["1d"]
    returns = np.column_stack([equity_returns(made[place]) for place in (0, 2, 3)])
    ratios = returns.mean(axis=0) / returns.std(axis=0, ddof=1)
    best = int(np.argmax(ratios))
    assert (daily["configurations"], daily["tried"]) == (3, 4)
    assert daily["best"] == [ids[0], ids[2], ids[3]][best]
    assert daily["pbo"] == pytest.approx(overfitting_probability(returns).pbo)
    assert daily["deflated_sharpe"] == pytest.approx(deflated_sharpe(returns[:, best], ratios, 4))
    assert "1 run of the same configuration or of another seed alone" in " ".join(daily["limits"])
    assert "1 configuration of other or unread bars" in " ".join(daily["limits"])


def test_trials_command_prints_what_the_library_finds(store, found):
    shown = CliRunner().invoke(app, ["trials", "--pbo", "--json", "--db", store[0]])
    assert json.loads(shown.stdout) == json.loads(json.dumps(found.document))
    assert CliRunner().invoke(app, ["trials", "--pbo", "--db", store[0]]).stdout == f"{found}\n"
    plain = json.loads(CliRunner().invoke(app, ["trials", "--json", "--db", store[0]]).stdout)
    assert plain == {"ranges": found.document["ranges"]}


def test_trials_without_arch_name_what_to_install(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "arch.bootstrap", None)
    shown = CliRunner().invoke(app, ["trials", "--pbo", "--db", store[0]])
    assert shown.exit_code == 2
    assert "pip install 'thinktwice[research]'" in shown.stderr
