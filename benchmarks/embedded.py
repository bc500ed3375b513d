"""Times the embedded backtest as a user starts it: with an empty cache of compiled code, then a full one."""

import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.errors import ConfigError
from trading_core.compiled_cache import source_hash

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class BacktestTiming:
    """The JSON document of a run, and the CPU seconds of its whole process."""

    document: dict[str, Any]
    cpu_s: float


def run_backtest(folder: Path) -> BacktestTiming:
    """One backtest in a process of its own, with store and cache in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "thinktwice", "backtest", "--json"],
        cwd=folder,
        env={**os.environ, "THINKTWICE_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return BacktestTiming(json.loads(done.stdout), spent)


def time_backtest() -> tuple[BacktestTiming, BacktestTiming]:
    """A first run, which compiles, and a second, which does not.

    Raises:
        ConfigError: the engine's sources changed in between, so the second run compiled as well.
    """
    sources = source_hash()
    with tempfile.TemporaryDirectory() as name:
        runs = run_backtest(Path(name)), run_backtest(Path(name))
    if source_hash() != sources:
        raise ConfigError("the engine's sources changed while it was timed: run the benchmark again")
    return runs
