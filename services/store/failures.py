"""What can be wrong with a store, said in one line with the next step.

A server says it by a code, which is looked for first and through the whole chain of an error: SQLAlchemy
wraps some failures and not others. Where there is no code, the beginning of the driver's message decides.

What PostgreSQL's error codes mean for a store: what is wrong, what to do, whether waiting helps.

Codes are the same in every language and version of the server, its messages are not. A process that trades
waits for whatever passes without it being started anew: connections that ran out, a lock, somebody who
cancelled a command, a server that goes down or took over.
"""

import asyncio
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from schemas.errors import StoreError
from services.store.identity import FileLost, StoreLost, damage_in
from services.store.open_files import chain_of, is_refused, too_few_files
from services.store.urls import StoreUrl

READ_ONLY = "25006"


@dataclass(frozen=True)
class Meaning:
    """What is wrong with a store and the next step, and whether the same call may succeed later."""

    text: str
    retryable: bool


DAMAGED = Meaning("is damaged: restore it from a backup, or give another --db", False)
LOG_LOST = (
    "has lost its log (-wal) while another process has it open: end every process that has it open, then run "
    "the command again"
)
_CONNECTION = Meaning("closed the connection: check that the server runs", True)
_NO_CONNECTION_LEFT = Meaning("has no connection left: try again in a moment, or raise its limit", True)
_SHUTTING_DOWN = Meaning("closed the connection: it is shutting down or starting again", True)
_OTHER_TRANSACTION = Meaning("was in use by another transaction: try again in a moment", True)
_TOOK_TOO_LONG = Meaning("closed a connection that had been in use for too long: try again in a moment", True)
_SHORT = Meaning("is short of memory or other resources: try again in a moment", True)
_REFUSED = Meaning("refused the user or password: check the --db address", False)

# Of one code, before those of its class (the first two letters).
STATES: dict[str, Meaning] = {
    READ_ONLY: Meaning("is read-only, as a standby is: try again in a moment, or name the primary", True),
    "25P03": _TOOK_TOO_LONG,
    "25P04": _TOOK_TOO_LONG,
    "28000": Meaning("does not let this user in: check the --db address and the server's pg_hba.conf", False),
    "28P01": _REFUSED,
    "3D000": Meaning("has no such database: create it, or check the --db address", False),
    "40002": Meaning("did not take what was written, a constraint was broken", False),
    "42501": Meaning("does not give this user the right to do that: grant it", False),
    "53100": Meaning("cannot be written, the disk is full: free some space", False),
    "53300": _NO_CONNECTION_LEFT,
    "53400": Meaning("refused to go beyond a limit of its configuration: raise it", False),
    "55006": _OTHER_TRANSACTION,
    "55P03": Meaning("waited too long for a lock that somebody else holds: try again in a moment", True),
    "57014": Meaning("cancelled the command: somebody asked for it, or it took too long; try again", True),
    "57P03": Meaning("is starting up or shutting down: try again in a moment", True),
    "57P04": Meaning("dropped the database: create it, or check the --db address", False),
    "57P05": _TOOK_TOO_LONG,
    "58030": Meaning("cannot be read or written (disk I/O error): check the disk", False),
    "XX001": DAMAGED,
    "XX002": DAMAGED,
}
CLASSES: dict[str, Meaning] = {
    "08": _CONNECTION,
    "28": _REFUSED,
    "40": _OTHER_TRANSACTION,
    "53": _SHORT,
    "57": _SHUTTING_DOWN,
}


def meaning_of(state: str) -> Meaning | None:
    """What a code means for a store; None for one that says nothing about the server itself."""
    return STATES.get(state) or CLASSES.get(state[:2])


class StoreMissing(StoreError):
    """There is no store at this address yet; listing it is empty, naming a run in it is a mistake."""


class StoreDamaged(StoreError):
    """The file cannot be read to its end."""


MEND = "restore a backup (`thinktwice db restore FILE --db URL`), or give another --db"
UNABLE = "unable to open"
NO_TEXT = "Could not decode to UTF-8"  # SQLite's driver, of bytes in a column of text

Causes = tuple[tuple[str, Meaning], ...]


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Turn the failure to read a stored text into a `StoreDamaged` that names it and the next step."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreDamaged(
            f"{what} is damaged, it cannot be read ({type(error).__name__}): {MEND}"
        ) from error


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
    chain = list(chain_of(error))
    for cause in chain:
        if isinstance(cause, FileLost):
            return StoreLost(f"store {url.text}: {cause}", url=url)
    state, message = _read_code(chain)
    if any(getattr(link, "sqlite_errorname", None) == "SQLITE_IOERR_SHORT_READ" for link in chain):
        # The index names frames that the log lacks; it is made anew once nobody has it open.
        return StoreError(f"store {url.text} {LOG_LOST}")
    found = _find_meaning(message, CLEARER) or meaning_of(state) or _find_meaning(message, CAUSES)
    if is_refused(error) or message.lower().startswith(UNABLE):
        limited = too_few_files(error)
        if limited is not None:
            return StoreError(f"store {url.text} cannot be opened: {limited}")
    if found is not None:
        if found is DAMAGED:
            return StoreDamaged(f"store {url.text} {found.text}", url=url)
        return StoreError(f"store {url.text} {found.text}", retryable=found.retryable)
    if any(isinstance(link, (OSError, PoolTimeout)) for link in chain):
        return StoreError(
            f"store {url.text} cannot be reached: check host, port and that the server runs", retryable=True
        )
    return StoreError(f"store {url.text} failed: {message.splitlines()[0]}")


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
    try:
        damage = await asyncio.to_thread(damage_in, url.path)
    except (OSError, sqlite3.Error) as error:
        raise store_error(error, url) from error
    if damage is not None:
        raise StoreDamaged(f"store {url.text} is damaged: {damage}: {MEND}", url=url)


def _failures(url: StoreUrl) -> tuple[type[Exception], ...]:
    common = (DBAPIError, PoolTimeout, OSError, TimeoutError)
    if url.dialect == "sqlite":
        return common
    from asyncpg import InterfaceError, PostgresError  # type: ignore[import-untyped]  # asyncpg ships no types
    from asyncpg.exceptions import InternalClientError  # type: ignore[import-untyped]  # as above

    return (*common, InterfaceError, InternalClientError, PostgresError)


def _read_code(chain: Sequence[BaseException]) -> tuple[str, str]:
    """The code of a failure, empty when it has none, and what was said with it."""
    for link in chain:
        if isinstance(state := getattr(link, "sqlstate", None), str):
            return state, _words(link)
    wrapped = isinstance(chain[0], DBAPIError) and len(chain) > 1
    return "", _words(chain[1] if wrapped else chain[0])


def _words(error: BaseException) -> str:
    """The message of the driver, without what its adapter says of classes around it."""
    text = error.args[0] if error.args and isinstance(error.args[0], str) else str(error)
    return text.strip() or type(error).__name__


def _find_meaning(text: str, causes: Causes) -> Meaning | None:
    return next((meaning for start, meaning in causes if re.match(start, text.lower())), None)
