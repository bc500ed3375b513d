"""A first `simulate` in a new process: with an empty cache of compiled code, then with a full one."""

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

from schemas.errors import ConfigError
from trading_core.compiled_cache import source_hash

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import thinktwice as tt
from benchmarks.walks import walk_frame
tt.simulate(walk_frame(4, 1_000), "crosses_above(sma_10, sma_30)", stop_pct=0.02, target_pct=0.04)
"""
NOTHING = "from benchmarks.walks import walk; walk(4, 1_000)"


@dataclass(frozen=True)
class Start:
    """Seconds of one process, from nothing to its end."""

    wall_s: float
    cpu_s: float


def _start(folder: Path, program: str) -> Start:
    before, began = getrusage(RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "THINKTWICE_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        check=True,
    )
    wall, after = time.perf_counter() - began, getrusage(RUSAGE_CHILDREN)
    return Start(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def time_starts() -> dict[str, Start]:
    """The three processes.

    Raises:
        ConfigError: the engine's sources changed in between, so the second process compiled as well.
    """
    sources = source_hash()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = {
            "imports and bars alone": _start(folder, NOTHING),
            "first `simulate`, empty cache": _start(folder, PROGRAM),
            "first `simulate`, code cached": _start(folder, PROGRAM),
        }
    if source_hash() != sources:
        raise ConfigError("the engine's sources changed while it was timed: run the benchmark again")
    return found
