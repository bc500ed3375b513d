"""Commands under a limit of open files that they cannot work with, and who may read what they write."""

import os
import stat
import sys

import pytest

from services.store.urls import parse_url
from tests.commands.started import python, run_to_end
from worker.doctor.checks import loose_files

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({limit}, {limit}))
from worker.cli import app
app({words!r})
"""


@pytest.mark.parametrize("limit", [8, 12, 63])
@pytest.mark.parametrize("words", [["backtest", "--symbols", "AAPL", "--to", "2000-03-31"], ["db", "check"]])
def test_command_that_may_open_too_few_files_says_so_in_one_line_and_does_nothing(shell, limit, words):
    done = limited(python(), shell, limit, words)
    assert (done.returncode, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert f"too many open files: this process may have {limit} open, and a command needs 64" in line
    assert "ulimit -n 1024" in line
    assert not (shell.folder / "thinktwice.db").exists()


@pytest.mark.parametrize(
    ("limit", "words"),
    [(64, ["backtest", "--symbols", "AAPL", "--to", "2000-03-31"]), (12, ["backtest", "--help"])],
)
def test_command_works_with_as_many_files_as_it_says_and_help_with_fewer(shell, limit, words):
    done = limited(sys.executable, shell, limit, words)
    assert done.returncode == 0, done.stderr


def limited(program, shell, limit, words):
    return run_to_end([program, "-c", LIMITED.format(limit=limit, words=words)], shell.folder)


def test_what_is_written_is_read_by_its_owner_alone_and_a_looser_store_is_told(shell):
    before = os.umask(0)
    try:
        assert shell.backtest().exit_code == 0
        assert shell.run("db", "backup", "kept.db").exit_code == 0
        assert shell.run("db", "restore", "kept.db", "--db", "sqlite:///back.db").exit_code == 0
    finally:
        os.umask(before)
    for name in ("thinktwice.db", "kept.db", "back.db"):
        assert stat.S_IMODE((shell.folder / name).stat().st_mode) == 0o600, name
    store = parse_url("sqlite:///thinktwice.db")
    assert loose_files(store) == []
    (shell.folder / "thinktwice.db").chmod(0o640)
    assert loose_files(store) == ["thinktwice.db"]
    text = shell.run("doctor").stdout
    assert "other users may read the store" in text
    assert "chmod 600 thinktwice.db" in text
