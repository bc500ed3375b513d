"""What executors cost, and what two processes are worth: `python -m benchmarks.executors`.

Everything is in CPU seconds, which a busy machine does not change. Overhead is that of all processes together
over tasks that do nothing. The ratio of runs of the agent is the CPU of one process over the longest of two
and what the asking process adds: how much sooner two free processors are done, the start of the workers
included.
"""

import argparse
import os
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import psutil

from schemas.settings import Settings
from services.playbooks.loader import load_playbooks
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both figures."""
    parser = argparse.ArgumentParser(description="Overhead of executors, and two processes against one.")
    parser.add_argument("--tasks", type=int, default=TASKS, help="tasks that do nothing")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of the agent; 0 leaves them out")
    given = parser.parse_args(arguments)
    for name in ("processes", "local"):
        shown = overhead_ms(name, given.tasks)
        sys.stdout.write(f"{name}: {shown:.2f} ms of CPU a task, {given.tasks:,} tasks\n")
    if given.runs:
        (one, alone), (two, shared) = (longest_cpu(count, given.runs) for count in (1, 2))
        same = "the same heads" if alone == shared else "OTHER HEADS"
        sys.stdout.write(
            f"{given.runs} runs of the agent: one process {one:.1f} s, the longer of two {two:.1f} s: "
            f"{one / two:.2f}, {same}\n"
        )
    return 0


if __name__ == "__main__":
    from benchmarks import executors  # workers import what they are given, and no script

    sys.exit(executors.main())
