"""Executors: where the tasks of a study run, with the same answers wherever that is.

A task is plain data under a key that names its content; what is done with it is a function of a module. The
workers are given names, never code: see `named_features` for what they have to import.
"""

from collections.abc import Callable, Generator, Mapping
from typing import Protocol, TypeVar

from schemas.errors import InfrastructureError
from trading_core.bars import BarSeries
from worker.studies.executors.shared_bars import forget, share_here

POLL_S = 0.2  # between two looks at whether somebody wants the study to stop
DEATHS = 2  # of workers at one task, which is then given up
Given = TypeVar("Given")
Answer = TypeVar("Answer")
Look = Callable[[], None]


class TaskLost(InfrastructureError):
    """Tasks that ended every worker that was given them."""


class Executor(Protocol):
    """Where tasks run."""

    def share(self, bars: BarSeries) -> str:
        """Bring bars to every worker, once; the key by which `shared_bars` finds them in a task."""
        ...

    def run(
        self, work: Callable[[Given], Answer], tasks: Mapping[str, Given], look: Look
    ) -> Generator[tuple[str, Answer]]:
        """Keys and answers as tasks end, in no order.

        Args:
            work: a function of a module; what it raises is raised here.
            tasks: by key; plain data and objects of modules.
            look: called at least every `POLL_S` where tasks run elsewhere; may raise to stop.

        Raises:
            TaskLost: names the tasks that ended `DEATHS` workers, once all others have their answers.
        """
        ...

    def close(self) -> None:
        """End the workers that were started for this, and forget the bars."""
        ...


class SerialExecutor:
    """One task after the other, in this process."""

    def __init__(self) -> None:
        self._keys: list[str] = []

    def share(self, bars: BarSeries) -> str:
        """See `Executor`."""
        self._keys.append(share_here(bars))
        return self._keys[-1]

    def run(
        self, work: Callable[[Given], Answer], tasks: Mapping[str, Given], look: Look
    ) -> Generator[tuple[str, Answer]]:
        """See `Executor`; nothing is imported elsewhere, so nothing is refused."""
        for key, task in tasks.items():
            look()
            yield key, work(task)

    def close(self) -> None:
        """See `Executor`."""
        for key in self._keys:
            forget(key)


def task_lost(keys: list[str], how: str) -> TaskLost:
    """The error that names tasks."""
    named = ", ".join(map(repr, keys))
    return TaskLost(
        f"{named} ended {DEATHS} workers ({how}): every other task has its answer; give it less (fewer bars, "
        "a smaller chunk) or more memory, or run it alone with the executor 'serial'"
    )
