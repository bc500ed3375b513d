"""Starts of a run are noted, those of processes that are gone are crashes, and no note stops the trading."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from schemas.errors import StoreError
from schemas.settings.live import OperationsSettings
from worker.live.crash_counter import MOST_KEPT, StartLimit, StartNotes, crash_loop

LIMIT = OperationsSettings(start_limit=2, start_window_s=600)
LIVES = """
import sys
from pathlib import Path
from worker.live.crash_counter import StartNotes
StartNotes(Path(sys.argv[1])).begin(1)
print("begun", flush=True)
input()
"""


def crashed(folder: Path, *starts: int) -> None:
    """Leave what processes leave that died without a word: files that nobody holds."""
    folder.mkdir(exist_ok=True)
    for number, at in enumerate(starts):
        (folder / f"{at}.{number:x}").touch()


def names(folder: Path) -> list[str]:
    """Times of the starts that are noted, as the files are named."""
    return sorted(path.name.partition(".")[0] for path in folder.iterdir())


@pytest.fixture
def living(tmp_path):
    """Another process that has begun and lives as long as the test."""
    words = [sys.executable, "-c", LIVES, str(tmp_path / "starts")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"begun\n"
        yield other
        other.kill()


def test_starts_of_processes_that_are_gone_are_crashes(tmp_path):
    folder = tmp_path / "starts"
    crashed(folder, 1, 2)
    notes = StartNotes(folder)
    assert notes.crashes() == (1, 2)
    notes.begin(3)
    assert notes.crashes() == (1, 2)  # who looks is alive
    assert not notes.damaged


def test_orderly_end_takes_back_its_own_start_only(tmp_path):
    folder = tmp_path / "starts"
    crashed(folder, 1)
    notes = StartNotes(folder)
    notes.begin(2)
    notes.end()
    assert StartNotes(folder).crashes() == (1,)
    assert names(folder) == ["1"]
    alone = StartNotes(tmp_path / "other")
    alone.begin(1)
    alone.end()
    assert [path.name for path in tmp_path.iterdir()] == ["starts"], "a folder without a start goes"


def test_start_of_a_process_that_lives_is_no_crash_until_it_is_killed(tmp_path, living):
    folder = tmp_path / "starts"
    assert StartNotes(folder).crashes() == ()
    living.kill()
    os.waitid(os.P_PID, living.pid, os.WEXITED | os.WNOWAIT)
    assert StartNotes(folder).crashes() == (
        1,
    )  # nobody has fetched its exit code, and it is gone all the same
    living.wait()
    assert StartNotes(folder).crashes() == (1,)


def test_start_of_a_process_that_stands_still_is_no_crash(tmp_path, living):
    living.send_signal(19)
    assert StartNotes(tmp_path / "starts").crashes() == ()


def test_start_stays_held_while_other_programs_are_started(tmp_path):
    notes = StartNotes(tmp_path / "starts")
    notes.begin(1)
    held = notes._own
    assert held is not None
    assert not os.get_inheritable(held[1]), "a child that lives on must not look like its parent"


@pytest.mark.parametrize("name", ["x", "1x.00", "-1.00", ".00", "1 .00"])
def test_damaged_notes_are_said_and_the_others_count(tmp_path, name):
    folder, shown = tmp_path / "starts", []
    crashed(folder, 1)
    (folder / name).touch()
    limit = StartLimit(lambda run_id: folder, LIMIT, lambda *one: shown.append(one))
    assert not limit.crashed_too_often("r0001")
    assert [(kind, detail["run_id"]) for kind, detail in shown] == [("start_notes_failed", "r0001")]
    assert StartNotes(folder).crashes() == (1,)


def test_notes_that_cannot_be_written_are_an_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written: Not a directory"):
        StartNotes(tmp_path / "file" / "starts").begin(1)
    with pytest.raises(StoreError, match="cannot be written: File exists"):
        StartNotes(tmp_path / "file").begin(1)


def test_crashes_of_one_run_put_no_other_into_safe_mode_and_its_end_takes_none_back(tmp_path):
    def limit():
        return StartLimit(lambda run_id: tmp_path / run_id, LIMIT, lambda *one: pytest.fail(str(one)))

    now = limit()
    now.crashed_too_often("r0001")
    at = int(names(tmp_path / "r0001")[0])
    crashed(tmp_path / "r0002", at, at, at)
    assert not limit().crashed_too_often("r0001")
    assert not limit().crashed_too_often("r0003")
    now.end()
    assert limit().crashed_too_often("r0002")


def test_process_that_holds_a_run_again_has_one_start(tmp_path):
    limit = StartLimit(lambda run_id: tmp_path / run_id, LIMIT, lambda *one: pytest.fail(str(one)))
    for _ in range(3):
        limit.crashed_too_often("r0001")
    assert len(names(tmp_path / "r0001")) == 1


def full(*given, **named):
    raise OSError(28, "No space left on device")


def test_crashes_count_although_the_notes_cannot_be_written_any_more(tmp_path, monkeypatch):
    shown: list[tuple[str, dict[str, str]]] = []
    limit = StartLimit(lambda run_id: tmp_path / run_id, LIMIT, lambda *one: shown.append(one))
    limit.crashed_too_often("r0001")
    at = int(names(tmp_path / "r0001")[0])
    crashed(tmp_path / "r0001", at, at, at)
    monkeypatch.setattr(os, "open", full)
    assert limit.crashed_too_often("r0001")
    limit.end()  # it was never noted, and the others stay
    monkeypatch.undo()
    assert [kind for kind, _ in shown] == ["start_notes_failed"]
    assert len(StartNotes(tmp_path / "r0001").crashes()) == 3
    assert "No space left on device; crashes are not counted" in shown[0][1]["reason"]
    assert [path.name for path in tmp_path.iterdir()] == ["r0001"]


def test_end_of_a_process_that_never_held_its_run_changes_nothing(tmp_path):
    crashed(tmp_path / "r0001", 1)
    StartLimit(lambda run_id: tmp_path / run_id, LIMIT, lambda *one: pytest.fail(str(one))).end()
    assert StartNotes(tmp_path / "r0001").crashes() == (1,)


def test_start_is_taken_back_on_a_disk_without_room_for_a_new_file(tmp_path, monkeypatch):
    folder = tmp_path / "starts"
    crashed(folder, 1)
    notes = StartNotes(folder)
    notes.begin(2)
    monkeypatch.setattr(os, "open", full)
    notes.end()
    monkeypatch.undo()
    assert StartNotes(folder).crashes() == (1,)
    assert names(folder) == ["1"]


def test_crashes_of_a_future_that_a_set_back_clock_has_left_count_once_around(tmp_path):
    folder, window = tmp_path / "starts", LIMIT.start_window_s * 10**9
    year = 365 * 86_400 * 10**9
    crashed(folder, year, year + 1, year + 2)
    now = StartNotes(folder)
    assert crash_loop(now.crashes(), window, LIMIT)
    now.begin(window)
    now.end()
    assert StartNotes(folder).crashes() == (window,) * 3
    assert not crash_loop(StartNotes(folder).crashes(), 2 * window + 1, LIMIT)


def test_oldest_crashes_are_forgotten_when_there_are_too_many(tmp_path):
    folder = tmp_path / "starts"
    crashed(folder, *range(1, MOST_KEPT + 6))
    StartNotes(folder).begin(MOST_KEPT + 10)
    assert StartNotes(folder).crashes() == tuple(range(6, MOST_KEPT + 6))
