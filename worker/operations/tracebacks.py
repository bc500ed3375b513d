"""Uncaught failures are printed without secrets: tracebacks, threads, records of unconfigured logs."""

import logging
import sys
import threading
import traceback
from types import TracebackType

from services.model_calls.quoting import visible
from worker.secrets.redaction import redactor_of


def guard_tracebacks() -> None:
    """Take secrets out of what the interpreter itself prints about failures."""
    sys.excepthook = _print
    threading.excepthook = _print_of_thread
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_PlainRedacted())


class _PlainRedacted(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(redactor_of().text(super().format(record)), lines=True)


def _print(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    text = "".join(traceback.format_exception(kind, error, trace))
    sys.stderr.write(visible(redactor_of().text(text), lines=True))


def _print_of_thread(given: threading.ExceptHookArgs) -> None:
    if given.exc_type is not SystemExit and given.exc_value is not None:
        _print(given.exc_type, given.exc_value, given.exc_traceback)
