"""The worker as a process: waker and watchdog until a signal says stop, then an orderly end.

SIGTERM, SIGINT and a closed terminal end it after the present look: what was begun is finished, the lease is
released. A second signal does not wait; the claim it leaves is finished by the next worker.
"""

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

from schemas.errors import InfrastructureError, StoreError
from worker.operations.logs import EventSink
from worker.runs.interrupts import hear_stops
from worker.slow_worker.waker import Waker

OK, CTRL_C, HUNG_UP = 0, 130, 129
EXIT_CODES = {signal.SIGTERM: OK, signal.SIGINT: CTRL_C, signal.SIGHUP: HUNG_UP}


class Looks(Protocol):
    """What is woken every period."""

    async def look(self) -> bool:
        """Whether it had the lease and has looked to the end."""
        ...

    async def close(self) -> None:
        """Release the lease."""
        ...


class StopSignals:
    """The signals that ask a worker to stop; the second one does not wait."""

    def __init__(self) -> None:
        self.first: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
        self.second: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()

    def listen(self) -> None:
        """Take SIGTERM, SIGINT and SIGHUP of this process."""
        hear_stops(self.note_signal)

    def note_signal(self, signum: signal.Signals) -> None:
        """A signal came."""
        waiting = self.first if not self.first.done() else self.second
        if not waiting.done():
            waiting.set_result(signum)


async def serve(
    worker: Looks,
    stop: StopSignals,
    note: EventSink,
    *,
    period_s: float,
    waker_of: Callable[..., Waker] = Waker,
) -> int:
    """Exit code after a stop signal: 0 for SIGTERM, 130 for SIGINT, 129 for SIGHUP.

    Raises:
        HeartbeatLost: the waker died and could not be woken.
        ThinktwiceError: a look failed for good; a store that may come back, or a process that can be started
            again, is tried again.
    """
    waker = waker_of(_patient(worker, note), period_s, note)
    watching = asyncio.create_task(waker.watch())
    waker.start()
    note("worker_started", {"period_s": waker.period_s})
    try:
        await _first(stop.first, watching, waker.failed)
        note("stopping", {"signal": stop.first.result().name})
        ending = asyncio.create_task(waker.stop())
        await _first(ending, stop.second, watching)
        waker.abandon()
        await ending
        if waker.failed.done():
            await waker.failed
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        with suppress(StoreError):
            await worker.close()
    note("stopped", {})
    return EXIT_CODES[stop.first.result()]


async def _first(*waiting: "asyncio.Future[Any]") -> None:
    """Wait for the first of several; what it raised is raised here."""
    done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for ended in done:
        await ended


def _patient(worker: Looks, note: EventSink) -> Callable[[], Awaitable[None]]:
    """A look that survives a store which may come back, and a process which can be started again."""

    async def look() -> None:
        try:
            await worker.look()
        except InfrastructureError as error:
            if not error.retryable:
                raise
            away = isinstance(error, StoreError)
            note("store_away" if away else "look_failed", {"reason": str(error)})

    return look
