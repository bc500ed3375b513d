"""The doctor's checks of the store: there, ours, of this revision, writable, and its clock."""

import time

from sqlalchemy import select, text

from schemas.errors import StoreError
from services.model_calls.quoting import count_noun
from services.store import open_store
from services.store.database_time import now_ms
from services.store.engine import alone, check_file
from services.store.failures import StoreMissing
from services.store.identity import COMPANIONS
from services.store.integrity import examine
from services.store.urls import StoreUrl, parse_url
from worker.doctor.access_checks import FOR_OTHERS
from worker.doctor.checks import DoctorContext, Finding, fail, ok, warn

PATIENCE_S = 5.0
MOST_SKEW_S = 2.0
UPGRADE = "run `thinktwice db upgrade`"
WITH_A_LOCK = "SELECT 1"
MAY_WRITE = (
    "SELECT current_setting('transaction_read_only') = 'off' AND NOT pg_is_in_recovery() "
    "AND has_table_privilege('journal', 'INSERT') AND has_table_privilege('runs', 'UPDATE')"
)


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


CHECKS = (store, store_writable, store_clock, plans_waiting)
