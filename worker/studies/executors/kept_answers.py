"""Answers of tasks in a folder, a file a key, so that a study that was ended goes on and repeats nothing."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any
from zipfile import BadZipFile

import numpy as np

from schemas.errors import ConfigError
from worker.runs.progress import Progress
from worker.studies.executors.executor import Executor, Given

DOCUMENT = "document"
Answers = dict[str, dict[str, Any]]


@contextmanager
def writing_into(folder: Path) -> Iterator[None]:
    """A folder, which is made if it is not there.

    Raises:
        ConfigError: it cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ConfigError(f"folder {str(folder)!r}: {error.strerror}: give one to write into") from error


class KeptAnswers:
    """A folder of answers: dicts of plain JSON values, arrays and bytes."""

    def __init__(self, folder: Path) -> None:
        """Use a folder, which is made.

        Raises:
            ConfigError: it cannot be.
        """
        self._folder = folder
        with writing_into(folder):
            TemporaryFile(dir=folder).close()

    def find(self, key: str) -> dict[str, Any] | None:
        """The answer of a task, if it has ended.

        Raises:
            ConfigError: its file is damaged, or another task's.
        """
        path = self._path(key)
        if not path.exists():
            return None
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            shown = json.loads(arrays.pop(DOCUMENT).tobytes())
        except (OSError, ValueError, KeyError, BadZipFile) as error:
            raise ConfigError(
                f"{str(path)!r} holds no answer ({error}): remove it, and its task runs again"
            ) from error
        if shown["key"] != key:
            raise ConfigError(f"{str(path)!r} is of the task {shown['key']!r}: remove it")
        packed = {name: arrays.pop(name).tobytes() for name in shown["bytes"]}
        return {**shown["values"], **arrays, **packed}

    def keep(self, key: str, answer: Mapping[str, Any]) -> None:
        """Write an answer whole, or not at all."""
        arrays = {name: value for name, value in answer.items() if isinstance(value, np.ndarray)}
        packed = {name: value for name, value in answer.items() if isinstance(value, bytes)}
        plain = {name: value for name, value in answer.items() if name not in arrays and name not in packed}
        shown = json.dumps({"key": key, "bytes": list(packed), "values": plain}).encode()
        path = self._path(key)
        begun = path.with_suffix(f".{os.getpid()}")
        raw = {name: np.frombuffer(value, np.uint8) for name, value in {**packed, DOCUMENT: shown}.items()}
        with writing_into(self._folder):
            with begun.open("wb") as file:
                np.savez(file, allow_pickle=False, **arrays, **raw)
            begun.replace(path)

    def _path(self, key: str) -> Path:
        return self._folder / f"{sha256(key.encode()).hexdigest()[:32]}.npz"


def run_tasks(
    executor: Executor,
    work: Callable[[Given], dict[str, Any]],
    tasks: Mapping[str, Given],
    kept: KeptAnswers | None,
    shown: Progress,
) -> Answers:
    """The answers of all tasks, in the order of the tasks.

    Args:
        executor: where they run.
        work: what is done with each.
        tasks: by key.
        kept: where answers are kept and found, but for those with an `error`; None: nowhere.
        shown: called with tasks ended, and tasks in all; may raise to stop.
    """
    old = {} if kept is None else {key: kept.find(key) for key in tasks}
    found: Answers = {key: answer for key, answer in old.items() if answer is not None}
    left = {key: task for key, task in tasks.items() if key not in found}

    def look() -> None:
        shown(len(found), len(tasks))

    look()
    with closing(executor.run(work, left, look)) as answers:
        for key, answer in answers:
            if kept is not None and "error" not in answer:
                kept.keep(key, answer)
            found[key] = answer
            look()
    return {key: found[key] for key in tasks}
