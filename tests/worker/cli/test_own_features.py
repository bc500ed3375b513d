"""A command runs the operator's file of features, and plays such a run only where it is given it again."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from services.playbooks.loader import parse_playbook
from trading_core.features import own
from trading_core.features.registry import resolve
from trading_core.rules.grammar import parse
from worker.cli import app

FEATURES = """
import numpy as np

import thinktwice as tt


def half_range(open, high, low, close, volume):
    return (close - low) / np.where(high > low, high - low, 1.0)


tt.feature("half_range", half_range, 0)
"""
PLAYBOOK = """
id = "own_feature"
[rules.long]
setup = "half_range > 0.8"
stop = "close - 2 * atr_14"
exit = "half_range < 0.2"
"""


def forget() -> None:
    own._defined.clear()
    resolve.cache_clear()
    parse.cache_clear()
    parse_playbook.cache_clear()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a playbook and the file of its feature, in a process that knows no feature yet."""
    (tmp_path / "mine.py").write_text(FEATURES, "utf-8")
    (tmp_path / "book.toml").write_text(PLAYBOOK, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own, "_defined", {})
    yield tmp_path
    forget()


def run(*words: str) -> Result:
    forget()  # every command is a process of its own
    return CliRunner().invoke(app, [*words])


def traded(*words: str) -> Result:
    return run("backtest", "--playbooks", "book.toml", "--symbols", "AAPL", "--to", "2000-12-31", *words)


def test_run_of_a_file_of_features_is_played_again_with_it_and_not_without(folder):
    done = traded("--features", "mine.py")
    assert done.exit_code == 0, done.output
    again = run("verify", "--features", "mine.py")
    assert again.exit_code == 0, again.output
    assert "replay     same" in again.stdout
    without = run("verify")
    assert without.exit_code == 1
    assert "replay     cannot be replayed: run r0001 reads features of a Python script" in without.stdout
    (folder / "mine.py").write_text(FEATURES.replace("1.0)", "2.0)"), "utf-8")
    other = run("verify", "--features", "mine.py")
    assert other.exit_code == 1
    assert "not defined here as they were (half_range)" in other.stdout


def test_playbook_of_an_unknown_feature_is_refused_without_its_file(folder):
    done = traded()
    assert done.exit_code == 2
    assert "half_range" in done.stderr


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("gone.py", None, "--features 'gone.py': give a Python file, .py, that calls tt.feature"),
        ("mine.txt", FEATURES, "--features 'mine.txt': give a Python file"),
        ("fails.py", "1 / 0", "--features 'fails.py': ZeroDivisionError: division by zero"),
        ("wrong.py", FEATURES.replace(", 0)", ", -1)"), "feature 'half_range': lookback -1"),
    ],
)
def test_file_of_features_that_cannot_be_run_is_one_line_and_exit_two(folder, name, text, words):
    if text is not None:
        Path(name).write_text(text, "utf-8")
    done = traded("--features", name)
    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
