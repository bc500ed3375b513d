"""A disk that fills up while a run is written: one clear line, no half event, and it goes on later (F12)."""

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tools.docs_examples import without_waiting
from worker.cli import app

ROOT = Path(__file__).parents[3]
# A file that may not grow further fails as a full disk does, on any file system and without privileges.
FULL = """
import resource, signal, sys
sys.path.insert(0, {root!r})
from tests.worker.cli.fake_runner import FakeRunner
from worker.cli import app
from worker.runs import run_inputs
run_inputs.playbooks = lambda settings: ()
run_inputs.backtest_runner = lambda *tell: FakeRunner()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
app({words!r})
"""
WORDS = ["backtest", "--symbols", "AAPL", "--to", "2000-12-31"]


def read_text(*words):
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("THINKTWICE_")]:
        if name != "THINKTWICE_CACHE_DIR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("THINKTWICE_RUNTIME__FLUSH_ROWS", "20")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_on_a_disk_that_fills_up_ends_with_one_line_and_keeps_whole_events(folder):
    assert read_text("db", "upgrade")[0] == 0
    size = max(path.stat().st_size for path in folder.iterdir()) + 60_000
    program = FULL.format(root=str(ROOT), words=WORDS, size=size)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert without_waiting(done.stderr).count("\n") == 1
    assert "disk" in done.stderr
    # Room again: what was stored is whole, and the store works on.
    assert read_text("db", "check", "--full") == (0, read_text("db", "check", "--full")[1])
    with closing(sqlite3.connect(folder / "thinktwice.db")) as store:
        runs = store.execute("SELECT run_id, events FROM runs").fetchall()
    [(run_id, events)] = runs
    assert 0 < events == len(read_text("journal", run_id, "--jsonl")[1].splitlines())
    assert read_text("runs")[0] == 0
