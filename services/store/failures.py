"""What can be wrong with a store, said in one line with the next step.

A server says it by a code, which is looked for first and through the whole chain of an error: SQLAlchemy
wraps some failures and not others. Where there is no code, the beginning of the driver's message decides.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from schemas.errors import StoreError
from services.store.file_watch import FileLost, StoreLost
from services.store.open_files import is_refused, too_few_files
from services.store.server_states import DAMAGED, Meaning, meaning_of
from services.store.urls import StoreUrl


class StoreMissing(StoreError):
    """There is no store at this address yet; listing it is empty, naming a run in it is a mistake."""


class StoreDamaged(StoreError):
    """The file cannot be read to its end."""


NOT_STORED = (
    "nothing more is written; find what deletes or replaces it, restore a backup if the store is gone "
    "(`thinktwice db restore`), and start again"
)

MEND = "restore a backup (`thinktwice db restore FILE --db URL`), or give another --db"
UNABLE = "unable to open"
NO_TEXT = "Could not decode to UTF-8"  # SQLite's driver, of bytes in a column of text

Causes = tuple[tuple[str, Meaning], ...]

# Beginnings of messages that say more than the code they come with.
CLEARER: Causes = (
    (r'role ".*" does not exist', Meaning("has no such role: create it, or check the --db address", False)),
    (
        r'database ".*" is not currently accepting connections',
        Meaning("lets nobody into this database at present: try again in a moment", True),
    ),
)
# Beginnings of messages that have no code: SQLite's, and those of PostgreSQL's driver about itself.
CAUSES: Causes = (
    (
        r"database (table |schema )?is locked",
        Meaning("is locked by another process: wait until it has finished, or give another --db", True),
    ),
    (
        r"file is .*not a database",
        Meaning("is not a SQLite database: give another --db, or move the file away", False),
    ),
    (r"database disk image is malformed|malformed database schema", DAMAGED),
    (NO_TEXT.lower(), DAMAGED),
    (
        UNABLE,
        Meaning(
            "cannot be opened: check that the directory exists and is writable, or give another --db", False
        ),
    ),
    (
        r"attempt to write a readonly database",
        Meaning("is read-only: make the file and its directory writable, or give another --db", False),
    ),
    (r"database or disk is full", Meaning("cannot be written, the disk is full: free some space", False)),
    (r"disk i/o error", Meaning("cannot be read or written (disk I/O error): check the disk", False)),
    (
        r"postgresql server at .* rejected ssl upgrade",
        Meaning("offers no encryption, and the address demands it (sslmode): switch SSL on there", False),
    ),
    (
        r"root certificate file",
        Meaning("cannot be verified: sslmode wants its authority in ~/.postgresql/root.crt", False),
    ),
    (
        r"\[ssl: certificate_verify_failed\]",
        Meaning("has a certificate that this machine does not trust: check it, or sslmode", False),
    ),
    (
        r"(.*: the underlying |the )?connection (was|is) closed",
        Meaning("closed the connection: check that the server runs", True),
    ),
    (
        r"cannot .*(another operation|protocol is in the .failed. state)",
        Meaning("lost its connection in the middle of a command: try again in a moment", True),
    ),
    (
        r"terminating connection",
        Meaning("closed the connection: it is shutting down or starting again", True),
    ),
    (r"the database system is", Meaning("is starting up or shutting down: try again in a moment", True)),
    (
        r'database ".*" does not exist',
        Meaning("has no such database: create it, or check the --db address", False),
    ),
)


def store_error(error: BaseException, url: StoreUrl) -> StoreError:
    """The one-line form of a driver's failure."""
    chain = list(_chain(error))
    for cause in chain:
        if isinstance(cause, FileLost):
            told = f"store {url.text}: {cause}: {NOT_STORED}"
            return StoreLost(told, lost=cause)
    state, said = _told(chain)
    found = _worded(said, CLEARER) or meaning_of(state) or _worded(said, CAUSES)
    if is_refused(error) or said.lower().startswith(UNABLE):
        limited = too_few_files(error)
        if limited is not None:
            return StoreError(f"store {url.text} cannot be opened: {limited}")
    if found is not None:
        if found is DAMAGED:
            return StoreDamaged(f"store {url.text} {found.text}", file=url.path)
        return StoreError(f"store {url.text} {found.text}", retryable=found.retryable)
    if any(isinstance(link, (OSError, PoolTimeout)) for link in chain):
        return StoreError(
            f"store {url.text} cannot be reached: check host, port and that the server runs", retryable=True
        )
    return StoreError(f"store {url.text} failed: {said.splitlines()[0]}")


@contextmanager
def store_errors(url: StoreUrl) -> Iterator[None]:
    """Turn every driver failure into a `StoreError`; SQLAlchemy does not wrap all of asyncpg's."""
    try:
        yield
    except _failures(url) as error:
        raise store_error(error, url) from error


def _failures(url: StoreUrl) -> tuple[type[Exception], ...]:
    common = (DBAPIError, PoolTimeout, OSError, TimeoutError)
    if url.dialect == "sqlite":
        return common
    from asyncpg import InterfaceError, PostgresError  # type: ignore[import-untyped]  # asyncpg ships no types
    from asyncpg.exceptions import InternalClientError  # type: ignore[import-untyped]  # as above

    return (*common, InterfaceError, InternalClientError, PostgresError)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The failure, what it wraps, and what it came from, the nearest first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = getattr(error, "orig", None) or error.__cause__ or error.__context__


def _told(chain: Sequence[BaseException]) -> tuple[str, str]:
    """The code of a failure, empty when it has none, and what was said with it."""
    for link in chain:
        if isinstance(state := getattr(link, "sqlstate", None), str):
            return state, _words(link)
    wrapped = isinstance(chain[0], DBAPIError) and len(chain) > 1
    return "", _words(chain[1] if wrapped else chain[0])


def _words(error: BaseException) -> str:
    """The message of the driver, without what its adapter says of classes around it."""
    said = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    return said.strip() or type(error).__name__


def _worded(said: str, causes: Causes) -> Meaning | None:
    return next((meaning for start, meaning in causes if re.match(start, said.lower())), None)
