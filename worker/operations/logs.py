"""Logs of a running process: one formatter for our records and for those of every library.

The formatter is where secrets are taken out, because only there a record is whole: message, arguments, extra
fields, traceback and stack. Nothing that goes wrong while logging reaches whoever logged.
"""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from logging.handlers import WatchedFileHandler
from pathlib import Path
from typing import Any, TextIO

import structlog
from structlog.stdlib import ProcessorFormatter
from structlog.typing import EventDict, Processor

from schemas.errors import ConfigError
from schemas.settings import Settings
from services.model_calls.quoting import visible
from worker.secrets.redaction import Redactor, redactor_of

EventSink = Callable[[str, dict[str, Any]], None]  # takes the name of an event and its fields
ROOT = "thinktwice"
# At DEBUG these print whole prompts, headers and statements; those at WARNING tell of every request at INFO.
LIBRARIES = {
    "aiohttp": logging.INFO,
    "anthropic": logging.INFO,
    "apscheduler": logging.WARNING,
    "asyncio": logging.INFO,
    "asyncpg": logging.INFO,
    "ccxt": logging.INFO,
    "httpcore2": logging.INFO,
    "httpx2": logging.WARNING,
    "mcp": logging.WARNING,
    "numba": logging.WARNING,
    "openai": logging.INFO,
    "sqlalchemy": logging.WARNING,
}
SHOWN = "shown_on_stdout"
TRACES = ("exception", "stack")


class RedactingFormatter(ProcessorFormatter):
    """Renders a record and takes secrets out of the finished text."""

    def __init__(self, redactor: Redactor, **given: Any) -> None:
        super().__init__(**given)
        self._redactor = redactor

    def format(self, record: logging.LogRecord) -> str:
        """One record as text."""
        return self._redactor.text(super().format(record))


class _Quiet:
    """Drops a record that cannot be rendered or written.

    The standard handler prints such a record with its arguments as they are, secrets included.
    """

    def handleError(self, record: logging.LogRecord) -> None: ...


class QuietHandler(_Quiet, logging.StreamHandler[TextIO]):
    """Writes to a stream."""


class QuietFileHandler(_Quiet, WatchedFileHandler):
    """Appends to a file that only its owner reads; a rotated file is opened anew."""

    def _open(self) -> Any:
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return open(descriptor, "a", encoding="utf-8", errors="backslashreplace")

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record; a file that cannot be opened again is as a full disk is."""
        with suppress(OSError):
            super().emit(record)

    def close(self) -> None:
        """Close the file; what a full disk does not take is lost."""
        with suppress(OSError):
            super().close()


class Logging:
    """Logging as configured; leaving it gives the process back as it was."""

    def __init__(self, redactor: Redactor, handler: QuietHandler | QuietFileHandler, level: int) -> None:
        self.redactor = redactor
        self._handler = handler
        root = logging.getLogger()
        self._before = (root.handlers[:], root.level, {n: logging.getLogger(n).level for n in LIBRARIES})
        root.handlers[:] = [handler]
        root.setLevel(level)
        for name, least in LIBRARIES.items():
            logging.getLogger(name).setLevel(max(least, level))

    def close(self) -> None:
        """Write no more."""
        root = logging.getLogger()
        root.handlers[:], level, levels = self._before
        root.setLevel(level)
        for name, before in levels.items():
            logging.getLogger(name).setLevel(before)
        if isinstance(self._handler, QuietFileHandler):
            self._handler.close()
        structlog.reset_defaults()

    def __enter__(self) -> "Logging":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def configure_logging(settings: Settings, environment: Mapping[str, str] | None = None) -> Logging:
    """Send every record of the process where `runtime.operations` says, without secrets.

    Raises:
        ConfigError: the log file cannot be written.
    """
    operations = settings.runtime.operations
    redactor = redactor_of(environment, settings.runtime.db)
    handler = _handler(operations.log_file)
    handler.setFormatter(_formatter(operations.log_format, redactor, handler))
    level = logging.getLevelNamesMapping()[operations.log_level.upper()]
    logs = Logging(redactor, handler, level)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )
    return logs


def logger(name: str, **fields: Any) -> structlog.stdlib.BoundLogger:
    """A logger below ours whose records carry the fields; an event with `shown_on_stdout` skips stderr."""
    bound: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(f"{ROOT}.{name}").bind(**fields)
    return bound


def _handler(file: str | None) -> QuietHandler | QuietFileHandler:
    if file is None:
        handler = QuietHandler(sys.stderr)
        handler.addFilter(_not_shown)
        return handler
    try:
        return QuietFileHandler(Path(file), encoding="utf-8")
    except OSError as error:
        raise ConfigError(
            f"runtime.operations.log_file {file!r} cannot be written: {error.strerror}"
        ) from error


def _not_shown(record: logging.LogRecord) -> bool:
    return not (isinstance(record.msg, dict) and record.msg.get(SHOWN))


def _formatter(form: str, redactor: Redactor, handler: QuietHandler | QuietFileHandler) -> RedactingFormatter:
    def redact(_: Any, __: str, event: EventDict) -> EventDict:
        event.pop(SHOWN, None)
        cleaned: EventDict = redactor.value(event)
        return cleaned

    rendering: list[Processor] = [
        structlog.processors.JSONRenderer(ensure_ascii=False, allow_nan=False, default=str)
    ]
    if form == "console":
        colours = isinstance(handler, QuietHandler) and handler.stream.isatty()
        rendering = [_on_one_line, structlog.dev.ConsoleRenderer(colors=colours)]
    return RedactingFormatter(
        redactor,
        foreign_pre_chain=[structlog.stdlib.ExtraAdder()],
        processors=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            ProcessorFormatter.remove_processors_meta,
            redact,
            *rendering,
        ],
    )


def _on_one_line(_: Any, __: str, event: EventDict) -> EventDict:
    """A record that holds foreign text stays one line, so that it cannot pass for one of ours."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = visible(value, lines=key in TRACES)
    return event


WARNINGS = (  # events of a running process, whichever command runs it; the rest is at INFO
    "judge_without_model",
    "lease_lost",
    "look_failed",
    "model_failing",
    "request_not_answered",
    "safe_mode",
    "savepoint_not_stored",
    "savepoint_not_used",
    "slot_failed",
    "start_not_withdrawn",
    "store_away",
    "waker_silent",
)
LEVELS = dict.fromkeys(WARNINGS, logging.WARNING) | {"worker_died": logging.ERROR}


def level_of(event: str) -> int:
    """The level of an event by its name."""
    return LEVELS.get(event, logging.INFO)
