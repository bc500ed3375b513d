"""Where words go: results to stdout, everything else to stderr; JSON is one document and nothing besides.

Everything a command prints passes here, so that text which others wrote can be read and acts on no terminal.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from schemas.canonical import text_to_ns
from schemas.errors import ConfigError
from services.model_calls.quoting import visible, visible_json

if TYPE_CHECKING:
    from rich.table import Column, Table

    from worker.pages.screen import PlainConsole

PLAIN_WIDTH = 120
WIDEST = 10_000  # of any table


def complain(message: str) -> None:
    """One line on stderr, without the secrets that a library may have put into its message."""
    from worker.secrets.redaction import redactor_of

    message = redactor_of().text(message)
    sys.stderr.write(f"thinktwice: {visible(' '.join(message.split()))}\n")


def print_json(document: Any) -> None:
    """One JSON document on stdout; undefined is null, never NaN."""
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(visible_json(text) + "\n")


def print_line(text: str) -> None:
    """One line on stdout, at once."""
    sys.stdout.write(visible(text) + "\n")
    sys.stdout.flush()


def print_lines(lines: Iterable[str]) -> None:
    """Each on a line of stdout."""
    for line in lines:
        print_line(line)


def print_page(text: str) -> None:
    """Text of several lines on stdout."""
    sys.stdout.write(visible(text, lines=True))


def print_json_line(line: str) -> None:
    """JSON on a line of stdout, with everything unseen escaped: no part of it ends the line."""
    sys.stdout.write(visible_json(line) + "\n")


def print_document(document: Any, as_json: bool, show: Callable[[Any], None]) -> None:
    """A document as JSON, or as `show` prints it for a person."""
    if as_json:
        print_json(document)
    else:
        show(document)


def say(label: str, text: str) -> None:
    """One line on stdout, behind a label in a column of its own."""
    stdout_console().print(f"{label:<9} {text}", soft_wrap=True)


def stdout_console() -> "PlainConsole":
    """A console on stdout as it is now; a fixed width when no terminal reads it."""
    from worker.pages.screen import PlainConsole

    return PlainConsole(sys.stdout, width=None if sys.stdout.isatty() else PLAIN_WIDTH)


def print_table(table: "Table") -> None:
    """A table with every cell whole; in a terminal that is narrower its columns go on below.

    The first column, whose cells alone may be folded, stands before each part of the others again.
    """
    console = stdout_console()
    if not console.is_terminal or _natural(console, table) <= console.width:
        console.width = max(console.width, _natural(console, table))
        console.print(table)
        return
    first, *others = table.columns
    first.max_width = console.width // 2
    while others:
        fitting = [
            count
            for count in range(1, len(others) + 1)
            if _natural(console, _part(table, [first, *others[:count]])) <= console.width
        ]
        taken = max(fitting, default=1)
        console.print(_part(table, [first, *others[:taken]]))
        table.title, others = None, others[taken:]
        if others:
            console.print()


def _natural(console: "PlainConsole", table: "Table") -> int:
    """The width of a table in which nothing is folded but its first column."""
    return console.measure(table, options=console.options.update(width=WIDEST)).maximum


def _part(table: "Table", columns: "Sequence[Column]") -> "Table":
    """The table with some of its columns."""
    part = copy(table)
    part.columns = [replace(column, _index=index) for index, column in enumerate(columns)]
    return part


def time_option(text: str, option: str) -> int:
    """Nanoseconds of an ISO time with a space or T, as `text_to_ns` reads it.

    Raises:
        ConfigError: not such a time.
    """
    try:
        return text_to_ns(text)
    except ValueError as error:
        raise ConfigError(
            f"{option} {text!r} is not a time: write it like 2012-01-31 or '2012-01-31 16:00'"
        ) from error
