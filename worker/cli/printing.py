"""Where words go: results to stdout, everything else to stderr; JSON is one document and nothing besides.

Everything a command prints passes here, so that text which others wrote can be read and acts on no terminal.
A command has a document and says which parts of it a person reads: lines, lines with a label, and tables.
"""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import Any

from schemas.canonical import text_to_ns
from schemas.errors import ConfigError
from schemas.timeframes import LAST_NS
from services.model_calls.quoting import visible, visible_json
from worker.pages.text_parts import WIDEST, Part, lines_of


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


def print_json_line(line: str) -> None:
    """JSON on a line of stdout, with everything unseen escaped: no part of it ends the line."""
    sys.stdout.write(visible_json(line) + "\n")


def print_document(document: Any, as_json: bool, parts_of: Callable[[Any], Iterable[Part]]) -> None:
    """A document as JSON, or the parts of it that a person reads, in order."""
    if as_json:
        return print_json(document)
    attended = sys.stdout.isatty()
    styled = attended and not os.environ.get("NO_COLOR")
    space = shutil.get_terminal_size().columns if attended else WIDEST
    for text, heading in lines_of(parts_of(document), space):
        sys.stdout.write(f"\x1b[1m{text}\x1b[0m\n" if styled and heading else f"{text}\n")
    sys.stdout.flush()


def time_option(text: str, option: str) -> int:
    """Nanoseconds of an ISO time with a space or T, as `text_to_ns` reads it.

    Raises:
        ConfigError: not such a time.
    """
    try:
        found = text_to_ns(text)
    except ValueError as error:
        raise ConfigError(
            f"{option} {text!r} is not a time: write it like 2012-01-31 or '2012-01-31 16:00'"
        ) from error
    if abs(found) > LAST_NS:
        raise ConfigError(f"{option} {text!r} is no time of a journal, which ends in April 2262")
    return found
