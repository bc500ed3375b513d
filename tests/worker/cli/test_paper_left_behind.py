"""A new paper run beside one that is not over: `thinktwice paper` says so and goes on."""

import sqlite3
from contextlib import closing

import pytest
from typer.testing import CliRunner

from tests.services.store.stores import seal_again
from worker.cli import app

BARS = ("--symbols", "AAPL", "--from", "2009-01-01")


def paper(folder, *words, environment=None, code=0):
    given = ["paper", *BARS, "--db", f"sqlite:///{folder}/a.db", "--json", *words]
    done = CliRunner().invoke(app, given, env=environment or {})
    assert done.exit_code == code, done.output
    return done.stderr


@pytest.fixture
def folder(tmp_path):
    """A store whose only run was left before its end."""
    assert "run_left_behind" not in paper(tmp_path, "--to", "2009-03-31")
    with closing(sqlite3.connect(tmp_path / "a.db", isolation_level=None)) as store:
        store.execute("UPDATE runs SET status = 'interrupted', document = NULL")
    seal_again(tmp_path / "a.db")
    return tmp_path


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--to", "2009-04-30"), "to then '2009-03-31', now '2009-04-30'"),
        (("--to", "2009-03-31", "--new"), "--new was given"),
    ],
)
def test_paper_that_leaves_a_run_behind_warns_with_its_name_and_the_reason(folder, words, why):
    text = paper(folder, *words, environment={"THINKTWICE_RUNTIME__OPERATIONS__LOG_LEVEL": "warning"})
    shown = [line for line in text.splitlines() if "run_left_behind" in line]
    assert len(shown) == 1
    assert "r0001" in shown[0]
    assert why in shown[0]


def test_paper_that_logs_into_a_file_warns_on_stderr_too(folder):
    log = folder / "paper.log"
    text = paper(
        folder,
        "--to",
        "2009-03-31",
        "--new",
        environment={"THINKTWICE_RUNTIME__OPERATIONS__LOG_FILE": str(log)},
    )
    assert "thinktwice: run r0001 is not over and does not go on:" in text
    assert "run_left_behind" in log.read_text("utf-8")


def test_paper_that_goes_on_warns_of_nothing(folder):
    text = paper(folder, "--to", "2009-03-31", code=2)
    assert "its status was set back to 'running'" in text, "it holds the rows of its end"
    assert "left_behind" not in text
