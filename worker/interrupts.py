"""Ctrl-C and SIGTERM as a request that is honoured between bars, where everything recorded is whole.

The second signal gets the usual treatment: it breaks off wherever the program stands.
"""

import signal
import sys
from types import FrameType, TracebackType
from typing import Any, Self


class RunInterrupted(BaseException):
    """The operator asked to stop. Not an `Exception`: nothing that handles errors may take it for one."""

    def __init__(self, signum: int, run_id: str | None = None) -> None:
        kept = f": run {run_id} is kept up to here, `thinktwice verify {run_id}` accepts it" if run_id else ""
        super().__init__(f"stopped by {signal.Signals(signum).name}{kept}")
        self.signum = signum
        self.exit_code = 128 + signum


class Interrupts:
    """Context in which the two signals only raise a flag; `check` turns the flag into `RunInterrupted`."""

    def __init__(self) -> None:
        self._signum: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._before[signum] = signal.signal(signum, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
        sys.stderr.write("\nstopping after this bar; press Ctrl-C again to stop at once\n")
