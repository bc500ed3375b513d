"""The doctor's checks of the machine: Python and libraries, compiled code, disk, clock and time zones."""

import os
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from trading_core.compiled_cache import cache_folder, why_nothing_is_kept
from worker.doctor.checks import DoctorContext, Finding, fail, ok, warn
from worker.operations.environment import environment
from worker.runs.readiness import refuse_plain

LEAST_FREE, SMALL_FREE = 100 * 2**20, 2**30
EARLIEST, LATEST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
SOME_ZONES = ("UTC", "America/New_York", "Asia/Tokyo")


async def python(_: DoctorContext) -> Finding:
    """Which Python runs the program."""
    return ok(f"Python {environment()['python']}")


async def libraries(_: DoctorContext) -> Finding:
    """Whether every library of the core is there."""
    missing = list(_missing_libraries())
    if missing:
        return fail(f"missing: {', '.join(missing)}", "install thinktwice again")
    found = environment()
    return ok(", ".join(f"{name} {found[name]}" for name in ("thinktwice", "numpy", "numba")))


def _missing_libraries() -> Iterator[str]:
    for line in requires("thinktwice") or ():
        name = re.split(r"[\[<>=~! ;]", line, maxsplit=1)[0]
        try:
            version(name)
        except PackageNotFoundError:
            if "extra ==" not in line:
                yield name


async def compiled_code(_: DoctorContext) -> Finding:
    """Whether compiled code can be kept where it is looked for."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        return fail(f"{folder} cannot be written", "set THINKTWICE_CACHE_DIR to a folder that can be written")
    step = "set THINKTWICE_CACHE_DIR to a folder that stays"
    if reason := why_nothing_is_kept():
        return warn(reason, step)
    if folder.name.startswith("thinktwice-numba-"):
        return warn(f"kept in {folder}, which may be cleared", step)
    return ok(f"kept in {folder}")


async def kernel(_: DoctorContext) -> Finding:
    """Whether the engine runs: loaded where it is compiled, else a small piece is compiled."""
    refuse_plain()
    if any(cache_folder().rglob("*.advance-*.nbi")):
        from trading_core.compiled import ImageCache
        from worker.runs.warm_up import compile_engine

        compile_engine()
        if ImageCache.emptied:
            return warn(ImageCache.emptied[0], "look at the disk if this comes back")
        return ok("compiled, and it runs")
    from numba import njit

    from trading_core.compiled import EngineImage

    twice: Any = njit(lambda number: number * 2)
    if twice(21) != 42:
        return fail("compiled code computes wrongly", "install numba again")
    longer = "some seconds" if EngineImage().is_usable else "about half a minute"
    return ok(f"code can be compiled; the first run takes {longer} longer")


async def disk(patient: DoctorContext) -> Finding:
    """Whether there is room where the store grows."""
    scheme, _, path = patient.settings.runtime.db.partition(":///")
    folder = Path(path).parent if scheme == "sqlite" else Path()
    folder = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(folder).free
    found = f"{free / 2**30:.1f} GiB free at {folder.absolute()}"
    if free < LEAST_FREE:
        return fail(found, "free some space")
    return warn(found, "free some space") if free < SMALL_FREE else ok(found)


async def clock(_: DoctorContext) -> Finding:
    """Whether the clock of the machine can be right."""
    now = datetime.now(UTC)
    if EARLIEST < now < LATEST:
        return ok(f"{now:%Y-%m-%d %H:%M}Z")
    return fail(f"it is {now:%Y-%m-%d %H:%M}Z here", "set the clock of this machine")


async def time_zones(_: DoctorContext) -> Finding:
    """Whether zones of bar files can be named; everything else is UTC."""
    try:
        for name in SOME_ZONES:
            ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError):
        return warn(f"zone {name!r} is not known", "install the package tzdata")
    return ok("zones can be named; the program itself keeps UTC")


CHECKS = (python, libraries, compiled_code, kernel, disk, clock, time_zones)
