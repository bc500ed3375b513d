"""Copies of a store: whichever database it lies in, a backup is one SQLite file that every command can read.

The tables hold integers and text, packed or not, so nothing changes between the databases. A copy gets its
name only after it was held against its source and examined; faults of the source itself are copied and told.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, MetaData, create_engine, func, insert, select

from schemas.errors import ConfigError, StoreError
from services.store import migrate
from services.store.engine import alone, check_file
from services.store.failures import StoreMissing, store_error
from services.store.identity import companions_of, describe_stale, make_private
from services.store.integrity import examine_tables, file_problems
from services.store.migrate import make_tables, revision_state
from services.store.tables import journal, metadata, runs
from services.store.urls import StoreUrl, parse_url

Ends = list[tuple[str, int, str | None]]
PAGE_ROWS = 2_000
# Of two files only the new one is written to.
NOT_WRITTEN = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_TRUNCATE")


@dataclass(frozen=True)
class Copy:
    """A copy that equals its source: its revision, its rows by table, and what is broken in both alike."""

    revision: str
    rows: dict[str, int]
    problems: tuple[str, ...]


async def back_up(address: str, path: Path) -> Copy:
    """Copy a store, of this or an earlier revision, into a new file.

    Raises:
        ConfigError: the file is there already, or cannot be made there.
        StoreMissing: there is no store, or an empty one.
        StoreError: the store cannot be read or is damaged.
    """
    url = parse_url(address)
    check_file(url, create=False)
    with _new_file(path) as partial:
        async with alone(url, snapshot=True) as connection:
            ends = await connection.run_sync(_copy_to_file, url, partial)
        return await _examine(partial, ends)


async def restore(path: Path, address: str) -> Copy:
    """Copy a backup to an address where there is no store yet, upgraded to the present revision.

    Raises:
        ConfigError: there is a store already, or none can be made there.
        StoreMissing: there is no such backup.
        StoreError: the backup is damaged, or the database cannot be written.
    """
    source, url = parse_url(f"sqlite:///{path}"), parse_url(address)
    check_file(source, create=False)
    if url.path is not None:
        with _new_file(url.path) as partial:
            return await _renew(source, partial)
    with tempfile.TemporaryDirectory() as folder:
        partial = Path(folder) / "restored.db"
        copy = await _renew(source, partial)
        async with alone(url, create=True, writes=True) as writing:
            await writing.run_sync(_copy_to_server, url, partial)
        return copy


async def _renew(source: StoreUrl, partial: Path) -> Copy:
    async with alone(source, snapshot=True) as connection:
        ends = await connection.run_sync(_copy_to_file, source, partial)
    async with alone(parse_url(f"sqlite:///{partial}"), writes=True) as connection:
        await connection.run_sync(migrate.upgrade, source)
    return await _examine(partial, ends)


async def _examine(partial: Path, ends: Ends) -> Copy:
    url = parse_url(f"sqlite:///{partial}")
    async with alone(url, snapshot=True) as connection:
        damage = await file_problems(connection, url) or await connection.run_sync(_missing, ends)
        if damage:
            raise StoreError(f"the copy is not what the store held: {damage[0]}; nothing was kept of it")
        found = await examine_tables(connection, url, full=True)
    return Copy(str(found.revision), found.rows, found.problems)


def _ends(connection: Connection) -> Ends:
    """Number and hash of the row with which each run's journal ends; None where it has no such row."""
    last = (journal.c.run_id == runs.c.run_id) & (journal.c.seq == runs.c.events - 1)
    query = select(runs.c.run_id, runs.c.events - 1, journal.c.hash).select_from(
        runs.outerjoin(journal, last)
    )
    return [(run_id, seq, expected) for run_id, seq, expected in connection.execute(query)]


def _missing(connection: Connection, ends: Ends) -> list[str]:
    """Runs that do not hold any more what they held before; they may have grown."""
    known, problems = {run_id for run_id, _, _ in _ends(connection)}, []
    for run_id, seq, expected in ends:
        query = select(journal.c.hash).where(journal.c.run_id == run_id, journal.c.seq == seq)
        if run_id not in known:
            problems.append(f"run {run_id} is missing")
        elif connection.scalar(query) != expected:
            problems.append(f"run {run_id} does not hold row {seq} as it was")
    return problems


def _copy_to_file(reading: Connection, source: StoreUrl, target: Path) -> Ends:
    found = revision_state(reading, source)
    if found.revision is None:
        raise StoreMissing(f"store {source.text} is empty: there is nothing to copy")
    ends = _ends(reading)
    if source.path is None:
        with _file(target) as writing:
            migrate.migrate(writing, found.revision)
            _copy_rows(reading, writing)
        return ends
    try:
        with closing(sqlite3.connect(f"file:{quote(str(source.path))}?mode=rw", uri=True)) as store:
            store.execute("VACUUM INTO ?", (str(target),))
    except sqlite3.Error as error:
        if error.sqlite_errorname in NOT_WRITTEN:
            step = "free some space, or give a name on another disk; nothing was kept"
            raise StoreError(f"the copy cannot be written in '{target.parent}' ({error}): {step}") from error
        raise store_error(error, source) from error
    return ends


def _copy_to_server(writing: Connection, target: StoreUrl, source: Path) -> None:
    if revision_state(writing, target).state != "empty":
        raise ConfigError(f"store {target.text} has tables already: restore into an empty database")
    make_tables(writing)
    with _file(source) as reading:
        _copy_rows(reading, writing)
        if damage := _missing(writing, _ends(reading)):
            raise StoreError(f"store {target.text} did not take the backup: {damage[0]}; nothing was kept")


def _copy_rows(reading: Connection, writing: Connection) -> None:
    """Copy every row of the tables that both have."""
    present = MetaData()
    present.reflect(writing, only=lambda name, _: name in metadata.tables)
    for found in present.sorted_tables:
        table = metadata.tables[found.name]  # knows what is packed
        query = select(table).execution_options(yield_per=PAGE_ROWS)
        for page in reading.execute(query).mappings().partitions():
            writing.execute(insert(table), [dict(row) for row in page])
        count = select(func.count()).select_from(table)
        if reading.scalar(count) != writing.scalar(count):
            raise StoreError(f"the copy did not take every row of table {found.name!r}; nothing was kept")


@contextmanager
def _file(path: Path) -> Iterator[Connection]:
    engine = create_engine(URL.create("sqlite+pysqlite", database=str(path)))
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A file beside `path` that gets its name at the end, and leaves nothing when something fails."""
    if path.exists():
        raise ConfigError(f"{str(path)!r} is there already: give the name of a new file")
    if stale := companions_of(path):
        raise ConfigError(f"nothing was written to {str(path)!r}: {describe_stale(stale)}")
    if not path.parent.is_dir():
        raise ConfigError(f"the directory of {str(path)!r} does not exist: create it, or give another name")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    make_private(partial)
    try:
        yield partial
        partial.rename(path)
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            partial.with_name(partial.name + suffix).unlink(missing_ok=True)
