"""What executors cost, and what two processes are worth: `python -m benchmarks.executors`.

Everything is in CPU seconds, which a busy machine does not change. Overhead is that of all processes together
over tasks that do nothing. The ratio of runs of the agent is the CPU of one process over the longest of two
and what the asking process adds: how much sooner two free processors are done, the start of the workers
included.
"""

import os
import sys
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import psutil

from schemas.settings import Settings
from services.playbooks.loader import load_playbooks
from tools.docs_pages import table
from worker.feeds.selected_bars import load_bars
from worker.studies.executors.agent_runs import AgentTask, agent_settings, run_agent
from worker.studies.executors.choosing import opened_executor

TASKS, RUNS = 1_000, 16


def unseen() -> None:
    """Nobody watches."""


def nothing(number: int) -> int:
    """The least a task can do."""
    return number


def timed_run(task: AgentTask) -> dict[str, Any]:
    """The head of a run, and the CPU seconds of its process so far."""
    answer = run_agent(task)
    return {"head": answer["head"], "process": os.getpid(), "cpu_s": time.process_time()}


def family_cpu() -> float:
    """CPU seconds of this process and all below it that are alive."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return float(sum(item.user + item.system for item in times))


def overhead_ms(name: str, tasks: int) -> float:
    """CPU milliseconds a task that does nothing, once the workers are up."""
    with opened_executor(name, processes=2) as executor:
        list(executor.run(nothing, {f"first {n}": n for n in range(2)}, unseen))
        before = family_cpu()
        list(executor.run(nothing, {f"task {n}": n for n in range(tasks)}, unseen))
        return 1_000.0 * (family_cpu() - before) / tasks


def agent_tasks(runs: int, executor: Any) -> Mapping[str, AgentTask]:
    """Runs over the embedded bars that differ in their fee."""
    books = tuple(book.payload() for book in load_playbooks(None))
    key = executor.share(load_bars(Settings()))
    settings = [agent_settings(Settings(), {"execution__fee_bps": 1.0 + n}) for n in range(runs)]
    return {f"run {n}": AgentTask(item.payload(), books, key) for n, item in enumerate(settings)}


def longest_cpu(processes: int, runs: int) -> tuple[float, list[str]]:
    """CPU seconds of the process that works longest and of the one that asks, and the heads."""
    with opened_executor("processes", processes=processes) as executor:
        tasks = agent_tasks(runs, executor)
        before = time.process_time()
        found = dict(executor.run(timed_run, tasks, unseen))
        asking = time.process_time() - before
    ends: dict[int, float] = {}
    for answer in found.values():
        ends[answer["process"]] = max(ends.get(answer["process"], 0.0), answer["cpu_s"])
    return asking + max(ends.values()), [found[key]["head"] for key in tasks]


class ExecutorTimes(NamedTuple):
    """CPU milliseconds of a task that does nothing, and CPU seconds of so many runs of the agent.

    Attributes:
        pool_ms: of the process pool.
        dask_ms: of a local Dask cluster.
        runs: of the agent.
        one_s: of one process.
        two_s: of the longer of two, and of the one that asks.
        same: whether both gave the same heads.
    """

    pool_ms: float
    dask_ms: float
    runs: int
    one_s: float
    two_s: float
    same: bool


def time_executors(tasks: int = TASKS, runs: int = RUNS) -> ExecutorTimes:
    """Both figures."""
    pool, dask = (overhead_ms(name, tasks) for name in ("processes", "local"))
    (one, alone), (two, shared) = (longest_cpu(count, runs) for count in (1, 2))
    return ExecutorTimes(pool, dask, runs, one, two, alone == shared)


def executor_table(found: ExecutorTimes) -> str:
    """What was measured beside its bound."""
    heads = "the same heads" if found.same else "OTHER HEADS"
    ratio = found.one_s / found.two_s
    names = ("what", "CPU", "bound")
    rows = [
        ("a task that does nothing, process pool", f"{found.pool_ms:.2f} ms", "1 ms"),
        ("a task that does nothing, local Dask cluster", f"{found.dask_ms:.2f} ms", "15 ms"),
        (
            f"{found.runs} runs of the agent, one process against two",
            f"{found.one_s:.1f} s / {found.two_s:.1f} s = {ratio:.2f}, {heads}",
            "1.8",
        ),
    ]
    return table(names, rows)


if __name__ == "__main__":
    from benchmarks import executors  # workers import what they are given, and no script

    sys.stdout.write(executors.executor_table(executors.time_executors()) + "\n")
