"""Counts the processes of a run that crashed, so that a run whose processes keep dying ends in safe mode.

Each process notes its start as soon as it holds the run, and takes its own note back when it ends and says
why: a stop, or an error that the operator, a machine or a service has to mend. What is left of processes that
are gone are crashes: killed, or ended by a mistake of this program. The notes lie in a small file of their
own, because the store may be what is broken; where they cannot be kept the run trades on, and that is said.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from schemas.errors import InfrastructureError, OperatorError, StoreError
from schemas.settings.live import OperationsSettings
from worker.live.process_identity import ProcessIdentity, is_gone
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


@dataclass(frozen=True)
class Start:
    """A start that had no orderly end yet: ns, and of which process."""

    at: int
    process: ProcessIdentity


class StartNotes:
    """The file of starts of one run on one machine.

    Attributes:
        damaged: whether the file could not be read; then nothing is known of earlier starts.
    """

    def __init__(self, path: Path, process: ProcessIdentity | None = None) -> None:
        self._path = path
        self._process = process or ProcessIdentity.own()
        self.damaged = False

    def crashes(self) -> tuple[int, ...]:
        """Starts of processes that are gone without an orderly end, ns."""
        return tuple(one.at for one in self._read() if is_gone(one.process))

    def begin(self, now: int) -> None:
        """Note the present start; one of the future is of a clock that was set back, and counts from now on.

        Raises:
            StoreError: the file cannot be written.
        """
        others = [Start(min(one.at, now), one.process) for one in self._others()]
        self._write([*others, Start(now, self._process)])

    def end(self) -> None:
        """The present process ends orderly; crashes before it stay until their time is over.

        Raises:
            StoreError: the file cannot be written.
        """
        others = self._others()
        try:
            self._write(others)
        except StoreError:
            # A disk without room for a new file has room for less in the old one.
            self._shorten(others)

    def _others(self) -> list[Start]:
        return [one for one in self._read() if one.process != self._process]

    def _read(self) -> list[Start]:
        try:
            starts = json.loads(self._path.read_text("utf-8"))["starts"]
            return [Start(_time(one["at"]), ProcessIdentity.read(one["process"])) for one in starts]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            self.damaged = True
            return []

    def _write(self, starts: list[Start]) -> None:
        # Whole or not at all: a crash while writing must not lose the count of crashes.
        scratch = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            if not starts:
                self._path.unlink(missing_ok=True)
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            private = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(private, "w", encoding="utf-8") as file:
                file.write(_text(starts))
                file.flush()
                os.fsync(file.fileno())
            os.replace(scratch, self._path)
        except OSError as error:
            with suppress(OSError):
                scratch.unlink(missing_ok=True)
            raise self._not_written(error) from error

    def _shorten(self, starts: list[Start]) -> None:
        try:
            with self._path.open("r+", encoding="utf-8") as file:
                file.write(_text(starts))
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._not_written(error) from error

    def _not_written(self, error: OSError) -> StoreError:
        return StoreError(f"start notes {str(self._path)!r} cannot be written: {error.strerror}")


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
        self._notes = StartNotes(self._place(run_id))
        crashes = self._notes.crashes()
        if self._notes.damaged:
            self._note("start_notes_failed", {"run_id": run_id, "reason": "earlier starts cannot be read"})
        self._kept(lambda notes: notes.begin(now))
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
        self._kept(StartNotes.end)

    def _kept(self, step: Callable[[StartNotes], None]) -> None:
        if self._notes is None:
            return
        try:
            step(self._notes)
        except StoreError as error:
            self._note("start_notes_failed", {"reason": f"{error}; crashes are not counted"})


def _text(starts: Sequence[Start]) -> str:
    return json.dumps({"starts": [asdict(one) for one in starts[-MOST_KEPT:]]})


def _time(value: object) -> int:
    if type(value) is not int:
        raise ValueError("a start is no time")
    return value
