"""GrowingFile: the bytes that are appended to a file, and when it is another file than before.

Follows the name, as programs that rotate their output expect: the rest of the old file is read first. Reads a
bounded piece at a time and never blocks on anything but a regular file.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO, NamedTuple

PIECE = 65_536
_MEMORY = PIECE  # last bytes read: if they are others now, the file was rewritten in place


class Piece(NamedTuple):
    """What one look at the file found."""

    data: bytes = b""  # appended bytes; empty at the end of the file
    restart: str | None = None  # why reading begins again at the first byte, else None
    gone: str | None = None  # why the file cannot be read at present, else None
    written: int = 0  # ns, when the file says that it was written last; what was read is no older


class GrowingFile:
    """One name in the file system."""

    def __init__(self, path: Path, piece: int = PIECE) -> None:
        self._path = path
        self._piece = piece
        self._file: BinaryIO | None = None
        self._offset = 0
        self._memory = b""

    def look(self) -> Piece:
        """The next piece, or what happened to the file."""
        try:
            return self._next((self._file or self._open()).fileno())
        except OSError as error:
            self.close()
            return Piece(gone=error.strerror or type(error).__name__)

    def close(self) -> None:
        """Let go of the file; another look begins at its first byte."""
        if self._file is not None:
            self._file.close()
        self._file, self._offset, self._memory = None, 0, b""

    def _open(self) -> BinaryIO:
        if not stat.S_ISREG(os.stat(self._path).st_mode):
            raise OSError(0, "no regular file")
        self._file = self._path.open("rb", buffering=0)
        return self._file

    def _next(self, descriptor: int) -> Piece:
        found = os.fstat(descriptor)
        truncated = found.st_size < self._offset
        if (
            truncated
            or os.pread(descriptor, len(self._memory), self._offset - len(self._memory)) != self._memory
        ):
            self.close()
            return Piece(restart="truncated" if truncated else "rewritten")
        data = os.pread(descriptor, self._piece, self._offset)
        self._offset += len(data)
        self._memory = (self._memory + data)[-_MEMORY:]
        there = None if data else os.stat(self._path)  # all is read: is the name still that of this file?
        if there is None or os.path.samestat(there, found):
            return Piece(data, written=found.st_mtime_ns)
        self.close()
        return Piece(restart="replaced")
