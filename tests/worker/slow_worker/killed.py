"""Worker processes for tests: each looks at given days, and kills itself at a named point.

`python -m tests.worker.slow_worker.killed JOBS` with a JSON list of [DB, RUN, POINT, LEASE_MS, FIRST, LAST]
starts one process for each, after the imports, and prints how each ended. POINT `-` never comes. The lease is
given back after every look, so that several processes take turns; each looks at each day.
"""

import asyncio
import json
import os
import signal
import sys
from typing import Any

from services.store import open_store
from tests.worker.slow_worker.prepared import DAY, START, Watched


class KilledAt:
    """SIGKILL at one point."""

    def __init__(self, point: str) -> None:
        self._point = point

    def reach(self, point: str) -> None:
        if point == self._point:
            os.kill(os.getpid(), signal.SIGKILL)


async def work(address: str, run_id: str, point: str, lease_ms: int, days: range) -> None:
    async with await open_store(address, create=True, timeout_s=30.0) as store:
        one = Watched(store, run_id, lease_ms=lease_ms, hold_ms=lease_ms, points=KilledAt(point))
        for day in days:
            while not await one.look_at(START + day * DAY):
                pass
            await one.worker.close()


def started(job: list[Any]) -> int:
    """Process id of a job."""
    child = os.fork()
    if child:
        return child
    address, run_id, point, lease_ms, first, last = job
    asyncio.run(work(address, run_id, point, lease_ms, range(first, last + 1)))
    os._exit(0)


if __name__ == "__main__":
    children = [started(job) for job in json.loads(sys.argv[1])]
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]))
