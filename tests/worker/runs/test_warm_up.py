"""What is compiled is compiled before the clock of a run starts, and not at its first trade."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from trading_core.compiled_cache import cache_folder
from worker.runs.warm_up import compile_engine

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
from worker.runs.warm_up import compile_engine
compile_engine()
from numba.core import event
heard = event.RecordingListener()
event.register("numba:compile", heard)
from worker.cli import app
try:
    app("backtest --symbols AAPL --from 2004-01-01 --to 2004-12-31 --json".split())
except SystemExit as end:
    assert not end.code
print("END", [str(one.data["dispatcher"]) for _, one in heard.buffer])
"""


def test_run_at_the_default_settings_compiles_nothing_after_the_warm_up(tmp_path):
    """The memory is compiled anew here; all of it, from nothing, is tried by `make image-check`."""
    compile_engine()
    compiled = tmp_path / "numba" / cache_folder().name
    shutil.copytree(cache_folder(), compiled, ignore=shutil.ignore_patterns("memory_*"))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "THINKTWICE_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
        timeout=280,
    )
    summary, _, late = done.stdout.rpartition("END ")
    assert json.loads(summary)["memory"]["reads"] > 0
    assert late == "[]\n"
    assert list(compiled.glob("memory_*/scan.scan*.nbc"))
