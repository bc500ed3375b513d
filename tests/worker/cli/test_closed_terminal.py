"""Processes whose terminal is closed: an orderly end, as if they had been asked to stop."""

import os
import pty
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.commands.started import thinktwice
from tests.worker.cli.terminals import TAKE
from tests.worker.cli.test_lost_store import ROOT, STORE, environment, rows_of
from tests.worker.live.real_paper import words, written

LONGEST_S = 240
# As `nohup` starts a process.
IGNORING = ("sh", "-c", "trap '' HUP; exec \"$@\" >/dev/null 2>&1", "sh")


@contextmanager
def started(folder: Path, command: list[str], *before: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """A process in a terminal of its own, and our end of that terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", TAKE, *before, thinktwice(), *command],
        cwd=ROOT, env=environment(), stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    try:
        yield process, ours
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def paper(folder: Path, command: str) -> list[str]:
    replay = ("--feed", "replay", "--speed", "600")  # ten bars a second: hours until the end
    return words(written(folder, 2_000), f"sqlite:///{folder}/{STORE}", *replay, command=command)


def trades(process: "subprocess.Popen[bytes]", folder: Path) -> None:
    until = time.monotonic() + LONGEST_S
    while rows_of(folder / STORE, "paper_bars") < 3 and time.monotonic() < until:
        assert process.poll() is None
        time.sleep(0.05)


def status(folder: Path) -> str:
    with closing(sqlite3.connect(folder / STORE)) as store:
        return str(store.execute("SELECT status FROM runs").fetchone()[0])


@pytest.mark.parametrize("command", ["paper", "worker"])
def test_paper_process_whose_terminal_is_closed_ends_orderly_and_is_no_crash(tmp_path, command):
    with started(tmp_path, paper(tmp_path, command)) as (process, terminal):
        trades(process, tmp_path)
        os.close(terminal)
        assert process.wait(60) == 128 + signal.SIGHUP
    assert status(tmp_path) == "interrupted"
    starts = "SELECT count(*), sum(until_ms) FROM leases WHERE name LIKE 'start/%'"
    with closing(sqlite3.connect(tmp_path / STORE)) as store:
        assert store.execute(starts).fetchone() == (1, 0)


def test_paper_process_under_nohup_outlives_its_terminal(tmp_path):
    with started(tmp_path, paper(tmp_path, "paper"), *IGNORING) as (process, terminal):
        trades(process, tmp_path)
        os.close(terminal)
        before = rows_of(tmp_path / STORE, "paper_bars")
        until = time.monotonic() + 60
        while rows_of(tmp_path / STORE, "paper_bars") < before + 5 and time.monotonic() < until:
            assert process.poll() is None
            time.sleep(0.05)
        process.terminate()
        process.wait(60)
    assert status(tmp_path) == "interrupted"
