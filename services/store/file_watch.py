"""Whether the files of a SQLite store are still those that its connections have open.

SQLite goes on writing into a file that was deleted or replaced, and says nothing. So every connection looks
before and after each commit: the file at the address, and the log and the index beside it, must be those of
its first commit. The last connection of all processes removes log and index when it closes, so they may
change while none of ours has them open, and at no other time.

Whoever copies another store over the file leaves it the same file. Between two checkpoints nothing writes it:
when its time has changed, the runs in it are held against those that were there and those that are known.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote
from weakref import WeakSet

from schemas.errors import StoreError

COMPANIONS = ("-wal", "-shm")
PRIVATE = 0o600

# With the version of the schema, which a copy by VACUUM INTO has one higher: its pages lie elsewhere.
RUNS = (
    "SELECT run_id, created_at, events FROM runs "
    "UNION ALL SELECT '', 0, schema_version FROM pragma_schema_version"
)

Identity = tuple[int, int] | None  # device and number of a file; None where there is none
Stamp = tuple[int, int]  # size and time of a file
Runs = dict[str, tuple[int, int]]  # when each run was made, ns, and how many rows it has


class FileLost(sqlite3.OperationalError):
    """A commit that must not be acknowledged: it went, or would go, to a file that nobody finds again.

    `open_still` says that only log or index is lost: SQLite may bring what was committed into the file when
    the last connection closes, so that before then nothing can be said of what it will hold.
    """

    def __init__(self, path: Path, what: str, *, open_still: bool = False) -> None:
        super().__init__(f"{what} under the running process")
        self.path = path
        self.open_still = open_still


class StoreLost(StoreError):
    """The files of the store were deleted or replaced under this process; waiting will not help."""


class FileWatch:
    """The files of one store as the connections of one engine found them.

    Args:
        path: the address; links in it are followed at every look.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.abspath(path))
        self._beside: Path | None = None
        self._main: Identity = None
        self._companions: dict[str, Identity] = {}
        self._stamp: Stamp | None = None
        self._runs: Runs = {}
        self._users: WeakSet[sqlite3.Connection] = WeakSet()
        self._alone = threading.Lock()  # every connection lives in a thread of its own

    def check(self, user: sqlite3.Connection | None = None) -> None:
        """Compare what lies there with what was found first.

        Args:
            user: a connection that has the files open; None for one that is about to open them.

        Raises:
            FileLost: something is gone, or is another file.
        """
        with self._alone:
            main = _identity(self._path)
            if self._beside is None or self._main is None:
                if user is None:
                    return
                if main is None:
                    raise FileLost(self._path, f"{str(self._path)!r} was deleted or moved away")
                self._main, self._beside = main, Path(os.path.realpath(self._path))
            if main != self._main:
                raise FileLost(self._path, f"{str(self._path)!r} {_became(main)}")
            self._check_companions(self._beside, user)
            if user is not None:
                self._check_contents(self._beside, user)

    def _check_contents(self, beside: Path, user: sqlite3.Connection) -> None:
        """Whether the file still holds the runs that it held; one that is being written is read later."""
        stamp = _stamp(beside)
        if stamp == self._stamp:
            return
        known, idle = _asked(user), not user.in_transaction
        whole = idle and _all_in_file(user)
        stamp = _stamp(beside)
        found = _runs_in(beside)
        if found is None or _stamp(beside) != stamp:
            return
        now = _asked(user)
        lost = whole and known == now and found != now
        if lost or not (_goes_on(self._runs, found) and _goes_on(found, now)):
            raise FileLost(self._path, f"{str(self._path)!r} was overwritten with another file")
        self._stamp, self._runs = stamp if idle else self._stamp, found

    def _check_companions(self, beside: Path, user: sqlite3.Connection | None) -> None:
        found = {suffix: _identity(beside.with_name(beside.name + suffix)) for suffix in COMPANIONS}
        if not self._users:
            self._companions = {}
        for suffix, known in self._companions.items():
            if known is not None and found[suffix] != known:
                name = str(beside.with_name(beside.name + suffix))
                raise FileLost(self._path, f"{name!r} {_became(found[suffix])}", open_still=True)
        if user is not None:
            self._users.add(user)
            self._companions = found

    def left(self, user: sqlite3.Connection) -> None:
        """A connection was closed."""
        with self._alone:
            self._users.discard(user)


def _became(found: Identity) -> str:
    return "was deleted or moved away" if found is None else "was replaced by another file"


def _identity(path: Path) -> Identity:
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _stamp(path: Path) -> Stamp:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _goes_on(before: Runs, after: Runs) -> bool:
    """Whether every run is still there and has lost no rows."""
    return all(
        run_id in after and after[run_id][0] == made and after[run_id][1] >= rows
        for run_id, (made, rows) in before.items()
    )


def _asked(connection: sqlite3.Connection) -> Runs:
    """The runs of a store; none in one without tables."""
    try:
        return {run_id: (made, rows) for run_id, made, rows in connection.execute(RUNS)}
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:  # any other than that there is no such table
            raise
        return {}


def _all_in_file(connection: sqlite3.Connection) -> bool:
    """Bring into the file what can be brought there without waiting; whether that is everything."""
    try:
        busy, written, in_file = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.OperationalError:  # locked, or read-only: what is in the file is compared all the same
        return False
    return not busy and bool(written == in_file)  # busy: another connection is at it, and nothing was brought


def _runs_in(path: Path) -> Runs | None:
    """The runs in the file itself, without its log; None while they cannot be read."""
    try:
        with closing(sqlite3.connect(_alone(path), uri=True)) as file:
            return _asked(file)
    except sqlite3.Error as error:
        return {} if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB else None


def _alone(path: Path) -> str:
    """The address of a file without its log; reading it leaves nothing behind."""
    return f"file:{quote(str(path))}?mode=ro&immutable=1"


@contextmanager
def losses_of(run_id: str, last: int | None = None) -> Iterator[None]:
    """Say of a loss which rows of a run it takes along.

    Args:
        run_id: the run that is written.
        last: number of the last row that was to be stored.

    Raises:
        StoreLost: with what is left of the run in the file at the address, or with what will tell it.
    """
    try:
        yield
    except StoreLost as error:
        path = error.context.get("path")
        if path is None:
            raise
        loss = _later(run_id) if error.context.get("open_still") else _loss(path, run_id, last)
        told = f"{error}; {loss}"
        raise StoreLost(told, run_id=run_id) from error


def _later(run_id: str) -> str:
    return (
        f"which rows of run {run_id} are in the file is known only when this process has ended: "
        f"`thinktwice verify {run_id}` tells it then"
    )


def _loss(path: Path, run_id: str, last: int | None) -> str:
    end = "" if last is None else f" to {last}"
    left = _left(path, run_id)
    if left is None:
        return f"run {run_id} is lost with it, rows 0{end}: the file at the address does not hold it"
    rows, known_at = left
    since = "" if known_at is None else f", what was decided since {_moment(known_at)}"
    return f"run {run_id}: rows {rows}{end}{since} are not in the file at the address"


def _left(path: Path, run_id: str) -> tuple[int, int | None] | None:
    """Rows of a run in the file itself, and when the last was known; None when it holds no such run."""
    try:
        with closing(sqlite3.connect(_alone(path), uri=True)) as file:
            run = file.execute("SELECT events FROM runs WHERE run_id = ?", (run_id,)).fetchone()
            if run is None:
                return None
            query = "SELECT known_at FROM journal WHERE run_id = ? AND seq = ?"
            last = file.execute(query, (run_id, run[0] - 1)).fetchone()
    except sqlite3.Error:  # nothing there can be read, which is what is said of it
        return None
    return int(run[0]), None if last is None else int(last[0])


def _moment(known_at: int) -> str:
    return datetime.fromtimestamp(known_at // 1_000_000_000, UTC).isoformat().replace("+00:00", "Z")


def made_private(path: Path) -> None:
    """Make an empty file for its owner alone, if there is none; SQLite gives its mode to log and index."""
    with suppress(OSError):  # SQLite opens the file next, and says what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
