"""What can be wrong with a store, said in one line with the next step."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from schemas.errors import StoreError
from services.store.urls import StoreUrl


class StoreMissing(StoreError):
    """There is no store at this address yet; listing it is empty, naming a run in it is a mistake."""


class StoreDamaged(StoreError):
    """The file cannot be read to its end."""


DAMAGE = "malformed"
# Fragments of the drivers' messages -> (what is wrong, what to do, whether the same call may succeed later).
CAUSES: tuple[tuple[str, str, bool], ...] = (
    ("locked", "is locked by another process: wait until it has finished, or give another --db", True),
    ("not a database", "is not a SQLite database: give another --db, or move the file away", False),
    (DAMAGE, "is damaged: restore it from a backup, or give another --db", False),
    (
        "unable to open",
        "cannot be opened: check that the directory exists and is writable, or give another --db",
        False,
    ),
    ("readonly", "is read-only: make the file and its directory writable, or give another --db", False),
    ("disk is full", "cannot be written, the disk is full: free some space", False),
    ("disk i/o", "cannot be read or written (disk I/O error): check the disk", False),
    ("password authentication", "refused the user or password: check the --db address", False),
    ("terminating connection", "closed the connection: it is shutting down or starting again", True),
    ("connection was closed", "closed the connection: check that the server runs", True),
    ("connection is closed", "closed the connection: check that the server runs", True),
    ("another operation", "lost its connection in the middle of a command: try again in a moment", True),
    ("the database system is", "is starting up or shutting down: try again in a moment", True),
    ("too many clients", "has no connection left: try again in a moment", True),
    ('role "', "has no such role: create it, or check the --db address", False),
    ('database "', "has no such database: create it, or check the --db address", False),
)


def store_error(error: BaseException, url: StoreUrl) -> StoreError:
    """The one-line form of a driver's failure."""
    original = getattr(error, "orig", None) or error
    text = str(original).lower()
    for fragment, meaning, retryable in CAUSES:
        if fragment in text:
            kind = StoreDamaged if fragment == DAMAGE else StoreError
            return kind(f"store {url.text} {meaning}", retryable=retryable)
    if isinstance(original, (OSError, TimeoutError, PoolTimeout)):
        return StoreError(
            f"store {url.text} cannot be reached: check host, port and that the server runs", retryable=True
        )
    first_line = str(original).splitlines()[0] if str(original) else type(original).__name__
    return StoreError(f"store {url.text} failed: {first_line}")


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

    return (*common, InterfaceError, PostgresError)
