"""Starts commands and programs from one process that has imported everything and loaded the compiled engine.

`python -m tests.commands.server SOCKET` listens until its standard input ends. Who connects hands over an
order, with the three standard streams; the process forks, tells the id of the new one and, once that is over,
how it ended. Who goes away before takes the new process along. It ends as any interpreter does: with its
threads joined and its streams flushed.
"""

import gc
import json
import os
import runpy
import signal
import socket
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from types import ModuleType
from typing import Any

LENGTH = 8  # bytes that say how long an order is
STREAMS = 3
DEFAULTS = (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


@dataclass(frozen=True)
class Order:
    """What is to be started, `thinktwice` or `python`, with its words; and what a process inherits."""

    name: str
    words: list[str]
    folder: str
    environment: dict[str, str]
    umask: int
    ignored: list[int]


def received(connection: socket.socket) -> tuple[Order, list[int]]:
    """The order of who has connected, and its standard streams."""
    length, streams, _, _ = socket.recv_fds(connection, LENGTH, STREAMS)
    rest = b""
    while len(rest) < int(length):
        read = connection.recv(int(length) - len(rest))
        if not read:
            raise EOFError("an order was cut off")
        rest += read
    return Order(**json.loads(rest)), streams


def become(order: Order, streams: list[int]) -> None:
    """Make of this forked process what a newly started one would be."""
    for stream, number in enumerate(streams):
        os.dup2(number, stream)
        os.close(number)
    for default in DEFAULTS:
        signal.signal(default, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for ignored in order.ignored:
        signal.signal(ignored, signal.SIG_IGN)
    os.environ.clear()
    os.environ.update(order.environment)
    time.tzset()
    os.umask(order.umask)
    os.chdir(order.folder)
    sys.argv = [order.name, *order.words]
    sys.modules["__main__"] = ModuleType("__main__")
    sys.stdin, sys.stdout, sys.stderr = opened(0, "r"), opened(1, "w"), opened(2, "w")
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def opened(number: int, mode: str) -> TextIOWrapper:
    """A standard stream as an interpreter opens it at its start."""
    bare = mode == "w" and bool(os.environ.get("PYTHONUNBUFFERED"))
    raw: Any = open(number, f"{mode}b", 0 if bare else -1, closefd=False)  # noqa: SIM115 - open to the end
    errors = "backslashreplace" if number == 2 else "strict"
    lines = number == 2 or os.isatty(number)
    return TextIOWrapper(raw, "utf-8", errors, line_buffering=lines, write_through=bare)


class Server:
    """Listens, forks, and tells how the forked ended.

    Args:
        path: of the socket.
    """

    def __init__(self, path: str) -> None:
        self._selector = DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(f"{path}.new")
        self._listener.listen(64)
        os.rename(f"{path}.new", path)  # whoever sees it can connect
        self._reading, self._writing = os.pipe()
        for end in (self._reading, self._writing):
            os.set_blocking(end, False)
        self._running: dict[int, socket.socket] = {}

    def serve(self) -> tuple[Order, list[int]] | None:
        """None once standard input has ended; in a forked process what it has to be."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # meant for who started us
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for heard in (self._listener, self._reading, 0):
            self._selector.register(heard, EVENT_READ)
        while True:
            for key, _ in self._selector.select():
                if key.fileobj == 0:
                    self._over()
                    return None
                if key.fileobj is self._listener:
                    if (given := self._forked()) is not None:
                        return given
                elif key.fileobj == self._reading:
                    self._reaped()
                else:
                    self._left(key.data)

    def _forked(self) -> tuple[Order, list[int]] | None:
        connection, _ = self._listener.accept()
        try:
            order, streams = received(connection)
        except (EOFError, ValueError):  # killed while it asked
            connection.close()
            return None
        pid = os.fork()
        if not pid:
            connection.close()
            self._forget()
            return order, streams
        for stream in streams:
            os.close(stream)
        self._running[pid] = connection
        self._selector.register(connection, EVENT_READ, pid)
        with suppress(OSError):
            connection.sendall(b"%d\n" % pid)
        return None

    def _reaped(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._reading, 4_096)
        for pid in list(self._running):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                connection = self._running.pop(pid)
                with suppress(KeyError):
                    self._selector.unregister(connection)
                with suppress(OSError), connection:
                    connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))

    def _left(self, pid: int) -> None:
        """Who asked for a command has gone: so does the command; its end is waited for like that of any."""
        if pid in self._running:
            self._selector.unregister(self._running[pid])
            os.kill(pid, signal.SIGKILL)

    def _over(self) -> None:
        for pid in self._running:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)

    def _forget(self) -> None:
        signal.set_wakeup_fd(-1)
        self._selector.close()
        self._listener.close()
        for connection in self._running.values():
            connection.close()
        os.close(self._reading)
        os.close(self._writing)


def load() -> None:
    """Everything that a command imports and compiles, once."""
    import alembic.command  # noqa: F401 - loaded before the forks
    import pandas as pd  # noqa: F401
    import pyarrow.csv
    import pyarrow.pandas_compat
    import pyarrow.parquet  # noqa: F401
    import scipy.special  # noqa: F401

    import services.store.store  # noqa: F401
    import worker.live.process
    import worker.live.with_slow_loop
    import worker.mcp_server.serving
    import worker.pages.report_html
    import worker.review.replanning
    import worker.review.rule_process
    import worker.slow_worker.service
    import worker.studies.ablation.runner
    import worker.studies.plan_check.plan_check
    import worker.studies.scenarios  # noqa: F401
    from worker.cli import app  # noqa: F401
    from worker.runs.warm_up import compile_engine

    compile_engine()
    if threading.active_count() > 1:
        raise RuntimeError(f"threads do not outlive a fork: {threading.enumerate()}")
    gc.collect()
    gc.freeze()


def run(name: str, words: list[str]) -> None:
    """The command, or what `python` is given: `-m` and a module, `-c` and a program, or a file.

    `-P` before them says what holds here anyway: no folder of its own comes first.
    """
    if name == "thinktwice":
        from thinktwice.__main__ import main as command

        command()
        return
    kind, *rest = words[1:] if words[0] == "-P" else words
    sys.argv = [kind, *(rest[1:] if kind in ("-m", "-c") else rest)]
    if kind == "-m":
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        exec(compile(rest[0], "<string>", "exec"), vars(sys.modules["__main__"]))
    else:
        sys.path.insert(0, str(Path(kind).resolve().parent))
        runpy.run_path(kind, run_name="__main__")


def main(path: str) -> None:
    """Serve; a forked process leaves it as the command."""
    server = Server(path)  # who comes early waits
    load()
    given = server.serve()
    if given is not None:
        become(*given)
        run(Path(given[0].name).name, given[0].words)


if __name__ == "__main__":
    main(sys.argv[1])
