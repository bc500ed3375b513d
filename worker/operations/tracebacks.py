"""Uncaught failures are printed without secrets: tracebacks, threads, records of unconfigured logs."""

import logging
import re
import sys
import threading
import traceback
from types import TracebackType

from services.model_calls.quoting import visible
from worker.secrets.redaction import redactor_of

EVENT = re.compile("[a-z]+(?:_[a-z]+)+")
OWN = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime"})  # what every record has


def guard_tracebacks() -> None:
    """Take secrets out of what the interpreter itself prints about failures."""
    sys.excepthook = _print
    threading.excepthook = _print_of_thread
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_PlainRedacted())


class _PlainRedacted(logging.Formatter):
    """A record in words: the name of an event, then what it is about, as `tools dropped: server a`."""

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        event = text.replace("_", " ") if EVENT.fullmatch(text) else text
        about = [
            f"{name.replace('_', ' ')} {_listing(value)}"
            for name, value in vars(record).items()
            if name not in OWN
        ]
        message = f"{event}: {', '.join(about)}" if about else event
        return visible(redactor_of().text(message), lines=True)


def _listing(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    text = "".join(traceback.format_exception(kind, error, trace))
    sys.stderr.write(visible(redactor_of().text(text), lines=True))


def _print_of_thread(given: threading.ExceptHookArgs) -> None:
    if given.exc_type is not SystemExit and given.exc_value is not None:
        _print(given.exc_type, given.exc_value, given.exc_traceback)
