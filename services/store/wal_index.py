"""How far the log of a SQLite store has been brought into its file, as the index beside it says.

In WAL mode SQLite writes the file of a store only while it brings the log into it, and notes in the index how
far it will go before it begins. Index and file are looked at through descriptors that SQLite has open: to
close one of our own would give up the locks of the whole process.

Source: https://www.sqlite.org/walformat.html, "The WAL-Index File Format".
"""

import os
import struct
from contextlib import suppress
from dataclasses import dataclass

DESCRIPTORS = "/dev/fd"  # of this process; not on every system
HEAD = struct.Struct("=32x8s56xI28xI")  # salts of the log, nBackfill, nBackfillAttempted

Identity = tuple[int, int] | None  # device and number of a file; None where there is none


@dataclass(frozen=True)
class Brought:
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

    def brought(self, index: Identity) -> Brought | None:
        """What the index says; None where that cannot be told.

        Args:
            index: identity of the file `-shm`.
        """
        if index is None or not self._found(index):
            return None
        try:
            head = os.pread(self._descriptor, HEAD.size, 0)
        except OSError:  # closed meanwhile: the next look finds the one that is open then
            return None
        return Brought(*HEAD.unpack(head)) if len(head) == HEAD.size else None

    def _found(self, identity: tuple[int, int]) -> bool:
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
