"""Copies of a store: whichever database it lies in, a backup is one SQLite file that every command can read.

The tables hold integers and text, packed or not, so nothing changes between the databases. A copy gets its
name only after it was held against its source; faults that the source has itself are copied and told.
"""

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Connection, MetaData, Table, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from schemas.errors import ConfigError, StoreError
from services.store import health, migrate
from services.store.failures import StoreMissing, stale_companions, store_error
from services.store.file_watch import companions_of, made_private
from services.store.migrations import HEAD
from services.store.opening import alone, check_file
from services.store.revision import RevisionState, make_tables, revision_state
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
        if url.path is None:
            before = await _from_server(url, _file_url(partial))
        else:
            before = await _heads(url)
            _copy_file(url, partial)
        # One file without companions, which may be moved and copied as it is.
        with closing(sqlite3.connect(partial)) as written:
            written.execute("PRAGMA journal_mode=DELETE")
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
    before = await _heads(source)
    if url.path is not None:
        with _new_file(url.path) as partial:
            return await _renew(source, partial, before)
    with tempfile.TemporaryDirectory() as folder:
        partial = Path(folder) / "restored.db"
        copy = await _renew(source, partial, before)
        await _to_server(_file_url(partial), url, copy)
        return copy


async def _renew(source: StoreUrl, partial: Path, before: health.Heads) -> Copy:
    _copy_file(source, partial)
    async with alone(_file_url(partial), writes=True) as connection:
        await connection.run_sync(migrate.upgrade, source)
    return await _examine(_file_url(partial), before)


async def _heads(url: StoreUrl) -> health.Heads:
    async with alone(url, snapshot=True) as connection:
        await _fill(connection, url)
        return await health.heads(connection)


async def _fill(connection: AsyncConnection, url: StoreUrl) -> RevisionState:
    found = await connection.run_sync(revision_state, url)
    if found.state == "empty":
        raise StoreMissing(f"store {url.text} is empty: there is nothing to copy")
    return found


async def _examine(url: StoreUrl, before: health.Heads) -> Copy:
    async with alone(url, snapshot=True) as connection:
        damage = await health.file_problems(connection, url)
        if not damage:
            # A store in use may have grown since we looked at it; what it held then, the copy holds.
            damage = await health.missing(connection, before)
        if damage:
            raise StoreError(f"the copy is not what the store held: {damage[0]}; nothing was kept of it")
        found = await connection.run_sync(revision_state, url)
        rows = await health.row_counts(connection, found.tables)
        return Copy(str(found.revision), rows, tuple(await health.journal_problems(connection)))


def _copy_file(source: StoreUrl, target: Path) -> None:
    try:
        with (
            closing(sqlite3.connect(f"file:{quote(str(source.path))}?mode=rw", uri=True)) as read,
            closing(sqlite3.connect(target)) as written,
        ):
            read.backup(written)
    except sqlite3.Error as error:
        if error.sqlite_errorname in NOT_WRITTEN:
            step = "free some space, or give a name on another disk; nothing was kept"
            raise StoreError(f"the copy cannot be written in '{target.parent}' ({error}): {step}") from error
        raise store_error(error, source) from error


async def _from_server(source: StoreUrl, target: StoreUrl) -> health.Heads:
    async with alone(source, snapshot=True) as reading:
        found = await _fill(reading, source)
        async with alone(target, create=True, writes=True) as writing:
            await writing.run_sync(migrate.migrate, None, str(found.revision))
            await _copy_rows(reading, writing, await writing.run_sync(_tables, found.tables))
        return await health.heads(reading)


async def _to_server(source: StoreUrl, target: StoreUrl, copy: Copy) -> None:
    async with alone(target, create=True, writes=True) as writing:
        if (await writing.run_sync(revision_state, target)).state != "empty":
            raise ConfigError(f"store {target.text} has tables already: restore into an empty database")
        await writing.run_sync(make_tables)
        async with alone(source) as reading:
            await _copy_rows(reading, writing, metadata.sorted_tables)
            missing = await health.missing(writing, await health.heads(reading))
        rows = await health.row_counts(writing, frozenset(metadata.tables))
        written = Copy(HEAD, rows, tuple(await health.journal_problems(writing)))
        if missing or written != copy:
            raise StoreError(f"store {target.text} did not take the backup as it is; nothing was kept")


def _tables(connection: Connection, names: frozenset[str]) -> Sequence[Table]:
    present = MetaData()
    present.reflect(connection, only=sorted(names))
    return present.sorted_tables


async def _copy_rows(reading: AsyncConnection, writing: AsyncConnection, tables: Sequence[Table]) -> None:
    for table in tables:
        query = select(table).execution_options(yield_per=PAGE_ROWS)
        async with reading.stream(query) as result:
            async for page in result.mappings().partitions():
                await writing.execute(insert(table), [dict(row) for row in page])


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """A file beside `path` that gets its name at the end, and leaves nothing when something fails."""
    if path.exists():
        raise ConfigError(f"{str(path)!r} is there already: give the name of a new file")
    if stale := companions_of(path):
        raise ConfigError(f"nothing was written to {str(path)!r}: {stale_companions(stale)}")
    if not path.parent.is_dir():
        raise ConfigError(f"the directory of {str(path)!r} does not exist: create it, or give another name")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    made_private(partial)
    try:
        yield partial
        partial.rename(path)
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def _file_url(path: Path) -> StoreUrl:
    return parse_url(f"sqlite:///{path}")
