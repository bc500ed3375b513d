"""A pool of processes on this machine, each with one task at a time, so that a death names its task.

The processes start fresh and never import the script that asks: one without a main guard would run again in
each of them.
"""

import pickle
import signal
import sys
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any, cast

from schemas.errors import InfrastructureError
from trading_core.bars import BarSeries
from worker.studies.executors.executor import (
    DEATHS,
    POLL_S,
    Answer,
    Given,
    Look,
    task_lost,
)
from worker.studies.executors.shared_bars import share_folder, write_bars

END_S = 5.0


class ProcessPool:
    """As many processes as there are tasks, up to a number; they stay until it is closed."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self._folder = TemporaryDirectory(prefix="thinktwice-bars-")
        self._idle: list[_Worker] = []

    def share(self, bars: BarSeries) -> str:
        """See `Executor`."""
        return write_bars(bars, Path(self._folder.name))

    def run(
        self, work: Callable[[Given], Answer], tasks: Mapping[str, Given], look: Look
    ) -> Generator[tuple[str, Answer]]:
        """See `Executor`."""
        waiting, deaths = deque(tasks), Counter[str]()
        busy: dict[Connection, tuple[_Worker, str]] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < self._processes:
                    worker = self._take()
                    with suppress(BrokenPipeError):  # its death is the end of the line, which is read below
                        worker.connection.send((work, tasks[waiting[0]]))
                    busy[worker.connection] = worker, waiting.popleft()
                for connection in wait(list(busy), POLL_S):
                    worker, key = busy.pop(cast(Connection, connection))
                    if (reply := worker.reply()) is None:
                        deaths[key] += 1
                        waiting.extendleft([key] if deaths[key] < DEATHS else [])
                        continue
                    self._idle.append(worker)
                    if isinstance(reply, _Raised):
                        raise reply.error
                    yield key, reply[0]
                look()
        finally:
            for worker, _ in busy.values():
                worker.kill()
        if gone := [key for key, count in deaths.items() if count >= DEATHS]:
            raise task_lost(gone, "killed, or out of memory")

    def close(self) -> None:
        """See `Executor`."""
        while self._idle:
            self._idle.pop().kill()
        self._folder.cleanup()

    def _take(self) -> "_Worker":
        while self._idle:
            if (worker := self._idle.pop()).process.is_alive():
                return worker
            worker.kill()
        return _Worker(Path(self._folder.name))


class _Raised:
    """What a task raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Worker:
    """One process and the line to it."""

    def __init__(self, folder: Path) -> None:
        context = get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, folder), daemon=True)
        with _without_script():
            self.process.start()
        theirs.close()  # the last copy is the process's own: its death is the end of the line

    def reply(self) -> Any:
        """What it sent; None where it died instead."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.kill()
            return None

    def kill(self) -> None:
        """End it wherever it is."""
        self.process.kill()
        self.process.join(END_S)
        self.connection.close()


@contextmanager
def _without_script() -> Iterator[None]:
    """A process that is started now finds no script to import."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _serve(connection: Connection, folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is heard by the process that asks
    from worker.runs.warm_up import compile_engine

    share_folder(folder)
    compile_engine()
    while True:
        try:
            work, task = connection.recv()
        except (EOFError, OSError):
            return
        except Exception as error:  # noqa: BLE001 - raised where it was asked for
            _send(connection, _Raised(InfrastructureError(f"a worker cannot import its task: {error}")))
            continue
        try:
            reply: Any = (work(task),)
        except Exception as error:  # noqa: BLE001 - raised where it was asked for
            reply = _Raised(error)
        _send(connection, reply)


def _send(connection: Connection, reply: Any) -> None:
    raised = reply.error if isinstance(reply, _Raised) else None
    try:
        pickle.loads(pickle.dumps(raised))  # noqa: S301 - what cannot be made anew where it is raised
        connection.send(reply)
    except Exception as error:  # noqa: BLE001 - what pickling raises is the object's own
        what = reply if raised is None else f"{type(raised).__name__}: {raised}"
        failed = InfrastructureError(f"an answer cannot be sent ({error}): {what!r:.200}")
        connection.send(_Raised(failed))
