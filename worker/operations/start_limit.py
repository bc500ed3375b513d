"""Counts starts that followed a crash, so that a process that keeps dying ends in safe mode.

Each start is noted before anything else is done and taken back by an orderly end; what is left are crashes.
The notes lie in a small file beside the store, because the store may be what is broken.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from schemas.errors import StoreError
from schemas.live_settings import OperationsSettings
from worker.operations.vital_signs import SECOND

MOST_KEPT = 1_000


def crash_loop(crashes: Sequence[int], now: int, settings: OperationsSettings) -> bool:
    """Whether a process that starts now has crashed too often.

    Args:
        crashes: ns, starts that had no orderly end.
        now: ns, of the present start; a crash of the future is one of a clock that was set back, and counts.
        settings: how many are one too many, and within what time.
    """
    earliest = now - settings.start_window_s * SECOND
    return sum(start >= earliest for start in crashes) > settings.start_limit


class StartNotes:
    """The file of starts of one run on one machine.

    Attributes:
        damaged: whether the file could not be read; then nothing is known of earlier starts.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.damaged = False

    def begin(self, now: int) -> tuple[int, ...]:
        """Earlier starts without an orderly end, ns; notes the present one.

        Raises:
            StoreError: the file cannot be written.
        """
        earlier = self._read()
        self._write([*earlier, now])
        return tuple(earlier)

    def end(self, start: int) -> None:
        """The start of this value ended orderly: that ends the series of crashes before it, too.

        Raises:
            StoreError: the file cannot be written.
        """
        self._write([one for one in self._read() if one > start])

    def _read(self) -> list[int]:
        try:
            starts = json.loads(self._path.read_text("utf-8"))["starts"]
            if not all(type(one) is int for one in starts):
                raise ValueError("a start is no time")
        except FileNotFoundError:
            return []
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            self.damaged = True
            return []
        return list(starts)

    def _write(self, starts: list[int]) -> None:
        # Whole or not at all: a crash while writing must not lose the count of crashes.
        scratch = self._path.with_name(f"{self._path.name}.{os.getpid()}.new")
        try:
            with scratch.open("w", encoding="utf-8") as file:
                json.dump({"starts": starts[-MOST_KEPT:]}, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(scratch, self._path)
        except OSError as error:
            raise StoreError(
                f"start notes {str(self._path)!r} cannot be written: {error.strerror}"
            ) from error
