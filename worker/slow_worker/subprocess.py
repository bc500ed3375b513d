"""Looks of the slow loop that another process carries out, so that the event loop which trades never waits.

A report over ten thousand episodes takes seconds of pure computing. In a thread it would share the
interpreter's lock with the bars; here only lines of JSON come back. The process is started at the first look
and again after it died; a slot that kills it is given up by the runner after its attempts.
"""

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from schemas.errors import InfrastructureError, StoreError
from services.ports import Clock
from worker.operations.logs import EventSink
from worker.slow_worker.slot_runner import MOST_ATTEMPTS
from worker.slow_worker.subprocess_main import LONGEST_LINE, ChildJob

# -P: a folder `worker` where the command was typed is not this one.
COMMAND = (sys.executable, "-P", "-m", f"{__package__}.subprocess_main")
# A library that computes on every core would take them all from the bars.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
END_S = 10.0


class ChildExited(InfrastructureError):
    """The process that looks ended within a look; `retryable` until it has done so too often in a row."""


class SlowLoopSubprocess:
    """What the waker wakes where a process trades: each look is one question to a process of its own.

    Args:
        job: whose slow loop.
        clock: the present, told with each look.
        note: told of everything that happens there.
        command: what starts the process.
    """

    def __init__(
        self, job: ChildJob, clock: Clock, note: EventSink, command: Sequence[str] = COMMAND
    ) -> None:
        self._job = job
        self._clock = clock
        self._note = note
        self._command = command
        self._process: Process | None = None
        self._deaths = 0

    @property
    def pid(self) -> int | None:
        """The process that looks; None before the first look and after its end."""
        return None if self._process is None else self._process.pid

    async def look(self) -> bool:
        """Whether the process held the lease and has looked to the end.

        Raises:
            StoreError: the store failed there.
            ChildExited: the process is gone; the next look starts another one, unless too many have died.
        """
        process = self._process or await self._start()
        try:
            await _write(process, {"look": self._clock.now})
            async for payload in self._answers(process):
                if "looked" in payload or "failed" in payload:
                    self._deaths = 0
                    if "failed" in payload:
                        raise StoreError(payload["failed"], retryable=payload["retryable"])
                    return bool(payload["looked"])
        except asyncio.CancelledError:
            process.kill()  # who is not waited for ends now; its claim is left for the next worker
            self._process = None
            raise
        raise await self._death(process)

    async def close(self) -> None:
        """Let the process release its lease and end."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                async for _ in self._answers(process):
                    pass
                await process.wait()
        if process.returncode is None:
            process.kill()
            await process.wait()

    async def _start(self) -> Process:
        process = self._process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=os.environ | ONE_THREAD,
            limit=LONGEST_LINE,
            start_new_session=True,  # Ctrl-C is meant for the process that trades
        )
        await _write(process, asdict(self._job))
        return process

    async def _answers(self, process: Process) -> AsyncIterator[dict[str, Any]]:
        while process.stdout is not None and (line := await process.stdout.readline()):
            payload = json.loads(line)
            if "note" in payload:
                self._note(*payload["note"])
            yield payload

    async def _death(self, process: Process) -> ChildExited:
        self._process = None
        self._deaths += 1
        code = await process.wait()
        errors = b"" if process.stderr is None else await process.stderr.read()  # a few lines in a life
        *_, last = [b"without a word", *errors.splitlines()]  # the line of a traceback that says what it was
        # A slot that kills its process is given up after so many attempts, by the process after those.
        again = self._deaths <= MOST_ATTEMPTS
        return ChildExited(
            f"the process of the slow loop ended with {code} ({last.decode(errors='replace').strip()}), "
            f"{self._deaths} times in a row: "
            + ("the next look starts another one" if again else "see what ends it, then start the worker"),
            retryable=again,
        )


async def _write(process: Process, what: object) -> None:
    """A line to a process that may have ended: then its output ends, too."""
    if process.stdin is not None:
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(json.dumps(what, allow_nan=False).encode() + b"\n")
            await process.stdin.drain()
