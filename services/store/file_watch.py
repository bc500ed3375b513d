"""Whether the files of a SQLite store are still those that its connections have open.

SQLite goes on writing into a file that was deleted or replaced, and says nothing. So every connection looks
before and after each commit: the file at the address, and the log and the index beside it, must be those of
its first commit. The last connection of all processes removes log and index when it closes, so they may
change while none of ours has them open, and at no other time.

Whoever copies another store over the file, cuts it off or writes into it leaves it the same file. SQLite
writes it only in a checkpoint, which the index tells of: when the file has changed and there was none,
another program wrote. Where there was one, its runs are held against those that were there and are known.

How far the log of a SQLite store has been brought into its file, as the index beside it says.

In WAL mode SQLite writes the file of a store only while it brings the log into it, and notes in the index how
far it will go before it begins. Index and file are looked at through descriptors that SQLite has open: to
close one of our own would give up the locks of the whole process.

Source: https://www.sqlite.org/walformat.html, "The WAL-Index File Format".
"""

import os
import sqlite3
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote
from weakref import WeakSet

from schemas.errors import StoreError

COMPANIONS = ("-wal", "-shm")
PRIVATE = 0o600
REST_S = 0.05  # a file that was not written for so long is looked into
LONGEST_REST_S = 2.0
CHECK_BYTES = 512 << 20  # of larger files only the table of runs is checked; that many take 0.4 s

OVERWRITTEN = "was overwritten with another file"
DAMAGED = "was damaged, cut off or written to by another program"

# With the version of the schema, which a copy by VACUUM INTO has one higher: its pages lie elsewhere.
RUNS = (
    "SELECT run_id, created_at, events FROM runs "
    "UNION ALL SELECT '', 0, schema_version FROM pragma_schema_version"
)

Stamp = tuple[int, int]  # size and time of a file
Runs = dict[str, tuple[int, int]]  # when each run was made, ns, and how many rows it has
DESCRIPTORS = "/dev/fd"  # of this process; not on every system
HEAD = struct.Struct("=32x8s56xI28xI")  # salts of the log, nBackfill, nBackfillAttempted

Identity = tuple[int, int] | None  # device and number of a file; None where there is none


@dataclass(frozen=True)
class CheckpointProgress:
    """Where bringing the log into the file stands.

    Attributes:
        log: which log it is; another one after each time that it begins anew.
        done: frames that are in the file.
        begun: frames that are there or are being written.
    """

    log: bytes
    done: int
    begun: int

    @property
    def settled(self) -> bool:
        """Whether no connection of any process is at it."""
        return self.begun <= self.done


class OpenFile:
    """A file that SQLite has open in this process, found again when it was opened anew."""

    def __init__(self) -> None:
        self._descriptor = -1

    def brought(self, index: Identity) -> CheckpointProgress | None:
        """What the index says; None where that cannot be told.

        Args:
            index: identity of the file `-shm`.
        """
        if index is None or not self._find_descriptor(index):
            return None
        try:
            head = os.pread(self._descriptor, HEAD.size, 0)
        except OSError:  # closed meanwhile: the next look finds the one that is open then
            return None
        return CheckpointProgress(*HEAD.unpack(head)) if len(head) == HEAD.size else None

    def _find_descriptor(self, identity: tuple[int, int]) -> bool:
        if _is(self._descriptor, identity):
            return True
        self._descriptor = -1
        with suppress(OSError):
            open_now = [int(name) for name in os.listdir(DESCRIPTORS)]
            self._descriptor = next((number for number in open_now if _is(number, identity)), -1)
        return self._descriptor >= 0


def _is(descriptor: int, identity: tuple[int, int]) -> bool:
    try:
        found = os.fstat(descriptor)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == identity


class FileLost(sqlite3.OperationalError):
    """A commit that must not be acknowledged: it went, or would go, to a file that is not found again.

    `open_still` says that only log or index is lost: SQLite may bring what was committed into the file when
    the last connection closes, so that before then nothing can be said of what it will hold. `overwritten`
    and `damaged` say that it is the same file with other bytes; `file` is the one that was lost, `runs` what
    was known of it; `stale` are log and index of a file that was deleted or replaced, which still lie there.
    """

    def __init__(
        self,
        path: Path,
        what: str,
        *,
        open_still: bool = False,
        overwritten: bool = False,
        damaged: bool = False,
        file: Identity = None,
        runs: Runs | None = None,
        stale: Sequence[Path] = (),
    ) -> None:
        super().__init__(f"{what} under the running process")
        self.path = path
        self.open_still = open_still
        self.overwritten = overwritten
        self.damaged = damaged
        self.file = file
        self.runs = runs or {}
        self.stale = stale


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
        self._paths: dict[str, Path] = {}
        self._main: Identity = None
        self._companions: dict[str, Identity] = {}
        self._stamp: Stamp | None = None
        self._runs: Runs = {}
        self._seen: Stamp | None = None
        self._brought: CheckpointProgress | None = None
        self._index = OpenFile()
        self._lost: FileLost | None = None
        self._users: WeakSet[sqlite3.Connection] = WeakSet()
        self._alone = threading.RLock()  # every connection lives in a thread of its own

    def check(self, user: sqlite3.Connection | None = None) -> None:
        """Compare what lies there with what was found first.

        Args:
            user: a connection that has the files open; None for one that is about to open them.

        Raises:
            FileLost: something is gone, or is another file.
        """
        with self._alone:
            main = identity_of(self._path)
            if self._beside is None or self._main is None:
                if user is None:
                    return
                if main is None:
                    raise self._loss(_became(main))
                self._main, self._beside = main, Path(os.path.realpath(self._path))
                self._paths = {end: self._beside.with_name(self._beside.name + end) for end in COMPANIONS}
            if main != self._main:
                raise self._loss(_became(main))
            self._check_companions(user)
            self._check_writer(self._beside)
            if user is not None:
                self._check_contents(self._beside, user)

    def _loss(self, became: str) -> FileLost:
        text = f"{str(self._path)!r} {became}"
        overwritten, damaged = became == OVERWRITTEN, became == DAMAGED
        left = () if overwritten or damaged or self._beside is None else companions_of(self._beside)
        return FileLost(
            self._path, text, overwritten=overwritten, damaged=damaged,
            file=self._main, runs=self._runs, stale=left,
        )  # fmt: skip

    def _check_writer(self, other: Path) -> None:
        """Whether a checkpoint explains that the file has changed since the last look.

        One that wrote after that look had begun before it and was not through, or has been noted since.
        """
        if self._lost is not None:
            raise self._lost
        index = self._companions.get("-shm")
        before = self._index.brought(index)
        stamp = _stamp(other)
        known, changed = self._brought, self._seen is not None and self._seen != stamp
        if changed and known is not None and known.settled and self._index.brought(index) == known:
            self._lost = self._describe_foreign_write(other)
            raise self._lost
        self._brought, self._seen = before, stamp

    def _describe_foreign_write(self, companion: Path) -> FileLost:
        """What another program has made of the file, once that has come to rest."""
        _wait_for_rest(companion)
        found = _runs_in(companion)
        other = found is not None and not _is_resumable(self._runs, found)
        if other or _is_whole(companion):
            return self._loss(OVERWRITTEN)
        return self._loss(DAMAGED)

    def _check_contents(self, other: Path, user: sqlite3.Connection) -> None:
        """Whether the file still holds the runs that it held; one that is being written is read later."""
        stamp = _stamp(other)
        if stamp == self._stamp:
            return
        known, idle = _read_runs(user), not user.in_transaction
        whole = idle and _all_in_file(user)
        stamp = _stamp(other)
        found = _runs_in(other)
        if found is None or _stamp(other) != stamp:
            return
        now = _read_runs(user)
        lost = whole and known == now and found != now
        if lost or not (_is_resumable(self._runs, found) and _is_resumable(found, now)):
            self._lost = self._loss(OVERWRITTEN)
            raise self._lost
        self._stamp, self._runs = stamp if idle else self._stamp, found

    def _check_companions(self, user: sqlite3.Connection | None) -> None:
        found = {suffix: identity_of(path) for suffix, path in self._paths.items()}
        if not self._users:
            self._companions, self._seen, self._brought = {}, None, None
        for suffix, known in self._companions.items():
            if known is not None and found[suffix] != known:
                name = str(self._paths[suffix])
                raise FileLost(self._path, f"{name!r} {_became(found[suffix])}", open_still=True)
        if user is not None:
            self._users.add(user)
            self._companions = found

    @contextmanager
    def leaving(self, user: sqlite3.Connection) -> Iterator[None]:
        """While a connection closes nobody looks: the last one takes log and index away."""
        with self._alone:
            yield
            self._users.discard(user)


def _became(found: Identity) -> str:
    return "was deleted or moved away" if found is None else "was replaced by another file"


def companions_of(path: Path) -> list[Path]:
    """Logs and index that lie beside a store, whichever file they were written for."""
    others = [path.with_name(path.name + end) for end in (*COMPANIONS, "-journal")]
    return [file for file in others if file.exists()]


def identity_of(path: Path) -> Identity:
    """Which file lies there; None where none does."""
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _stamp(path: Path) -> Stamp:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns


def _is_resumable(before: Runs, after: Runs) -> bool:
    """Whether every run is still there and has lost no rows."""
    return all(
        run_id in after and after[run_id][0] == made and after[run_id][1] >= rows
        for run_id, (made, rows) in before.items()
    )


def _read_runs(connection: sqlite3.Connection) -> Runs:
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
        with closing(sqlite3.connect(alone_address(path), uri=True)) as file:
            return _read_runs(file)
    except sqlite3.Error as error:
        return {} if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB else None


def alone_address(path: Path) -> str:
    """The address of a file without its log; reading it leaves nothing behind."""
    return f"file:{quote(str(path))}?mode=ro&immutable=1"


def _wait_for_rest(path: Path) -> None:
    """Until nothing writes a file any more; a copy of a large one takes its time."""
    until, before = time.monotonic() + LONGEST_REST_S, None
    while (stamp := _stamp(path)) != before and time.monotonic() < until:
        before = stamp
        time.sleep(REST_S)


def _is_whole(path: Path) -> bool:
    """Whether SQLite finds nothing wrong with the file itself, without its log."""
    try:
        with closing(sqlite3.connect(alone_address(path), uri=True)) as file:
            return bool(file.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")
    except sqlite3.Error:  # what cannot be read is not whole
        return False


def damage_in(path: Path) -> str | None:
    """What SQLite finds wrong in the pages of a store and its log; None when nothing.

    Raises:
        sqlite3.Error: it cannot be opened or read, for another reason than damage.
    """
    part = "1" if os.stat(path).st_size <= CHECK_BYTES else "runs"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as file:
            found = file.execute(f"PRAGMA quick_check({part})").fetchone()[0]
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise
        return str(error)
    return None if found == "ok" else str(found)


def made_private(path: Path) -> None:
    """Make an empty file for its owner alone, if there is none; SQLite gives its mode to log and index."""
    with suppress(OSError):  # SQLite opens the file next, and says what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
