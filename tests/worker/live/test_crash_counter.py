"""Starts of a run are noted, those of processes that are gone are crashes, and no note stops the trading."""

import json
import os
import platform
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from schemas.errors import StoreError
from schemas.settings.live import OperationsSettings
from worker.live.crash_counter import StartLimit, StartNotes, crash_loop
from worker.live.process_identity import ProcessIdentity, is_gone

LIMIT = OperationsSettings(start_limit=2, start_window_s=600)
GONE = "another boot 1"  # no process of this machine began then


def dead(number):
    """A process that had our number before us, as every one in a container has."""
    return ProcessIdentity(platform.node(), os.getpid(), f"{GONE} {number}")


@pytest.fixture
def living():
    """Another process that lives as long as the test."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        yield other
        other.kill()


def named(process):
    """The identity of a process that runs."""
    own = ProcessIdentity.own()
    began = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ProcessIdentity(own.host, process.pid, f"{own.born.split()[0]} {began}")


def test_starts_of_processes_that_are_gone_are_crashes(tmp_path):
    path = tmp_path / "starts.json"
    for number in (1, 2):
        StartNotes(path, dead(number)).begin(number)
    notes = StartNotes(path)
    assert notes.crashes() == (1, 2)
    notes.begin(3)
    assert notes.crashes() == (1, 2)  # who looks is alive
    assert not notes.damaged


def test_orderly_end_takes_back_its_own_start_only(tmp_path):
    path = tmp_path / "starts.json"
    StartNotes(path, dead(1)).begin(1)
    notes = StartNotes(path)
    notes.begin(2)
    notes.end()
    assert StartNotes(path).crashes() == (1,)
    StartNotes(path, dead(1)).end()
    assert list(tmp_path.iterdir()) == []


def test_start_of_a_process_that_lives_is_no_crash_until_it_is_killed(tmp_path, living):
    path = tmp_path / "starts.json"
    StartNotes(path, named(living)).begin(1)
    assert StartNotes(path).crashes() == ()
    living.kill()
    os.waitid(os.P_PID, living.pid, os.WEXITED | os.WNOWAIT)
    assert StartNotes(path).crashes() == (1,)  # nobody has fetched its exit code, and it is gone all the same
    living.wait()
    assert StartNotes(path).crashes() == (1,)


def test_process_whose_number_is_used_again_is_gone(living):
    running = named(living)
    assert not is_gone(running)
    assert is_gone(replace(running, born=GONE))
    assert not is_gone(replace(running, born=""))  # nobody knows: it may be the one
    assert not is_gone(replace(dead(1), host="elsewhere"))
    assert not is_gone(ProcessIdentity.own())


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"starts": ["x"]}', '{"starts": 5}', '{"starts": [1]}', "\xff"]
    + [
        json.dumps({"starts": [{"at": at, "process": {"host": "h", "pid": pid, "born": born}}]})
        for at, pid, born in ((True, 1, ""), ("1", 1, ""), (1, 0, ""), (1, "1", ""), (1, 1, None))
    ],
)
def test_damaged_notes_are_said_and_written_anew(tmp_path, text):
    path = tmp_path / "starts.json"
    path.write_bytes(text.encode("latin-1"))
    told = []
    limit = StartLimit(lambda run_id: path, LIMIT, lambda *one: told.append(one))
    assert not limit.crashed_too_often("r0001")
    assert [(kind, detail["run_id"]) for kind, detail in told] == [("start_notes_failed", "r0001")]
    assert [one["process"]["pid"] for one in json.loads(path.read_text())["starts"]] == [os.getpid()]


def test_notes_that_cannot_be_written_are_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written: File exists"):
        StartNotes(tmp_path / "file" / "starts.json").begin(1)


def test_crashes_of_one_run_put_no_other_into_safe_mode_and_its_end_takes_none_back(tmp_path):
    def limit():
        return StartLimit(lambda run_id: tmp_path / run_id, LIMIT, lambda *one: pytest.fail(str(one)))

    now = limit()
    now.crashed_too_often("r0001")
    at = json.loads((tmp_path / "r0001").read_text())["starts"][0]["at"]
    for number in range(3):
        StartNotes(tmp_path / "r0002", dead(number)).begin(at)
    assert not limit().crashed_too_often("r0001")
    assert not limit().crashed_too_often("r0003")
    now.end()
    assert limit().crashed_too_often("r0002")


def test_crashes_count_although_the_notes_cannot_be_written_any_more(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    limit = StartLimit(lambda run_id: tmp_path / run_id, LIMIT, lambda *one: told.append(one))
    told: list[tuple[str, dict[str, str]]] = []
    limit.crashed_too_often("r0001")
    at = json.loads((tmp_path / "r0001").read_text())["starts"][0]["at"]
    for number in range(3):
        StartNotes(tmp_path / "r0001", dead(number)).begin(at)
    monkeypatch.setattr(os, "replace", full)
    assert limit.crashed_too_often("r0001")
    limit.end()  # it was never noted, and the others stay
    assert [kind for kind, _ in told] == ["start_notes_failed"]
    assert len(StartNotes(tmp_path / "r0001").crashes()) == 3
    assert "No space left on device; crashes are not counted" in told[0][1]["reason"]
    assert [one.name for one in tmp_path.iterdir()] == ["r0001"]


def test_end_of_a_process_that_never_held_its_run_changes_nothing(tmp_path):
    StartNotes(tmp_path / "r0001", dead(1)).begin(1)
    StartLimit(lambda run_id: tmp_path / run_id, LIMIT, lambda *one: pytest.fail(str(one))).end()
    assert StartNotes(tmp_path / "r0001").crashes() == (1,)


def test_start_is_taken_back_on_a_disk_without_room_for_a_new_file(tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device")

    path = tmp_path / "starts.json"
    StartNotes(path, dead(1)).begin(1)
    notes = StartNotes(path)
    notes.begin(2)
    monkeypatch.setattr(os, "replace", full)
    notes.end()
    assert StartNotes(path).crashes() == (1,)
    assert [one.name for one in tmp_path.iterdir()] == ["starts.json"]


def test_crashes_of_a_future_that_a_set_back_clock_has_left_count_once_around(tmp_path):
    path, window = tmp_path / "starts.json", LIMIT.start_window_s * 10**9
    year = 365 * 86_400 * 10**9
    for number in range(3):
        StartNotes(path, dead(number)).begin(year + number)
    now = StartNotes(path)
    assert crash_loop(now.crashes(), window, LIMIT)
    now.begin(window)
    now.end()
    assert StartNotes(path).crashes() == (window,) * 3
    assert not crash_loop(StartNotes(path).crashes(), 2 * window + 1, LIMIT)
