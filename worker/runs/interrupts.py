"""Ctrl-C, SIGTERM and a terminal that is closed, heard differently by what there is to lose.

While a command starts or ends there is nothing: it leaves at once. Once it has opened something, Ctrl-C
unwinds it. During a run both signals are a request that is honoured between bars, where everything recorded
is whole; the second signal breaks off wherever the program is. A process that trades or reflects takes a
closed terminal (SIGHUP) for a request as well, and prints nothing from then on.
"""

import os
import signal
import stat
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import FrameType
from typing import Any, NoReturn, Self, TypeVar

Result = TypeVar("Result")


def leave_at_once(signum: int, frame: FrameType | None) -> NoReturn:
    """Say so in one line and leave; nothing is raised that an import could swallow or print."""
    line = f"thinktwice: stopped by {signal.Signals(signum).name}\n"
    os.write(2, (_clear_line() + line).encode())
    os._exit(128 + signum)


def _clear_line() -> str:
    """What a bar and the echo of the key leave on a terminal, taken away; its cursor is shown again."""
    if not os.isatty(2):
        return ""
    return "\n" if os.environ.get("TERM", "dumb") == "dumb" else "\r\x1b[2K\x1b[?25h"


def unwind_on_ctrl_c() -> None:
    """From here on Ctrl-C is raised, so that what was opened is closed."""
    if signal.getsignal(signal.SIGINT) is leave_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def nothing_to_lose() -> AbstractContextManager[None]:
    """Ctrl-C leaves at once: nothing is open yet, and a long import or compilation hears nothing else."""
    return _on_ctrl_c(leave_at_once)


def interrupt_at_once() -> AbstractContextManager[None]:
    """Ctrl-C is raised in the middle of work that never yields to the event loop."""
    return _on_ctrl_c(signal.default_int_handler)


@contextmanager
def _on_ctrl_c(handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def run_async(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a command's work in an event loop; Ctrl-C cancels it."""
    import asyncio

    unwind_on_ctrl_c()
    return asyncio.run(work)


def hear_stops(heard: Callable[[signal.Signals], None]) -> None:
    """Tell of SIGINT, SIGTERM and SIGHUP in the running event loop; one that `nohup` ignores is not told."""
    import asyncio

    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, heard, signum)

    def note_closed(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the shell and the kernel may each send one
        _leave_terminal()
        if not loop.is_closed():
            loop.call_soon_threadsafe(heard, signal.SIGHUP)

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, note_closed)


def _leave_terminal() -> None:
    """Print nowhere: a terminal that is gone answers each line with an error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for printed in (1, 2):
        if stat.S_ISCHR(os.fstat(printed).st_mode):
            os.dup2(nowhere, printed)
    os.close(nowhere)


class RunInterrupted(BaseException):
    """The operator asked to stop. Not an `Exception`: nothing that handles errors may take it for one."""

    def __init__(self, signum: int, run_id: str | None = None) -> None:
        kept = f": run {run_id} is kept up to here, `thinktwice verify {run_id}` accepts it" if run_id else ""
        super().__init__(f"stopped by {signal.Signals(signum).name}{kept}")
        self.signum, self.run_id = signum, run_id
        self.exit_code = 128 + signum


class Interrupts:
    """Context in which the two signals only raise a flag; `check` turns the flag into `RunInterrupted`."""

    def __init__(self, unit: str = "bar") -> None:
        self._unit = unit
        self._signum: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._before[signum] = signal.signal(signum, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def check(self) -> None:
        """Stop here if a signal came.

        Raises:
            RunInterrupted: one did.
        """
        if self._signum is not None:
            raise RunInterrupted(self._signum)

    def _note(self, signum: int, frame: FrameType | None) -> None:
        self._signum = signum
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stderr.write(f"\nstopping after this {self._unit}; press Ctrl-C again to stop at once\n")
