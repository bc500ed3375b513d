"""Tasks on a Dask cluster: one that is there, or a local one.

A plugin brings each worker the bars and the compiled engine, also one that joins late or is started again
after it died. A task refuses a worker whose program is another.
"""

import logging
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

from distributed import Client, Future, KilledWorker, SpecCluster, WorkerPlugin
from distributed.deploy.subprocess import SubprocessCluster

from schemas.errors import ConfigError
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
from worker.studies.executors.task_keys import program_hash

CONNECT_S = 10


class WorkerFiles(WorkerPlugin):
    """The engine, and Arrow files by name, of one worker; and folders that it imports from."""

    def __init__(self, name: str, files: Mapping[str, bytes], folders: Sequence[str] = ()) -> None:
        self.name, self._files, self._folders = name, dict(files), folders

    def setup(self, worker: Any) -> None:
        """Write the files where the worker keeps its own, and load the engine."""
        sys.path += [folder for folder in self._folders if folder not in sys.path]
        from worker.runs.warm_up import compile_engine

        folder = Path(worker.local_directory)
        for name, content in self._files.items():
            (folder / name).write_bytes(content)
        share_folder(folder)
        compile_engine()


def answer_of(work: Callable[[Given], Answer], task: Given, program: str) -> Answer:
    """What comes of a task on a worker.

    Raises:
        ConfigError: the worker runs another program than the one that asks.
    """
    if (theirs := program_hash()) != program:
        raise ConfigError(
            f"a worker runs a thinktwice with sources {theirs}, this one has {program}: install the same "
            "version on both"
        )
    return work(task)


class DaskCluster:
    """The workers of a cluster."""

    def __init__(self, client: Client, started: SpecCluster | None = None) -> None:
        """Take a client that the caller closes, or one of a cluster that was started for it."""
        if getattr(client, "asynchronous", False):
            raise ConfigError(f"executor {client!r} is asynchronous: give a Client that waits for answers")
        self._client, self._started = client, started
        self._plugins: list[str] = []
        # Workers of this machine import what lies beside the script, as the processes of a pool do.
        self._bring(
            "thinktwice-engine", {}, [] if started is None else [os.path.abspath(p) for p in sys.path]
        )

    @classmethod
    def open(cls, address: str, processes: int) -> "DaskCluster":
        """A cluster at an address, or `local`.

        Raises:
            ConfigError: nothing answers there.
        """
        if address == "local":
            # Workers as commands: those of `LocalCluster` would import the script that asks.
            started = SubprocessCluster(
                n_workers=processes, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR,
                scheduler_kwargs={"allowed_failures": DEATHS - 1, "dashboard": False},
            )  # fmt: skip
            return cls(Client(started, set_as_default=False), started)
        try:
            return cls(Client(address, timeout=CONNECT_S, set_as_default=False))
        except (OSError, TimeoutError, ValueError) as error:
            raise ConfigError(
                f"cluster {address!r}: no scheduler answers there ({error}): start one with "
                "`dask scheduler`, or give 'local'"
            ) from error

    def share(self, bars: BarSeries) -> str:
        """See `Executor`."""
        with TemporaryDirectory() as folder:
            key = write_bars(bars, Path(folder))
            self._bring(
                f"thinktwice-{key}", {path.name: path.read_bytes() for path in Path(folder).iterdir()}
            )
        return key

    def run(
        self, work: Callable[[Given], Answer], tasks: Mapping[str, Given], look: Look
    ) -> Generator[tuple[str, Answer]]:
        """See `Executor`; how many deaths a task may cost is the scheduler's `allowed-failures`."""
        suspects: list[str] = []
        yield from self._round(work, tasks, look, suspects)
        gone: list[str] = []
        for key in suspects:  # a worker that dies takes the tasks that waited for it along
            yield from self._round(work, {key: tasks[key]}, look, gone, " alone")
        if gone:
            raise task_lost(gone, "the scheduler gave them up")

    def _round(
        self,
        work: Callable[[Given], Answer],
        tasks: Mapping[str, Given],
        look: Look,
        gone: list[str],
        suffix: str = "",
    ) -> Generator[tuple[str, Answer]]:
        """Answers of tasks; those that the scheduler gives up are added to `gone`."""
        ended: SimpleQueue[Future[Any]] = SimpleQueue()
        program = program_hash()
        futures = {
            self._client.submit(answer_of, work, task, program, key=key + suffix): key
            for key, task in tasks.items()
        }
        for future in futures:
            future.add_done_callback(ended.put)
        left = len(futures)
        try:
            while left:
                look()
                try:
                    future = ended.get(timeout=POLL_S)
                except Empty:
                    continue
                left -= 1
                try:
                    answer = future.result()
                except KilledWorker:
                    gone.append(futures[future])
                    continue
                yield futures[future], answer
        finally:
            self._client.cancel(list(futures), force=True)

    def close(self) -> None:
        """See `Executor`."""
        if self._started is None:
            for name in self._plugins:
                self._client.unregister_worker_plugin(name)
        else:
            self._client.close()
            self._started.close()

    def _bring(self, name: str, files: Mapping[str, bytes], folders: Sequence[str] = ()) -> None:
        try:
            self._client.register_plugin(WorkerFiles(name, files, folders))
        except ImportError as error:
            raise ConfigError(
                f"the workers of {self._client.scheduler_info()['address']} cannot import this program "
                f"({error}): install the same version there"
            ) from error
        self._plugins.append(name)
