"""The compiled cache never serves a result of sources that have changed since."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from trading_core.compiled import ImageCache
from trading_core.compiled_cache import (
    _folder_of_this_process,
    cache_folder,
    source_hash,
    why_nothing_is_kept,
)
from worker.runs.warm_up import compile_engine

HELPER = "from numba import njit\n\n@njit(cache=True)\ndef helper():\n    return {value}\n"
MAIN = """from numba import njit
from room.helper import helper

@njit(cache=True)
def main():
    return helper() * 10
"""


def _result(place: Path) -> int:
    code = "import room.main; print(room.main.main())"
    environment = {
        **os.environ,
        "NUMBA_CACHE_DIR": str(cache_folder(place / "room")),
        "PYTHONPATH": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",  # Python's own tells two edits of one second by their size alone
    }
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    return int(done.stdout)


def test_compiled_cache_edited_helper_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THINKTWICE_CACHE_DIR", str(tmp_path / "cache"))
    room = tmp_path / "room"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "main.py").write_text(MAIN)
    (room / "helper.py").write_text(HELPER.format(value=1))
    assert _result(tmp_path) == 10
    (room / "helper.py").write_text(HELPER.format(value=2))
    assert _result(tmp_path) == 20


def test_compiled_cache_is_named_by_the_sources_of_the_engine() -> None:
    assert ImageCache.folder.name == source_hash()


def test_compiled_cache_lies_below_the_folder_that_numba_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("THINKTWICE_CACHE_DIR", raising=False)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba's"))
    assert cache_folder() == tmp_path / "numba's" / "thinktwice" / "numba" / source_hash()
    monkeypatch.setenv("THINKTWICE_CACHE_DIR", str(tmp_path / "ours"))
    assert cache_folder() == tmp_path / "ours" / "numba" / source_hash()


@pytest.fixture
def last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder below the temporary one, where no other can be written."""
    blocked, temporary = tmp_path / "file", tmp_path / "tmp"
    blocked.write_text("not a folder")
    temporary.mkdir()
    monkeypatch.setenv("THINKTWICE_CACHE_DIR", str(blocked))
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    _folder_of_this_process.cache_clear()
    return temporary / f"thinktwice-numba-{os.getuid()}-{source_hash()}"


def test_compiled_cache_unwritable_parent_falls_back_to_a_temporary_folder_of_the_user_alone(
    last_resort: Path,
) -> None:
    assert cache_folder() == last_resort
    assert stat.S_IMODE(last_resort.stat().st_mode) == 0o700
    assert why_nothing_is_kept() is None


def test_compiled_cache_temporary_folder_that_is_open_to_others_is_not_used(last_resort: Path) -> None:
    last_resort.mkdir()
    last_resort.chmod(0o770)
    assert cache_folder().name.startswith("thinktwice-numba-once-")
    assert cache_folder() == cache_folder()
    assert why_nothing_is_kept() == f"compiled code is not kept: {last_resort} is open to other users"


def test_compiled_cache_temporary_folder_of_another_user_is_not_used(
    last_resort: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = os.getuid() + 1
    monkeypatch.setattr("os.getuid", lambda: user)
    other = last_resort.with_name(f"thinktwice-numba-{user}-{source_hash()}")
    other.mkdir(mode=0o700)
    assert cache_folder().name.startswith("thinktwice-numba-once-")
    assert why_nothing_is_kept() == f"compiled code is not kept: {other} belongs to another user"


def test_compiled_cache_temporary_folder_that_leads_elsewhere_is_not_used(
    last_resort: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    last_resort.symlink_to(tmp_path / "elsewhere")
    assert cache_folder().name.startswith("thinktwice-numba-once-")


def test_compiled_cache_holds_what_python_calls_and_nothing_that_is_compiled_into_it() -> None:
    compile_engine()
    rooms = ("features", "kernel", "memory", "trading_core")  # other tests compile functions of their own
    kept = {
        path.name.split("-")[0]
        for path in cache_folder().glob("*/*.nbi")
        if path.parent.name.rpartition("_")[0] in rooms
    }
    ours = {name for name in kept if not name.startswith(("claim_path.", "hand_scan."))}
    assert ours - {"execution.on_tick"} == {
        "blocks.advance", "recurrences.run", "loop.advance", "regime_recurrence.extend",
        "returns.sum_returns", "scan.count", "scan.scan",
    }  # fmt: skip
