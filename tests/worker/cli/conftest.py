"""The command line in a folder of its own: a fake engine behind it, or a stored run of the planted world."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from tests.worker.cli.fake_runner import FakeRunner
from tests.worker.planted_store import definitions, store_planted, world
from worker.cli import app, rebuilt, wiring
from worker.runs.backtest import run_backtest


class Shell:
    """Runs commands in the test's folder; `engine` may be replaced between two commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = FakeRunner()

    def run(self, *words: str) -> Result:
        """Run one command; an exception that is not an exit fails the test."""
        result = CliRunner().invoke(app, list(words))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def backtest(self, *words: str) -> Result:
        """Run the backtest on a month of one embedded symbol."""
        return self.run("backtest", "--symbols", "AAPL", "--to", "2000-03-31", *words)

    def complaint(self, *words: str, code: int = 2) -> str:
        """What a command that must fail says: one line on stderr, nothing on stdout."""
        result = self.run(*words)
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        assert result.stderr.count("\n") == 1
        return result.stderr


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in [name for name in os.environ if name.startswith("THINKTWICE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    shell = Shell(tmp_path)
    monkeypatch.setattr(wiring, "backtest_runner", lambda: shell.engine)
    monkeypatch.setattr(wiring, "playbooks", lambda settings: ())
    return shell


@pytest.fixture(scope="session")
def run_of_planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("planted") / "thinktwice.db"
    store_planted(path)
    return path


@pytest.fixture
def planted(shell: Shell, run_of_planted: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The run in the default store, its bars and playbooks where the commands look for them."""
    shutil.copy(run_of_planted, shell.folder / "thinktwice.db")
    monkeypatch.setattr(rebuilt, "load_bars", lambda settings: world())
    monkeypatch.setattr(wiring, "playbooks", lambda settings: definitions())
    monkeypatch.setattr(wiring, "backtest_runner", lambda: run_backtest)
    return shell
