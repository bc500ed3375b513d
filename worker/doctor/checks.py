"""The doctor's findings, and its checks of the machine and of the store, none of which ends the others."""

import os
import re
import shutil
import stat
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sqlalchemy import select, text

from schemas.errors import StoreError, ThinktwiceError
from schemas.settings import Settings
from services.model_calls.quoting import count_noun
from services.store import open_store
from services.store.database_time import now_ms
from services.store.engine import alone, check_file
from services.store.failures import StoreMissing
from services.store.identity import COMPANIONS
from services.store.integrity import examine
from services.store.urls import StoreUrl, parse_url
from trading_core.compiled_cache import cache_folder, why_nothing_is_kept
from worker.operations.environment import environment
from worker.runs.readiness import refuse_plain

State = Literal["ok", "warning", "failed"]
FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
LEAST_FREE, SMALL_FREE = 100 * 2**20, 2**30
EARLIEST, LATEST = datetime(2025, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)
SOME_ZONES = ("UTC", "America/New_York", "Asia/Tokyo")
PATIENCE_S = 5.0
MOST_SKEW_S = 2.0
UPGRADE = "run `thinktwice db upgrade`"
WITH_A_LOCK = "SELECT 1"
MAY_WRITE = (
    "SELECT current_setting('transaction_read_only') = 'off' AND NOT pg_is_in_recovery() "
    "AND has_table_privilege('journal', 'INSERT') AND has_table_privilege('runs', 'UPDATE')"
)


@dataclass(frozen=True)
class Finding:
    """What was found about one thing, and what to do about it; nothing to do when it is ok.

    A check leaves `name` out: `run_checks` gives its own.
    """

    name: str
    state: State
    found: str
    next_step: str | None = None


def ok(found: str) -> Finding:
    """Nothing to do."""
    return Finding("", "ok", found)


def warn(found: str, next_step: str) -> Finding:
    """A run works, and something had better be done."""
    return Finding("", "warning", found, next_step)


def fail(found: str, next_step: str) -> Finding:
    """No run works before something is done."""
    return Finding("", "failed", found, next_step)


@dataclass(frozen=True)
class DoctorContext:
    """What is looked at."""

    settings: Settings
    environment: dict[str, str]  # of the process
    feed: str | None = None  # as `thinktwice paper --feed` takes it; None: none is looked at
    network: bool = False  # whether hosts other than the store's may be asked


Check = Callable[[DoctorContext], Awaitable[Finding]]


async def run_checks(patient: DoctorContext, checks: Iterable[Check]) -> list[Finding]:
    """One finding for each check, in their order and by their names; a check that raises has failed."""
    return [replace(await _run(check, patient), name=check.__name__) for check in checks]


async def _run(check: Check, patient: DoctorContext) -> Finding:
    try:
        return await check(patient)
    except ThinktwiceError as error:
        found, colon, step = str(error).rpartition(": ")
        return fail(found if colon else str(error), step if colon else "see the message")
    except Exception as error:  # noqa: BLE001 - a check that breaks is a finding, and others may say why
        return fail(f"{type(error).__name__}: {error}", "report this with the line above")


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


async def store(patient: DoctorContext) -> Finding:
    """Whether the store is there and its tables are of this program's revision."""
    url = parse_url(patient.settings.runtime.db)
    try:
        found = await examine(patient.settings.runtime.db, full=False)
    except StoreMissing:
        if url.server is not None:
            return fail(f"{url.text} has no tables yet", UPGRADE)
        check_file(url, create=True)
        return ok(f"{url.text} is made by the first run")
    runs = count_noun(found.rows.get("runs", 0), "run")
    message = f"{found.store} at revision {found.revision} ({found.state}), {runs}"
    if found.problems:
        return fail(f"{message}; {found.problems[0]}", "see `thinktwice db check`, and restore a backup")
    if found.state != "current":
        return fail(message, UPGRADE) if url.server is not None else warn(message, UPGRADE)
    return ok(message)


async def store_writable(patient: DoctorContext) -> Finding:
    """Whether rows could be written now; none is."""
    url = parse_url(patient.settings.runtime.db)
    if url.path is not None and not url.path.exists():
        return ok("there is no file yet")
    async with alone(url, writes=True, timeout_s=PATIENCE_S) as connection:
        # A transaction takes its lock with its first statement.
        if not await connection.scalar(text(WITH_A_LOCK if url.server is None else MAY_WRITE)):
            step = "give the role INSERT and UPDATE, on a server that is no standby"
            return fail(f"{url.text} can only be read", step)
    if loose := loose_files(url):
        step = f"chmod 600 {' '.join(loose)}, unless others are meant to read them"
        return warn("rows can be written; other users may read the store", step)
    return ok("rows can be written")


def loose_files(url: StoreUrl) -> list[str]:
    """Files of a SQLite store that others than their owner may use; new ones are made for the owner alone."""
    if url.path is None:
        return []
    files = [url.path.with_name(url.path.name + suffix) for suffix in ("", *COMPANIONS)]
    return [str(file) for file in files if file.exists() and file.stat().st_mode & FOR_OTHERS]


async def store_clock(patient: DoctorContext) -> Finding:
    """Whether the database and this machine agree about the time."""
    url = parse_url(patient.settings.runtime.db)
    if url.server is None:
        return ok("it is this machine's")
    async with alone(url, timeout_s=PATIENCE_S) as connection:
        before = time.time()
        theirs = await connection.scalar(select(now_ms(url.dialect)))
        ours = (before + time.time()) / 2
    skew = abs((theirs or 0) / 1_000 - ours)
    found = f"{skew:.1f} s apart"
    return warn(found, "let both machines follow one time server") if skew > MOST_SKEW_S else ok(found)


async def plans_waiting(patient: DoctorContext) -> Finding:
    """Whether change plans wait for a decision."""
    url = parse_url(patient.settings.runtime.db)
    if url.path is not None and not url.path.exists():
        return ok("there is no store yet")
    try:
        async with await open_store(patient.settings.runtime.db, create=False) as opened:
            count = await opened.plans.waiting(now=time.time_ns())
    except StoreError:
        return ok("not known: the check of the store says why")
    if not count:
        return ok("no change plan waits for a decision")
    step = "see `thinktwice plans list --state awaiting_approval`"
    return warn(f"{count_noun(count, 'change plan')} for a person to decide", step)


CHECKS = (
    *(python, libraries, compiled_code, kernel, disk, clock, time_zones),
    *(store, store_writable, store_clock, plans_waiting),
)
