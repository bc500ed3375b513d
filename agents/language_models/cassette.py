"""Cassettes: recorded calls of models, kept as JSON lines and played back without key, network or waiting.

A line is a row of kind `model_call` as `thinktwice journal RUN --jsonl --telemetry` prints it, so the journal
of a run is its cassette already, and a printed one plays elsewhere. Rows of other kinds are passed over. A
recorded line carries a digest of itself, so one that was edited by hand is refused and not played.
"""

import json
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from schemas.canonical import canonical_json, content_hash
from schemas.errors import CassetteMiss, ConfigError, first_fault
from services.model_calls.record import Question, RecordedCall
from services.text.given_files import MAX_BYTES, read_given

KIND = "model_call"
DIGEST, HASH = "digest", "hash"
HELD = ("payload", "telemetry")


class Cassette:
    """Recorded calls by key and repeat; `name` is where they came from, for messages."""

    def __init__(self, name: str, calls: Iterable[RecordedCall]) -> None:
        self.name = name
        self._calls = {(call.key, call.repeat): call for call in calls}

    def __len__(self) -> int:
        return len(self._calls)

    def calls(self) -> tuple[RecordedCall, ...]:
        """Every recorded call, as they stood in the source."""
        return tuple(self._calls.values())

    def find(self, question: Question) -> RecordedCall:
        """The recorded outcome of exactly this question, asked for the n-th time.

        Raises:
            CassetteMiss: it was not recorded.
        """
        call = self._calls.get((question.key, question.repeat))
        if call is not None:
            return call
        caller = question.caller
        raise CassetteMiss(
            f"no recorded reply {question.key[:16]!r} (asked {question.repeat} times) of model "
            f"{caller.model!r} to prompts/{caller.prompt}.txt ({caller.prompt_hash[:16]}) in {self.name} "
            f"({len(self)} calls): "
            "prompt, model, settings or bars are not those of the recording; record anew with --llm record",
            key=question.key,
            prompt=caller.prompt,
        )


def recorded_call(payload: Any, telemetry: dict[str, Any] | None) -> RecordedCall:
    """The call of a `model_call` row.

    Raises:
        ValueError: it is none.
    """
    call = payload.get("call") if isinstance(payload, dict) else None
    if not isinstance(call, dict):
        raise ValueError("no recorded call")
    return RecordedCall.model_validate(call | (telemetry or {}))


def read_cassette(path: Path, most: int = MAX_BYTES) -> Cassette:
    """The cassette in a file of at most `most` bytes.

    Raises:
        ConfigError: the file is missing, larger, without a call, or a line is not a row of a journal.
    """
    try:
        lines = (
            read_given(path, most, ConfigError).decode().split("\n")
        )  # a reply may hold other separators of lines
    except FileNotFoundError as error:
        raise ConfigError(f"cassette {str(path)!r} does not exist: record one with --llm record") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cassette {str(path)!r} cannot be read: {error}") from error
    read = (_read_call(path, number, line) for number, line in enumerate(lines, 1) if line.strip())
    calls = [call for call in read if call is not None]
    if not calls:
        raise ConfigError(f"cassette {str(path)!r} holds no recorded call: record one with --llm record")
    return Cassette(f"cassette {str(path)!r}", calls)


def _read_call(path: Path, number: int, line: str) -> RecordedCall | None:
    """The call of a line that is as it was recorded; None of a row of another kind."""
    place = f"cassette {str(path)!r}, line {number}"
    try:
        row = json.loads(line)
        if row.get("kind") != KIND:
            return None
        # A row of a printed journal has its hash in the place of the digest.
        if row.get(DIGEST, row.get(HASH)) is None or row.get(DIGEST, _digest(row)) != _digest(row):
            raise ConfigError(
                f"{place}: it was changed after it was recorded (its digest is another): play the file as it "
                "was, or record anew with --llm record"
            )
        return recorded_call(row["payload"], row.get("telemetry"))
    except ValidationError as error:
        raise ConfigError(f"{place}: no recorded call ({first_fault(error)})") from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{place}: not a row of a journal ({error})") from error


def _digest(row: dict[str, Any]) -> str:
    return content_hash({name: row.get(name) for name in HELD})


class CassetteWriter:
    """Writes one line for each call at once, so that a run that breaks off keeps what it paid for.

    Args:
        path: the file.
        past: for a run that goes on: whether it still stands in its recorded past. Its own file is then held
            against what comes again; what was asked and lost when it broke off gives way to what is asked.
    """

    def __init__(self, path: Path, past: Callable[[], bool] | None = None) -> None:
        """Check the place; the file is made with the first call.

        Raises:
            ConfigError: there is something already, or no such folder.
        """
        there = path.exists() and (path.is_dir() or bool(path.stat().st_size))
        if there and (past is None or path.is_dir()):
            raise ConfigError(
                f"cassette {str(path)!r} exists: play it with --llm replay, or name another file to record"
            )
        if not path.parent.is_dir():
            raise ConfigError(f"the folder of cassette {str(path)!r} does not exist: make it first")
        self._path = path
        self._past = past
        self._kept = deque(
            read_given(path, MAX_BYTES, ConfigError).splitlines(keepends=True) if there else ()
        )
        self._length = 0

    def keep(self, call: RecordedCall) -> None:
        """Append one call.

        Raises:
            ConfigError: the file of a run that goes on holds another one in its place.
        """
        row = {"kind": KIND, "payload": {"call": call.payload()}, "telemetry": call.telemetry()}
        line = _line(row | {DIGEST: _digest(row)})
        if self._kept:
            kept = self._kept.popleft()
            if kept in (line, _line(row)):
                self._length += len(kept)
                return
            self._give_way()
        with self._path.open("ab") as file:
            file.write(line)

    def _give_way(self) -> None:
        if self._past is not None and self._past():
            raise ConfigError(
                f"cassette {str(self._path)!r} is not that of this run: name another file to record"
            )
        self._kept.clear()
        with self._path.open("r+b") as file:
            file.truncate(self._length)


def _line(row: dict[str, Any]) -> bytes:
    return (canonical_json(row) + "\n").encode()
