"""An event loop whose time is virtual: it jumps to the next timer as soon as nothing is left to do.

Days of sleeping cost no time, and what happens depends on the code alone. Threads (the SQLite driver has one
for each connection) are waited for in real time: until they are done, virtual time stands still. A loop on
which nobody is ever woken again raises `Deadlock` instead of hanging.
"""

import asyncio
import selectors
import sys
from collections.abc import Coroutine
from typing import Any

LONGEST_THREAD_S = 60.0


class Deadlock(Exception):
    """Everybody waits, no timer is set and no thread is at work."""


class _Jumping(selectors.DefaultSelector):
    """Waits for nothing but threads; instead of waiting for time it moves it."""

    loop: "VirtualLoop"

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0)
        if found or (timeout is not None and timeout <= 0):
            return found
        if self.loop.threads:
            woken = super().select(LONGEST_THREAD_S)
            if not woken:
                raise Deadlock(f"a thread has not answered for {LONGEST_THREAD_S:g} s")
            return woken
        if timeout is None:
            raise Deadlock("everybody waits for somebody, and no timer is set")
        self.loop.seconds += timeout
        return found


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in virtual time.

    Attributes:
        seconds: virtual time since the loop was made.
        threads: futures that a thread of a SQLite store will answer.
    """

    def __init__(self) -> None:
        selector = _Jumping()
        selector.loop = self
        self.seconds = 0.0
        self.threads: set[asyncio.Future[Any]] = set()
        super().__init__(selector)

    def time(self) -> float:
        return self.seconds

    def create_future(self) -> asyncio.Future[Any]:
        future, caller = super().create_future(), sys._getframe(1)
        joins = caller.f_code.co_name == "shutdown_default_executor"  # which waits for the threads to end
        if joins or caller.f_globals.get("__name__") == "services.store.sqlite_engine":
            self.threads.add(future)
            future.add_done_callback(self.threads.discard)
        return future

    def run_in_executor(self, *given: Any) -> asyncio.Future[Any]:  # type: ignore[override]  # handed on
        future = super().run_in_executor(*given)
        self.threads.add(future)
        future.add_done_callback(self.threads.discard)
        return future


def run_virtually(main: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine returns on a loop of its own in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
