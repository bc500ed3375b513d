"""Worker processes that want the same slots, one of which is killed or frozen while it leads.

`python -m tests.worker.slow_worker.rivals JOB` with a JSON object: `address`, `run_id`, `workers`, `how`
(SIGKILL or SIGSTOP), `lease_ms`, `days`, `folder`. Whoever first stands between a finished reflection and its
report for the second time sends itself the signal; a frozen one goes on once another has taken over. Every
worker writes what it tells, with the system's monotonic time, into a file of the folder. Prints how each
ended.
"""

import asyncio
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from services.store import open_store
from tests.worker.slow_worker.prepared import DAY, START, Watched

PAUSE_S = 0.02
LONGEST_S = 120.0


class Leads:
    """Signals its own process at its second reflection, if nobody was signalled before."""

    def __init__(self, folder: Path, how: str) -> None:
        self._mark = folder / "victim"
        self._signal = signal.Signals[how]
        self._reflections = 0

    def reach(self, point: str) -> None:
        """Count reflections."""
        self._reflections += point == "reflected"
        if point != "reflected" or self._reflections != 2:
            return
        try:
            mark = os.open(self._mark, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return
        os.write(mark, json.dumps({"pid": os.getpid(), "at": time.monotonic()}).encode())
        os.kill(os.getpid(), self._signal)


class Rival(Watched):
    """A worker that writes down what it tells."""

    file: Any = None

    def _note(self, name: str, payload: dict[str, Any]) -> None:
        super()._note(name, payload)
        line = {"pid": os.getpid(), "at": time.monotonic(), "kind": name}
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()


async def work(job: dict[str, Any], number: int) -> None:
    """Look at every day, standing by as long as somebody else leads."""
    folder = Path(job["folder"])
    with (folder / f"{number}.jsonl").open("w", encoding="utf-8") as file:
        async with await open_store(job["address"], create=True, timeout_s=30.0) as store:
            one = Rival(store, job["run_id"], lease_ms=job["lease_ms"], points=Leads(folder, job["how"]))
            one.file = file
            for day in range(1, job["days"] + 1):
                while not await one.look_at(START + day * DAY):  # noqa: ASYNC110 - another process leads
                    await asyncio.sleep(PAUSE_S)


def started(job: dict[str, Any], number: int) -> int:
    """Process id of a worker."""
    child = os.fork()
    if child:
        return child
    asyncio.run(work(job, number))
    os._exit(0)


def read_shown(folder: Path) -> list[dict[str, Any]]:
    """What all workers told, in time."""
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_text("utf-8").splitlines()]
    return sorted((json.loads(line) for line in lines), key=lambda entry: float(entry["at"]))


def woken(folder: Path) -> None:
    """Let the frozen worker go on once another has taken the lease."""
    until = time.monotonic() + LONGEST_S
    while time.monotonic() < until:
        mark = folder / "victim"
        victim = json.loads(mark.read_text() or "null") if mark.exists() else None
        if victim is not None and any(
            event["kind"] == "lease_taken" and event["at"] > victim["at"] and event["pid"] != victim["pid"]
            for event in read_shown(folder)
        ):
            os.kill(victim["pid"], signal.SIGCONT)
            return
        time.sleep(PAUSE_S)


def main(job: dict[str, Any]) -> list[int]:
    """Exit codes of all workers."""
    children = [started(job, number) for number in range(job["workers"])]
    if job["how"] == "SIGSTOP":
        woken(Path(job["folder"]))
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
