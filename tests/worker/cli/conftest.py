"""The command line in a folder of its own: a fake engine behind it, or a stored run of the planted world."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import Result

from schemas.settings import Settings
from tests.made_once import read_made
from tests.worker.cli.checking import run
from tests.worker.cli.fake_runner import FakeRunner
from tests.worker.cli.paper_stores import feed
from tests.worker.live.paper_runs import killed
from tests.worker.planted_store import BARS, definitions, store_planted, world
from worker.review import rebuilt
from worker.runs import run_inputs
from worker.runs.backtest import run_backtest


class Shell:
    """Runs commands in the test's folder; `engine` may be replaced between two commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = FakeRunner()

    def run(self, *words: str) -> Result:
        """Run one command; an exception that is not an exit fails the test."""
        return run(*words)

    def backtest(self, *words: str) -> Result:
        """Run the backtest on a month of one embedded symbol."""
        return self.run("backtest", "--symbols", "AAPL", "--to", "2000-03-31", *words)

    def complaint(self, *words: str, code: int = 2) -> str:
        """What a command that must fail says: one line on stderr, nothing on stdout."""
        result = self.run(*words)
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        assert result.stderr.count("\n") == 1
        return result.stderr


def at_defaults(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Work in a folder, with no setting from outside."""
    for name in [name for name in os.environ if name.startswith("THINKTWICE_")]:
        patch.delenv(name)
    patch.chdir(folder)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    at_defaults(tmp_path, monkeypatch)
    shell = Shell(tmp_path)
    monkeypatch.setattr(run_inputs, "backtest_runner", lambda *tell: shell.engine)
    monkeypatch.setattr(run_inputs, "playbooks", lambda settings: ())
    return shell


@pytest.fixture(scope="session")
def run_of_planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("planted")

    def stored() -> bytes:
        store_planted(folder / "made.db")
        return (folder / "made.db").read_bytes()

    path = folder / "thinktwice.db"
    path.touch(0o600)
    path.write_bytes(read_made("planted", stored))
    return path


@pytest.fixture
def planted(shell: Shell, run_of_planted: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The run in the default store, its bars and playbooks where the commands look for them."""
    return with_planted(shell, run_of_planted, monkeypatch)


def with_planted(shell: Shell, store: Path, patch: pytest.MonkeyPatch, bars: int = BARS) -> Shell:
    """The shell with a copy of a store with the planted run."""
    if store != shell.folder / "thinktwice.db":
        shutil.copy(store, shell.folder)
    patch.setattr(rebuilt, "load_bars", lambda settings, note: world(bars))
    patch.setattr(run_inputs, "playbooks", lambda settings: definitions())
    patch.setattr(run_inputs, "backtest_runner", lambda *tell: run_backtest)
    return shell


@pytest.fixture(scope="session")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with a paper run that was killed."""
    folder = tmp_path_factory.mktemp("left")
    assert killed(folder, Settings(), feed(), "committed", 160)
    return folder / "paper.db"


class Reported(NamedTuple):
    """A folder with the planted run and a report on demand.

    Attributes:
        shown: what `reflect` printed about the report.
        rows: how many rows the journal of the run had before it.
    """

    folder: Path
    shown: dict[str, Any]
    rows: int


@pytest.fixture(scope="session")
def report_of_planted(run_of_planted: Path, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """The report some bars before the bar at which the run itself replanned."""
    from tests.worker.cli.test_replan import answered, before, journalled, replanned

    folder = tmp_path_factory.mktemp("reported")
    with pytest.MonkeyPatch.context() as patch:
        at_defaults(folder, patch)
        made = with_planted(Shell(folder), run_of_planted, patch)
        rows = len(journalled(made))
        when = before(replanned(made)["verdict"]["known_at"])
        return Reported(folder, answered(made, "reflect", "--at", when, "--out", "out"), rows)


@pytest.fixture(scope="session")
def judged_of_planted(report_of_planted: Reported, tmp_path_factory: pytest.TempPathFactory) -> Reported:
    """The report once it was judged and carried out into a folder; `shown` is what `replan` printed."""
    from tests.worker.cli.test_replan import answered

    folder = tmp_path_factory.mktemp("judged")
    shutil.copytree(report_of_planted.folder, folder, dirs_exist_ok=True)
    name = report_of_planted.shown["report_id"]
    with pytest.MonkeyPatch.context() as patch:
        at_defaults(folder, patch)
        made = with_planted(Shell(folder), folder / "thinktwice.db", patch)
        shown = answered(made, "replan", name[:8], "--write", "books")
        return Reported(folder, shown, report_of_planted.rows)


@pytest.fixture
def judged(planted: Shell, judged_of_planted: Reported) -> Iterator[Shell]:
    """The planted run with that report, judged; what a test does to the written folder is undone."""
    shutil.copytree(judged_of_planted.folder, planted.folder, dirs_exist_ok=True)
    yield planted
    shutil.rmtree(judged_of_planted.folder / "books")
    shutil.copytree(planted.folder / "books", judged_of_planted.folder / "books")


@pytest.fixture
def reported(planted: Shell, report_of_planted: Reported) -> Shell:
    """The planted run with that report."""
    shutil.copytree(report_of_planted.folder, planted.folder, dirs_exist_ok=True)
    return planted
