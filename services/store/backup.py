"""Copies of a store: whichever database it lies in, a backup is one SQLite file that every command can read.

The tables hold integers and text, packed or not, so nothing changes between the databases. A copy gets its
name only after it was held against its source; faults that the source has itself are copied and told.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import URL, Connection, MetaData, create_engine, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.errors import ConfigError, StoreError
from services.store import health, migrate
from services.store.failures import StoreMissing, store_error
from services.store.identity import companions_of, describe_stale, make_private
from services.store.opening import alone, check_file
from services.store.revision import make_tables, revision_state
from services.store.tables import metadata
from services.store.urls import StoreUrl, parse_url

PAGE_ROWS = 2_000
# Of two files only the new one is written to.
NOT_WRITTEN = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_FSYNC", "SQLITE_IOERR_TRUNCATE")


@dataclass(frozen=True)
class Copy:
    """A copy that equals its source.

    Attributes:
        revision: of the copy.
        rows: by table.
        problems: what is wrong with the chains of its runs, in source and copy alike.
    """

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
            revision, before = await _present(connection, url), await health.heads(connection)
            if url.path is None:
                await connection.run_sync(_copy_to_file, partial, revision)
        if url.path is not None:
            _copy_file(url, partial)
        return await _examine(_file_url(partial), before)


async def restore(path: Path, address: str) -> Copy:
    """Copy a backup to an address where there is no store yet, upgraded to the present revision.

    Raises:
        ConfigError: there is a store already, or none can be made there.
        StoreMissing: there is no such backup.
        StoreError: the backup is damaged, or the database cannot be written.
    """
    source, url = _file_url(path), parse_url(address)
    check_file(source, create=False)
    async with alone(source, snapshot=True) as connection:
        await _present(connection, source)
        before = await health.heads(connection)
    if url.path is not None:
        with _new_file(url.path) as partial:
            return await _renew(source, partial, before)
    with tempfile.TemporaryDirectory() as folder:
        partial = Path(folder) / "restored.db"
        copy = await _renew(source, partial, before)
        await _fill_server(partial, url, copy, before)
        return copy


async def _renew(source: StoreUrl, partial: Path, before: health.Heads) -> Copy:
    _copy_file(source, partial)
    async with alone(_file_url(partial), writes=True) as connection:
        await connection.run_sync(migrate.upgrade, source)
    return await _examine(_file_url(partial), before)


async def _present(connection: AsyncConnection, url: StoreUrl) -> str:
    found = await connection.run_sync(revision_state, url)
    if found.state == "empty":
        raise StoreMissing(f"store {url.text} is empty: there is nothing to copy")
    return str(found.revision)


async def _examine(url: StoreUrl, before: health.Heads) -> Copy:
    async with alone(url, snapshot=True) as connection:
        damage = await health.file_problems(connection, url)
        if not damage:
            # A store in use may have grown since we looked at it; what it held then, the copy holds.
            damage = await health.missing(connection, before)
        if damage:
            raise StoreError(f"the copy is not what the store held: {damage[0]}; nothing was kept of it")
        return await _describe_copy(connection, url)


async def _describe_copy(connection: AsyncConnection, url: StoreUrl) -> Copy:
    found = await connection.run_sync(revision_state, url)
    rows = await health.row_counts(connection, found.tables)
    return Copy(str(found.revision), rows, tuple(await health.journal_problems(connection)))


def _copy_file(source: StoreUrl, target: Path) -> None:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(source.path))}?mode=rw", uri=True)) as store:
            store.execute("VACUUM INTO ?", (str(target),))
    except sqlite3.Error as error:
        if error.sqlite_errorname in NOT_WRITTEN:
            step = "free some space, or give a name on another disk; nothing was kept"
            raise StoreError(f"the copy cannot be written in '{target.parent}' ({error}): {step}") from error
        raise store_error(error, source) from error


def _copy_to_file(reading: Connection, target: Path, revision: str) -> None:
    with _file(target) as writing:
        migrate.migrate(writing, revision)
        _copy_rows(reading, writing)


async def _fill_server(source: Path, target: StoreUrl, copy: Copy, before: health.Heads) -> None:
    def fill(writing: Connection) -> None:
        if revision_state(writing, target).state != "empty":
            raise ConfigError(f"store {target.text} has tables already: restore into an empty database")
        make_tables(writing)
        with _file(source) as reading:
            _copy_rows(reading, writing)

    async with alone(target, create=True, writes=True) as writing:
        await writing.run_sync(fill)
        if await health.missing(writing, before) or await _describe_copy(writing, target) != copy:
            raise StoreError(f"store {target.text} did not take the backup as it is; nothing was kept")


def _copy_rows(reading: Connection, writing: Connection) -> None:
    """Copy every row of the tables that both have."""
    present = MetaData()
    present.reflect(writing, only=lambda name, _: name in metadata.tables)
    for table in (
        metadata.tables[found.name] for found in present.sorted_tables
    ):  # which know what is packed
        query = select(table).execution_options(yield_per=PAGE_ROWS)
        for page in reading.execute(query).mappings().partitions():
            writing.execute(insert(table), [dict(row) for row in page])


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


def _file_url(path: Path) -> StoreUrl:
    return parse_url(f"sqlite:///{path}")
