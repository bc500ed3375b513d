"""Mistakes of a playbook are said before a run trades nothing: by the commands, the list and the library."""

import json
import warnings
from pathlib import Path

import pytest

import thinktwice as tt
from tests.worker.cli.checking import run

WRONG = """
id = "wrong"
title = "Wrong"
description = "Four mistakes."
horizon_bars = 500
risk_fraction = 0.02
[rules.long]
setup = "close > sma_20"
activation = "close > highest_20"
stop = "close * 1.02"
target = "close + 3 * atr_14"
invalidation = "close >= 0"
[eligibility.long]
trend = ["up"]
volatility = ["low"]
structure = ["neutral"]
[expectation]
hit_rate = 0.4
hold_p50_bars = 8
hold_p90_bars = 20
winner_mae_p80_r = -0.7
mfe_p50_r = 1.0
"""
FIELDS = ("horizon_bars", "risk_fraction", "rules.long.invalidation", "rules.long.stop")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A folder of playbooks, and the settings that name it, in the present folder."""
    (tmp_path / "books").mkdir()
    (tmp_path / "books" / "wrong.toml").write_text(WRONG, "utf-8")
    (tmp_path / "run.toml").write_text('[runtime]\nplaybooks = "books"\n', "utf-8")
    monkeypatch.chdir(tmp_path)
    return Path(tmp_path)


def test_mistakes_of_a_file_are_said_by_the_command_that_trades_it_and_listed(folder):
    words = ("run.toml", "--symbols", "AAPL", "--to", "2000-04-28")
    reply = run("backtest", *words)
    assert reply.exit_code == 0, reply.output
    lines = [line for line in reply.stderr.splitlines() if line.startswith("thinktwice: playbook 'wrong', ")]
    assert [line.split(", ")[1].split(":")[0] for line in lines] == [*FIELDS]
    found = json.loads(run("playbooks", "list", "--json").stdout)["mistakes"]
    assert [mistake["field"] for mistake in found] == [*FIELDS]
    shown = run("playbooks", "list").stdout
    assert all(f"wrong, {field}: " in shown for field in FIELDS)


def test_mistakes_of_a_folder_are_listed_before_any_run(folder):
    found = json.loads(run("playbooks", "list", "--playbooks", "books", "--json").stdout)
    assert [mistake["field"] for mistake in found["mistakes"]] == [*FIELDS]
    assert [shown["playbook_id"] for shown in found["playbooks"]] == ["wrong"]
    shown = run("playbooks", "list", "--playbooks", "books/wrong.toml").stdout
    assert all(f"wrong, {field}: " in shown for field in FIELDS)
    refused = run("playbooks", "list", "some_run", "--playbooks", "books")
    assert (refused.exit_code, "give one of them" in refused.stderr) == (2, True)


@pytest.mark.parametrize("words", [("paper",), ("ablate", "--seeds", "0", "--out", "worth")])
def test_mistakes_are_said_by_every_command_that_trades_playbooks(folder, words):
    command, *options = words
    reply = run(command, "run.toml", *options, "--symbols", "AAPL", "--to", "2000-04-28")
    assert all(f"thinktwice: playbook 'wrong', {field}: " in reply.stderr for field in FIELDS), reply.output


def test_mistakes_of_a_folder_are_warnings_of_the_library(folder):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tt.backtest(playbooks=folder / "books", symbols=("AAPL",), end="2000-04-28")
    assert [str(warning.message).split(", ")[1].split(":")[0] for warning in caught] == [*FIELDS]
    assert {warning.filename for warning in caught} == {__file__}


def test_mistake_of_a_playbook_object_is_a_warning_where_it_is_made():
    rules = {
        "setup": "close > sma_20",
        "stop": "close * 1.02",
        "target": "close + 3 * atr_14",
        "invalidation": "close < sma_20",
    }
    with pytest.warns(UserWarning, match=r"rules\.long\.stop: 'close \* 1\.02' never lies below") as caught:
        tt.Playbook("beyond", long=rules)
    assert [warning.filename for warning in caught] == [__file__]


def test_embedded_playbooks_are_traded_without_a_word(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "playbook '" not in run("backtest", "--symbols", "AAPL", "--to", "2000-04-28").stderr
