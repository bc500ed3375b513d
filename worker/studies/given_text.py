"""Bytes and texts that a command is given, in a file or on standard input, with their bounds."""

import sys
from pathlib import Path
from typing import BinaryIO

from schemas.errors import DataError

STDIN = "-"
MAX_TEXT_BYTES = 51_200


def source_of(file: str) -> str:
    """What messages call a file."""
    return "standard input" if file == STDIN else file


def given_bytes(file: str, most: int, *, wanted: str, hint: str = "") -> bytes:
    """At most `most + 1` bytes of a file, `-` being standard input.

    Args:
        file: path, or `-`.
        most: bytes that are of use.
        wanted: what is to be piped into standard input.
        hint: next step where there is no such file.

    Raises:
        DataError: it cannot be read.
    """
    try:
        if file == STDIN:
            stream: BinaryIO | None = getattr(sys.stdin, "buffer", None)
            if stream is None:
                raise DataError(f"standard input is closed: pipe {wanted} into it, or name a file")
            return stream.read(most + 1)
        with Path(file).open("rb") as opened:
            return opened.read(most + 1)
    except DataError:
        raise
    except FileNotFoundError as error:
        raise DataError(f"file {file!r} does not exist: check the path{hint}") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"file {file!r} cannot be read: {reason}") from error


def given_text(file: str) -> str:
    """A text of at most 51,200 bytes.

    Raises:
        DataError: it cannot be read, is longer, empty, binary, or no UTF-8.
    """
    data = given_bytes(file, MAX_TEXT_BYTES, wanted="a text")
    source = source_of(file)
    if len(data) > MAX_TEXT_BYTES:
        raise DataError(
            f"{source} has more than {MAX_TEXT_BYTES:,} bytes: give a shorter text, or a part of it"
        )
    if b"\0" in data:
        raise DataError(f"{source} is binary: byte {data.index(0):,} is zero; give plain text in UTF-8")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{source} is not UTF-8 at byte {error.start:,}: give plain text in UTF-8") from error
    if not text.strip():
        raise DataError(f"{source} is empty: give a text with at least one sentence")
    return text
