"""What is wrong with a store, in one line with the next step, and whether the same call may succeed later.

A cause is what whoever reads of it does differently. A failure is judged by its code, PostgreSQL's or
SQLite's, looked for through the whole chain of an error: codes are the same in every language and version.
Only what has no code is judged by the driver's words. A process that trades waits for what is retryable.
"""

import asyncio
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from schemas.errors import StoreError
from services.store.identity import FileLost, StoreLost
from services.store.open_files import chain_of, is_refused, too_few_files
from services.store.urls import StoreUrl

READ_ONLY = "25006"
MEND = "restore a backup (`thinktwice db restore FILE --db URL`), or give another --db"
CHECK_BYTES = 512 << 20  # of larger files only the table of runs is checked; that many take 0.4 s
NO_TEXT = "Could not decode to UTF-8"  # SQLite's driver, of bytes in a column of text


class Cause(NamedTuple):
    """What is wrong with a store and the next step; `waits` where the same call may succeed later.

    `codes` are SQLSTATEs, or the first two letters of them (a class), and codes of SQLite; `words` are parts
    of messages that come without a code.
    """

    text: str
    codes: tuple[str | int, ...]
    words: tuple[str, ...] = ()
    waits: bool = False


DAMAGED = Cause(
    "is damaged: restore it from a backup, or give another --db",
    ("XX001", "XX002", sqlite3.SQLITE_CORRUPT),
    (NO_TEXT,),
)
CANNOT_OPEN = Cause(
    "cannot be opened: check that the directory exists and is writable, or give another --db",
    (sqlite3.SQLITE_CANTOPEN,),
)
CAUSES = (
    DAMAGED,
    CANNOT_OPEN,
    Cause(
        "is locked by another process or transaction, or took too long: try again, or give another --db",
        # Others of their classes do not pass: 40002 is a constraint that will fail again.
        ("40000", "40001", "40003", "40P01", "55006", "55P03", "57014")
        + (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED),
        waits=True,
    ),
    Cause("has no such database: create it, or check the --db address", ("3D", "57P04")),
    Cause(
        "closed the connection or takes none at present: check that the server runs, and its limits",
        ("08", "57", "25P03", "25P04", "53000", "53200", "53300"),
        ("connection is closed", "connection was closed", "another operation", "protocol is in the"),
        waits=True,
    ),
    Cause(
        "is read-only, as a standby is: try again in a moment, or name the primary", (READ_ONLY,), waits=True
    ),
    Cause(
        "is read-only: make the file and its directory writable, or give another --db",
        (sqlite3.SQLITE_READONLY,),
    ),
    Cause("refused the user or password: check the --db address and the server's pg_hba.conf", ("28",)),
    Cause("does not give this user the right to do that: grant it", ("42501",)),
    Cause(
        "offers no encryption as the address demands it (sslmode): switch it on there, and check that "
        "~/.postgresql/root.crt has its authority",
        (),
        ("rejected SSL upgrade", "CERTIFICATE_VERIFY_FAILED", "root certificate file"),
    ),
    Cause("cannot be written, the disk is full: free some space", ("53100", sqlite3.SQLITE_FULL)),
    Cause(
        # The index names frames that the log lacks; it is made anew once nobody has it open.
        "has lost its log (-wal) while another process has it open: end every process that has it open, then "
        "run the command again",
        (sqlite3.SQLITE_IOERR_SHORT_READ,),
    ),
    Cause("cannot be read or written (disk I/O error): check the disk", ("58", sqlite3.SQLITE_IOERR)),
    Cause("is not a SQLite database: give another --db, or move the file away", (sqlite3.SQLITE_NOTADB,)),
)
BY_CODE = {code: cause for cause in CAUSES for code in cause.codes}


class StoreMissing(StoreError):
    """There is no store at this address yet; listing it is empty, naming a run in it is a mistake."""


class StoreDamaged(StoreError):
    """The file cannot be read to its end."""


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn the failure to read a stored text into a `StoreDamaged` that names it and the next step."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreDamaged(
            f"{what} is damaged, it cannot be read ({type(error).__name__}): {MEND}"
        ) from error


def store_error(error: BaseException, url: StoreUrl) -> StoreError:
    """The one-line form of a driver's failure."""
    chain = list(chain_of(error))
    lost = next((link for link in chain if isinstance(link, FileLost)), None)
    if lost is not None:
        return StoreLost(f"store {url.text}: {lost}", url=url)
    found, message = _find_cause(chain)
    if (is_refused(error) or found is CANNOT_OPEN) and (limited := too_few_files(error)) is not None:
        return StoreError(f"store {url.text} cannot be opened: {limited}")
    if found is CANNOT_OPEN and url.path is not None and url.path.exists() and url.is_sealed_off:
        return StoreError(
            f"store {url.text} cannot be opened in a folder that this process cannot write: copy it with "
            "what lies beside it (-wal) to another folder, and give --db of the copy"
        )
    if found is DAMAGED:
        return StoreDamaged(f"store {url.text} {found.text}", url=url)
    if found is not None:
        return StoreError(f"store {url.text} {found.text}", retryable=found.waits)
    if any(isinstance(link, (OSError, PoolTimeout)) for link in chain):
        return StoreError(
            f"store {url.text} cannot be reached: check host, port and that the server runs", retryable=True
        )
    return StoreError(f"store {url.text} failed: {message.splitlines()[0]}")


def _find_cause(chain: Sequence[BaseException]) -> tuple[Cause | None, str]:
    """The cause of a failure, None for one that has nothing to do with the store itself, and the message."""
    for link in chain:
        if isinstance(state := getattr(link, "sqlstate", None), str):
            return BY_CODE.get(state) or BY_CODE.get(state[:2]), _message(link)
        if isinstance(code := getattr(link, "sqlite_errorcode", None), int):
            return BY_CODE.get(code) or BY_CODE.get(code & 0xFF), _message(link)
    wrapped = isinstance(chain[0], DBAPIError) and len(chain) > 1
    message = _message(chain[1] if wrapped else chain[0])
    return next((cause for cause in CAUSES if any(part in message for part in cause.words)), None), message


def _message(error: BaseException) -> str:
    """The message of the driver, without what its adapter says of classes around it."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    return text.strip() or type(error).__name__


@contextmanager
def store_errors(url: StoreUrl) -> Iterator[None]:
    """Turn every driver failure into a `StoreError`; SQLAlchemy does not wrap all of asyncpg's."""
    try:
        yield
    except _failures(url) as error:
        raise store_error(error, url) from error


@contextmanager
def losses_of(run_id: str) -> Iterator[None]:
    """Add to the loss of a store's file, and to damage in it, the command that tells what is left of a run.

    Raises:
        StoreLost: with that command.
        StoreDamaged: with that command.
    """
    try:
        yield
    except (StoreLost, StoreDamaged) as error:
        url = error.context.get("url")
        if url is None:
            raise
        words = f"verify {run_id}" if isinstance(error, StoreLost) else "db check --full"
        raise type(error)(
            f"{error}; which rows of run {run_id} are in the file is known only when every process that has "
            f"the store open has ended: {url.command(words)} tells it then",
            run_id=run_id,
        ) from error


async def require_readable(url: StoreUrl) -> None:
    """Look once through the pages of a SQLite store, so that no run ends well in one that cannot be read.

    Raises:
        StoreDamaged: SQLite finds something wrong.
        StoreError: the file cannot be read at all.
    """
    if url.path is None:
        return
    with store_errors(url):
        found = await asyncio.to_thread(_check_pages, url.path)
    if found != "ok":
        raise StoreDamaged(f"store {url.text} is damaged: {found.splitlines()[-1]}: {MEND}", url=url)


def _check_pages(path: Path) -> str:
    part = "1" if os.stat(path).st_size <= CHECK_BYTES else "runs"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
            return str(file.execute(f"PRAGMA quick_check({part})").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        return str(error)


def _failures(url: StoreUrl) -> tuple[type[Exception], ...]:
    common = (DBAPIError, sqlite3.Error, PoolTimeout, OSError, TimeoutError)
    if url.dialect == "sqlite":
        return common
    from asyncpg import InterfaceError, PostgresError  # type: ignore[import-untyped]  # asyncpg ships no types
    from asyncpg.exceptions import InternalClientError  # type: ignore[import-untyped]  # as above

    return (*common, InterfaceError, InternalClientError, PostgresError)
