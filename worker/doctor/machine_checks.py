"""The doctor's checks of the machine: Python and libraries, compiled code, disk, clock and time zones."""

import os
import re
import shutil
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from worker.doctor.checks import DoctorContext, Finding
from worker.operations.environment import environment

LEAST_PYTHON = (3, 11)
LEAST_FREE, SMALL_FREE = 100 * 2**20, 2**30
EARLIEST, LATEST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
SOME_ZONES = ("UTC", "America/New_York", "Asia/Tokyo")
GIB = 2**30


async def python(_: DoctorContext) -> Finding:
    """Whether this Python runs the program."""
    found = f"Python {sys.version.split()[0]}"
    if sys.version_info < LEAST_PYTHON:
        return Finding("python", "failed", found, "use Python 3.11 or newer")
    return Finding("python", "ok", found)


async def libraries(_: DoctorContext) -> Finding:
    """Whether every library of the core is there."""
    missing = []
    for line in requires("thinktwice") or ():
        name = re.split(r"[\[<>=~! ;]", line, maxsplit=1)[0]
        if "extra ==" in line:
            continue
        try:
            version(name)
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        return Finding("libraries", "failed", f"missing: {', '.join(missing)}", "install thinktwice again")
    shown = {name: found for name, found in environment().items() if name in ("thinktwice", "numpy", "numba")}
    return Finding("libraries", "ok", ", ".join(f"{name} {found}" for name, found in shown.items()))


async def compiled_code(_: DoctorContext) -> Finding:
    """Whether compiled code can be kept where it is looked for."""
    from trading_core.compiled_cache import cache_folder

    folder = cache_folder()
    if not _writable(folder):
        step = "set THINKTWICE_CACHE_DIR to a folder that can be written"
        return Finding("compiled_code", "failed", f"{folder} cannot be written", step)
    if folder.name.startswith("thinktwice-numba-"):
        step = "set THINKTWICE_CACHE_DIR to a folder that stays"
        return Finding("compiled_code", "warning", f"kept in {folder}, which may be cleared", step)
    return Finding("compiled_code", "ok", f"kept in {folder}")


async def kernel(_: DoctorContext) -> Finding:
    """Whether the engine runs: loaded where it is compiled, else a small piece is compiled."""
    from trading_core.compiled_cache import cache_folder

    if any(cache_folder().rglob("*.advance-*.nbi")):
        from worker.runs.warm_up import compile_engine

        compile_engine()
        return Finding("kernel", "ok", "compiled, and it runs")
    from numba import njit

    compiled: Any = njit(_twice)
    if compiled(21) != 42:
        return Finding("kernel", "failed", "compiled code computes wrongly", "install numba again")
    return Finding("kernel", "ok", "code can be compiled; the first run takes about half a minute longer")


async def disk(patient: DoctorContext) -> Finding:
    """Whether there is room where the store grows."""
    scheme, _, path = patient.settings.runtime.db.partition(":///")
    folder = Path(path).parent if scheme == "sqlite" else Path()
    folder = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(folder).free
    found = f"{free / GIB:.1f} GiB free at {folder.absolute()}"
    if free < SMALL_FREE:
        return Finding("disk", "failed" if free < LEAST_FREE else "warning", found, "free some space")
    return Finding("disk", "ok", found)


async def clock(_: DoctorContext) -> Finding:
    """Whether the clocks of the machine can be right."""
    now = datetime.now(UTC)
    if not EARLIEST < now < LATEST:
        return Finding(
            "clock", "failed", f"it is {now:%Y-%m-%d %H:%M}Z here", "set the clock of this machine"
        )
    first = time.monotonic_ns()
    if time.monotonic_ns() < first:
        return Finding("clock", "failed", "the monotonic clock runs backwards", "use another machine")
    return Finding("clock", "ok", f"{now:%Y-%m-%d %H:%M}Z")


async def time_zones(_: DoctorContext) -> Finding:
    """Whether zones of bar files can be named; everything else is UTC."""
    try:
        for name in SOME_ZONES:
            ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError):
        return Finding("time_zones", "warning", f"zone {name!r} is not known", "install the package tzdata")
    return Finding("time_zones", "ok", "zones can be named; the program itself keeps UTC")


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _twice(number: int) -> int:
    return number * 2
