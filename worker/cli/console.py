"""Where words go: results to stdout, everything else to stderr; JSON is one document and nothing besides."""

import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from schemas.canonical import datetime_to_ns
from schemas.errors import ConfigError
from services.quoting import visible

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_WIDTH = 120


def complain(message: str) -> None:
    """One line on stderr, without the secrets that a library may have put into its message."""
    from worker.operations.redaction import redactor_of

    message = redactor_of().text(message)
    sys.stderr.write(f"thinktwice: {visible(' '.join(message.split()))}\n")


def print_json(document: Any) -> None:
    """One JSON document on stdout; undefined is null, never NaN."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def stdout_console() -> "Console":
    """A console on stdout as it stands now; a fixed width when nobody looks at a terminal."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)


def time_option(text: str, option: str) -> int:
    """Nanoseconds of an ISO time with a space or T; UTC when it carries no offset, midnight when only a date.

    Raises:
        ConfigError: not such a time.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        return datetime_to_ns(moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment)
    except ValueError as error:
        raise ConfigError(
            f"{option} {text!r} is not a time: write it like 2012-01-31 or '2012-01-31 16:00'"
        ) from error
