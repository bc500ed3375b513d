"""Which file a SQLite store lies in: deleted and replaced files are found at the next commit.

SQLite goes on writing into a file that was deleted or replaced, and reports nothing. So every connection
compares device and inode of the address before and after each commit. The log and the index beside it are
compared as well, from a connection's first commit on: they stay as long as any connection has them open.
Another program that writes into the open file leaves it the same file: `db check` finds that.
"""

import itertools
import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from schemas.errors import StoreError

COMPANIONS = ("-wal", "-shm")
PRIVATE = 0o600

Identity = tuple[int, int] | None  # device and inode of a file; None where there is none


class FileLost(sqlite3.OperationalError):
    """A commit that must not be acknowledged: it went, or would go, to a file that is not found again."""


class StoreLost(StoreError):
    """The files of the store were deleted or replaced under this process; waiting will not help."""


class StoreFile:
    """The file at the address of a store, as the first connection of an engine found it.

    Args:
        path: the address; links in it are followed at every comparison.
    """

    def __init__(self, path: Path) -> None:
        self._path = Path(os.path.abspath(path))
        self._real = self._path
        self._main: Identity = None
        self._beside: dict[Path, Identity] = {}  # log and index, as they lay there with the file
        self._aside: list[Path] = []  # where they were moved

    def open(self, *, create: bool) -> None:
        """Note which file lies there before SQLite opens it; a new one is made for its owner alone.

        Raises:
            FileLost: another connection has opened a file that is gone or replaced.
        """
        if self._main is not None:
            return self._check_main()
        self._real = Path(os.path.realpath(self._path))
        if create:
            make_private(self._real)
        self._main = identity_of(self._real)

    def check(self, known: Mapping[Path, Identity]) -> dict[Path, Identity]:
        """Which log and index lie beside the file now.

        Args:
            known: what a connection that has been open since found there.

        Raises:
            FileLost: the file, or one of those that are known, is gone or is another one.
        """
        beside = [self._real.with_name(self._real.name + end) for end in COMPANIONS]
        found = {path: identity_of(path) for path in beside}
        self._check_main()
        for path in beside:
            if known.get(path) not in (None, found[path]):
                raise FileLost(f"{_describe_change(path, found[path])}; {_next_step([])}")
        self._beside = found
        return found

    def _check_main(self) -> None:
        found = identity_of(self._path)
        if found != self._main:
            self._move_log_aside()
            raise FileLost(f"{_describe_change(self._path, found)}; {self._describe_log()}")

    def _move_log_aside(self) -> None:
        """Give log and index of the file that is gone other names: SQLite would write them into the next one.

        Only those that were there with the file: another process may have begun its own beside the new one.
        """
        if identity_of(self._real) == self._main:
            return  # a link leads elsewhere by now; the file has its log beside it
        for path, known in self._beside.items():
            if known is not None and identity_of(path) == known:
                with suppress(OSError):  # they stay, and the message says so
                    self._aside.append(path.rename(_free_name(path)))

    def _describe_log(self) -> str:
        if self._aside:
            kept = " and ".join(repr(str(path)) for path in self._aside)
            return f"its log was moved to {kept} (it goes back only with the old file); {_next_step([])}"
        return _next_step([] if identity_of(self._real) == self._main else companions_of(self._real))


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.lost{count or ''}") for count in itertools.count())
    return next(name for name in names if not name.exists())


def _describe_change(path: Path, found: Identity) -> str:
    change = "was deleted or moved away" if found is None else "was replaced by another file"
    return f"{str(path)!r} {change} under the running process: nothing more is written"


def _next_step(stale: list[Path]) -> str:
    first = f"{describe_stale(stale)}; then " if stale else ""
    return (
        f"find what deletes or replaces it, {first}restore a backup if the store is gone "
        "(`thinktwice db restore`), and start again"
    )


def describe_stale(files: list[Path]) -> str:
    """What to do with log and index that were written for another file than the one at the address."""
    names = " and ".join(repr(str(file)) for file in files)
    return f"move {names} away first: SQLite would write what they hold of another file into this one"


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


def make_private(path: Path) -> None:
    """Make an empty file for its owner alone, if there is none; SQLite gives its mode to log and index."""
    with suppress(OSError):  # SQLite opens the file next, and reports what is wrong
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE))
