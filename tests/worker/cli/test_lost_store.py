"""Commands whose store is deleted or replaced while they write: exit 2, with what is lost."""

import os
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.commands.started import thinktwice
from tests.worker.cli.fake_runner import FakeRunner
from tests.worker.live.real_paper import words, written

ROOT = Path(__file__).resolve().parents[3]
STORE = "thinktwice.db"


def delete(folder: Path) -> None:
    for path in folder.glob(f"{STORE}*"):
        path.unlink()


def replace(folder: Path) -> None:
    shutil.copy(folder / STORE, folder / "copy.db")
    (folder / "copy.db").replace(folder / STORE)


def delete_log(folder: Path) -> None:
    (folder / f"{STORE}-wal").unlink()


@pytest.mark.parametrize("lose", [delete, replace, delete_log])
@pytest.mark.parametrize("stopped_by", [None, signal.SIGINT, signal.SIGTERM])
def test_backtest_whose_store_is_lost_ends_with_two_and_never_with_stored(shell, lose, stopped_by):
    def at_bar(t: int) -> None:
        if t == 4:
            lose(shell.folder)
            if stopped_by is not None:
                signal.raise_signal(stopped_by)

    shell.engine = FakeRunner(at_bar=at_bar)
    done = shell.backtest()
    assert (done.exit_code, done.stdout) == (2, "")
    text = done.stderr.splitlines()[-1]
    assert text.startswith(f"thinktwice: store sqlite:///{STORE}: ")
    assert "run r0001" in text
    assert "restore a backup" in text
    assert "is kept" not in done.stderr


def environment() -> dict[str, str]:
    """Of a process without settings of this machine."""
    return {name: value for name, value in os.environ.items() if not name.startswith("THINKTWICE_")}


def rows_of(path: Path, table: str) -> int:
    """Rows that the process has stored so far."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        return int(store.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    return 0


def lost_under(
    folder: Path, command: list[str], table: str, lose, stop: int | None = None
) -> tuple[int, str]:
    """Exit code and last words of a process whose store is lost once a table of it has three rows."""
    with subprocess.Popen(
        [thinktwice(), *command],
        cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        until = time.monotonic() + 240
        while rows_of(folder / STORE, table) < 3 and time.monotonic() < until:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        lose(folder)
        if stop is not None:
            process.send_signal(stop)
        try:
            _, text = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return process.returncode, text.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "lose", "stop"),
    [("paper", delete, None), ("paper", replace, signal.SIGINT), ("worker", delete_log, None)],
)
def test_paper_process_whose_store_is_lost_ends_with_two_and_never_with_stored(tmp_path, command, lose, stop):
    data = written(tmp_path, 2_000)
    replay = ("--feed", "replay", "--speed", "600")  # ten bars a second: hours until the end
    given = words(data, f"sqlite:///{tmp_path}/{STORE}", *replay, command=command)
    code, text = lost_under(tmp_path, given, "paper_bars", lose, stop)
    assert code == 2, text
    assert f"store sqlite:///{tmp_path}/{STORE}: " in text
    assert "run r0001" in text
    assert "stored up to here" not in text


def test_command_named_when_the_log_is_deleted_works_once_nobody_has_the_store_open(tmp_path):
    data = written(tmp_path, 2_000)
    replay = ("--feed", "replay", "--speed", "600")
    given = words(data, f"sqlite:///{tmp_path}/{STORE}", *replay)
    readers: list[sqlite3.Connection] = []

    def lose(folder: Path) -> None:
        readers.append(sqlite3.connect(folder / STORE))  # as a worker has it open
        readers[0].execute("SELECT count(*) FROM journal").fetchone()
        delete_log(folder)

    code, text = lost_under(tmp_path, given, "paper_bars", lose)
    assert (code, "every process that has the store open" in text) == (2, True), text
    (named,) = re.findall(r"`thinktwice (verify r0001 [^`]*)`", text)

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [thinktwice(), *shlex.split(named), "--data", str(data)],
            cwd=ROOT, env=environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip

    early = run()
    assert early.returncode == 2
    assert "end every process that has it open, then run the command again" in early.stderr
    readers[0].close()
    late = run()
    assert late.returncode == 0, late.stderr
    assert "chain      holds" in late.stdout
