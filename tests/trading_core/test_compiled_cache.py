"""The compiled cache never serves a result of sources that have changed since."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import trading_core
from trading_core.compiled_cache import cache_folder, source_hash
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
    room = Path(trading_core.__file__).parent
    assert os.environ["NUMBA_CACHE_DIR"].endswith(source_hash(room))


def test_compiled_cache_unwritable_parent_falls_back_to_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    monkeypatch.setenv("THINKTWICE_CACHE_DIR", str(blocked))
    assert "thinktwice-numba" in cache_folder().name


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
        "scan.count", "scan.scan",
    }  # fmt: skip
