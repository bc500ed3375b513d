"""Counts the processes of a run that crashed, so that a run whose processes keep dying ends in safe mode.

Each process keeps a locked file as soon as it holds the run, and removes it when it ends and says why: a
stop, or an error that the operator, a machine or a service has to mend. The system lets go of a lock when its
process is gone, whatever ended it, so a file that nobody holds is a crash: killed, or ended by a mistake of
this program. The files do not lie in the store, because that may be what is broken; where they cannot be kept
the run trades on, and that is said.
"""

import asyncio
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from schemas.canonical import content_id
from schemas.errors import InfrastructureError, OperatorError, StoreError
from schemas.settings.live import OperationsSettings
from worker.operations.status import SECOND

MOST_KEPT = 1_000
# Ends that say why. An InvariantViolation and whatever nobody foresaw are not among them: those are crashes.
SAID_WHY = (OperatorError, InfrastructureError, asyncio.CancelledError, KeyboardInterrupt, SystemExit)
Note = Callable[[str, dict[str, str]], None]


def crash_loop(crashes: Sequence[int], now: int, settings: OperationsSettings) -> bool:
    """Whether a process that starts now has crashed too often.

    Args:
        crashes: ns, starts that had no orderly end.
        now: ns, of the present start; a crash of the future is one of a clock that was set back, and counts.
        settings: how many are one too many, and within what time.
    """
    earliest = now - settings.start_window_s * SECOND
    return sum(start >= earliest for start in crashes) > settings.start_limit


def place_notes(address: str, run_id: str) -> Path:
    """Where starts on a run are noted: beside a store that is a file, else in the state of the user."""
    from platformdirs import user_state_path

    from services.store.urls import parse_url

    url = parse_url(address)
    if url.path is not None:
        return url.path.with_name(f"{url.path.name}.{run_id}.starts")
    return user_state_path("thinktwice") / f"{content_id([url.text])}.{run_id}.starts"


class StartNotes:
    """The starts of one run on one machine, each an empty file named by its time in ns.

    Attributes:
        damaged: whether not all of them could be read; then what could not is no crash.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: tuple[Path, int] | None = None  # and the descriptor that holds its lock
        self.damaged = False

    def crashes(self) -> tuple[int, ...]:
        """Starts of processes that are gone without an orderly end, ns, ascending."""
        return tuple(at for at, _ in self._list_left())

    def begin(self, now: int) -> None:
        """Note the present start; one of the future is of a clock that was set back, and counts from now on.

        Raises:
            StoreError: the file cannot be written.
        """
        left = self._list_left()
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for _, path in left[:-MOST_KEPT]:
                path.unlink(missing_ok=True)
            for at, path in left[-MOST_KEPT:]:
                if at > now:
                    path.rename(self._name_file(now))
            path = self._name_file(now)
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            self._own = path, held
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise self._not_written(error) from error

    def end(self) -> None:
        """The present process ends orderly; crashes before it stay until their time is over.

        Raises:
            StoreError: the file cannot be removed.
        """
        if self._own is None:
            return
        (path, held), self._own = self._own, None
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise self._not_written(error) from error
        finally:
            os.close(held)
        with suppress(OSError):  # others are left
            self._folder.rmdir()

    def _name_file(self, at: int) -> Path:
        return self._folder / f"{at}.{secrets.token_hex(8)}"

    def _list_left(self) -> list[tuple[int, Path]]:
        """Starts whose process is gone, in their order."""
        found = []
        try:
            for path in self._folder.iterdir():
                at = path.name.partition(".")[0]
                if not at.isdecimal():
                    self.damaged = True
                elif not _is_held(path):
                    found.append((int(at), path))
        except FileNotFoundError:
            pass
        except OSError:
            self.damaged = True
        return sorted(found)

    def _not_written(self, error: OSError) -> StoreError:
        return StoreError(f"start notes {str(self._folder)!r} cannot be written: {error.strerror}")


def _is_held(path: Path) -> bool:
    """Whether a process holds the lock of a start; one that ended in the meantime is no crash."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, FileNotFoundError):
        return True
    return False


class StartLimit:
    """Keeps the notes of whatever run this process trades; that they fail stops nothing.

    Args:
        place: of the notes of a run.
        settings: how many crashes are too many.
        note: told when the notes cannot be kept.
    """

    def __init__(self, place: Callable[[str], Path], settings: OperationsSettings, note: Note) -> None:
        self._place = place
        self._settings = settings
        self._note = note
        self._notes: StartNotes | None = None

    def crashed_too_often(self, run_id: str) -> bool:
        """Note that this process trades the run; whether those before it crashed too often."""
        now = time.time_ns()
        self.end()
        self._notes = StartNotes(self._place(run_id))
        crashes = self._notes.crashes()
        if self._notes.damaged:
            self._note("start_notes_failed", {"run_id": run_id, "reason": "earlier starts cannot be read"})
        self._try_notes(lambda notes: notes.begin(now))
        return crash_loop(crashes, now, self._settings)

    @contextmanager
    def withdrawn(self) -> Iterator[None]:
        """Take the start back where the block ends and says why; what it raises goes on."""
        try:
            yield
        except SAID_WHY as error:
            self.end()
            if self._notes is not None and isinstance(error, Exception):
                self._note("start_withdrawn", {"reason": f"{type(error).__name__}: {error}"})
            raise
        self.end()

    def end(self) -> None:
        """This process ends orderly."""
        self._try_notes(StartNotes.end)

    def _try_notes(self, step: Callable[[StartNotes], None]) -> None:
        if self._notes is None:
            return
        try:
            step(self._notes)
        except StoreError as error:
            self._note("start_notes_failed", {"reason": f"{error}; crashes are not counted"})
