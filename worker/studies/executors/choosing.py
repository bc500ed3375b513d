"""Which executor a study gets: what was named, else as many processes as pay."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from schemas.errors import ConfigError
from worker.studies.executors.executor import Executor, SerialExecutor
from worker.studies.executors.process_pool import ProcessPool

WORDS = "'serial', 'processes', 'local' or tcp://HOST:PORT, a Dask Client, or None"


def cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def opened_executor(given: Any = None, *, processes: int | None = None, tasks: int = 2) -> Iterator[Executor]:
    """An executor that ends with the study; one that was handed over stays open.

    Args:
        given: `serial`, `processes`, `local` (a Dask cluster of this machine), the address of a Dask
            scheduler, a Client, or an executor; None: processes, or none where there is one task.
        processes: None: one a processor.
        tasks: how many there are.

    Raises:
        ConfigError: it is none of these, or Dask is not installed.
    """
    if processes is not None and (type(processes) is not int or processes < 1):
        raise ConfigError(f"processes {processes!r}: give 1 or more, a whole number")
    most = min(processes or cores(), max(tasks, 1))
    if all(hasattr(given, name) for name in ("share", "run", "close")):
        yield given
        return
    executor = _make(given, most)
    try:
        yield executor
    finally:
        executor.close()


def _make(given: Any, processes: int) -> Executor:
    if given == "serial" or (given is None and processes == 1):
        return SerialExecutor()
    if given is None or given == "processes":
        return ProcessPool(processes)
    is_address = isinstance(given, str) and (given == "local" or "://" in given)
    if not is_address and not hasattr(given, "submit"):
        raise ConfigError(f"executor {given!r}: give {WORDS}")
    try:
        from worker.studies.executors.dask_cluster import DaskCluster
    except ImportError as error:
        raise ConfigError(
            f"executor {given!r} needs Dask ({error}): install it with `pip install 'thinktwice[cluster]'`"
        ) from error
    return DaskCluster.open(given, processes) if is_address else DaskCluster(given)
