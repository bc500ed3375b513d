"""Files that somebody names, read whole within a bound, and TOML within one.

A pipe or a device has no size and perhaps no end, so neither is read: what is piped comes over `-`, where a
command takes that.
"""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any, BinaryIO

from schemas.errors import DataError, OperatorError

MAX_BYTES = 2_000_000_000
MAX_TEXT_BYTES = 1_000_000  # of settings, prompts, questions, plans: what a person writes
MOST_LEVELS = 32  # of TOML; settings and playbooks have five
_MOST_STEPS = 10**7  # a key of n parts below a header of m takes the parser n * (n + m) of them


def open_given(path: Path, most: int = MAX_BYTES, error: type[OperatorError] = DataError) -> BinaryIO:
    """A regular file of at most `most` bytes, opened.

    Raises:
        error: a pipe or a device, or a file that is larger.
        OSError: it cannot be opened.
    """
    found = check_kind(path, error)
    if stat.S_ISREG(found.st_mode):
        check_size(path, found.st_size, most, error)
    return path.open("rb")


def check_kind(path: Path, error: type[OperatorError] = DataError) -> os.stat_result:
    """Refuse what is no file and no folder, before it is opened.

    Raises:
        error: a pipe or a device.
        OSError: it is not there.
    """
    found = os.stat(path)
    if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
        raise error(
            f"{str(path)!r} is a pipe or a device, and no regular file: save its bytes to a file first"
        )
    return found


def read_given(path: Path, most: int = MAX_TEXT_BYTES, error: type[OperatorError] = DataError) -> bytes:
    """The bytes that a file has when it is opened.

    Raises:
        error: as `open_given`.
        OSError: it cannot be read.
    """
    with open_given(path, most, error) as file:
        return file.read(os.fstat(file.fileno()).st_size)


def read_text(path: Path, error: type[OperatorError] = DataError) -> str:
    """The UTF-8 text of a file, its lines ended by line feeds.

    Raises:
        error: as `open_given`.
        OSError: it cannot be read.
        UnicodeDecodeError: it is no UTF-8.
    """
    return read_given(path, error=error).decode().replace("\r\n", "\n")


def check_size(path: Path, size: int, most: int, error: type[OperatorError] = DataError) -> None:
    """Refuse what is larger than its bound.

    Raises:
        error: it is.
    """
    if size > most:
        own = most == MAX_TEXT_BYTES
        bound = (
            "such a file may have"
            if own
            else "runtime.max_bytes allows: raise it, or give a part of the file"
        )
        raise error(f"{str(path)!r} holds more than the {most:,} bytes that {bound}", most=most)


def parse_toml(text: str) -> dict[str, Any]:
    """The document in a TOML text.

    Raises:
        ValueError: it is no TOML, or nests deeper than 32 levels.
    """
    deep = ValueError(f"it nests deeper than {MOST_LEVELS} levels")
    steps = header = 0
    for line in text.split(
        "\n"
    ):  # TOML ends lines nowhere else: a quoted key may hold what Unicode calls an end
        dots = line.count(".")
        header = max(header, dots) if line.lstrip(" \t").startswith("[") else header
        steps += (dots + 1) * (dots + header)
    if steps > _MOST_STEPS:
        raise ValueError(
            f"its keys, or its lines, have too many dots; tables nest up to {MOST_LEVELS} levels"
        )
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise deep from None
    level: list[Any] = [document]
    for _ in range(MOST_LEVELS):
        tables = [
            value.values() if isinstance(value, dict) else value
            for value in level
            if isinstance(value, dict | list)
        ]
        level = [inner for table in tables for inner in table]
    if level:
        raise deep
    return document
