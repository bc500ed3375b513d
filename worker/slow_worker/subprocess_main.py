"""The slow loop of a traded run in a process of its own: it looks when told to, and tells what happened.

`python -m worker.slow_worker.subprocess_main`, started by `worker.slow_worker.subprocess`; one JSON object a
line. The first line on standard input is a `ChildJob`, each later one `{"look": NS}`. Standard output gets
`{"note": [NAME, DETAIL]}`, at the end of a look `{"looked": BOOL}` or `{"failed": TEXT, "retryable": BOOL}`.
The end of standard input is the end of the process that trades, or its wish: the lease is released.
"""

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

from schemas.errors import StoreError
from schemas.settings import Settings
from services.store import open_store
from worker.slow_worker.slot_runner import RunOfSlots, WorkerContext
from worker.slow_worker.wiring import assemble_worker
from worker.slow_worker.worker import SlowWorker

GIVES_WAY = 10  # to the process that trades: a report may take seconds longer, a bar may not
LONGEST_LINE = 1 << 24


@dataclass(frozen=True)
class ChildJob:
    """Whose slow loop is looked at, and as whom.

    Attributes:
        address: of the store, with its password: it goes through a pipe and stands on no command line.
        settings: payload of the run's settings.
        lease_ms: how long others wait for a process that is gone.
        command_s: longest wait for the answer of a server to one command.
    """

    address: str
    run_id: str
    settings: dict[str, Any]
    owner: str
    lease_ms: int
    command_s: float | None = None


class SlowLoopChild:
    """Looks, on a store that may be away when it is opened.

    Attributes:
        now: the present as the process that trades told it with the last look.
    """

    def __init__(self, job: ChildJob, out: int) -> None:
        """Tell the file descriptor `out`."""
        self._job = job
        self._out = out
        self._worker: SlowWorker | None = None
        self._open = AsyncExitStack()
        self.now = 0

    async def look(self, now: int) -> None:
        """One look as of `now`, told with its end."""
        self.now = now
        try:
            worker = self._worker = self._worker or await self._make()
            self._tell(looked=await worker.look())
        except StoreError as error:
            self._tell(failed=str(error), retryable=error.retryable)

    async def close(self) -> None:
        """Release lease and store."""
        if self._worker is not None:
            with suppress(StoreError):
                await self._worker.close()
        await self._open.aclose()

    async def _make(self) -> SlowWorker:
        job = self._job
        store = await open_store(job.address, create=False, command_s=job.command_s)
        await self._open.enter_async_context(store)
        run = RunOfSlots(job.run_id, Settings.model_validate(job.settings))
        context = WorkerContext(store, run, self, self._note, job.owner, job.lease_ms)
        return assemble_worker(context, traded=True)

    def _note(self, name: str, detail: dict[str, Any]) -> None:
        self._tell(note=[name, detail])

    def _tell(self, **what: Any) -> None:
        # Nothing listens once the process that trades is gone; what was begun is finished all the same.
        with suppress(BrokenPipeError):
            os.write(self._out, json.dumps(what, ensure_ascii=False, allow_nan=False).encode() + b"\n")


def serve() -> None:
    """Look whenever standard input says so, until it ends."""
    out = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what is printed is no answer
    child = SlowLoopChild(ChildJob(**json.loads(sys.stdin.readline())), out)
    with asyncio.Runner() as runner:
        try:
            for line in sys.stdin:
                runner.run(child.look(json.loads(line)["look"]))
        finally:
            runner.run(child.close())


if __name__ == "__main__":
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)  # meant for the process that trades; it ends our input in time
    os.nice(GIVES_WAY)
    serve()
