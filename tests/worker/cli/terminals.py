"""Commands in a pseudo-terminal: what a person at a keyboard would see, and Ctrl-C as the key sends it."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.commands.started import on_path
from tools.docs_examples import shell_environment

LONGEST_S = 280.0
# What our own bars and colours send: style, cursor on and off, a line cleared, a line up; nothing else.
OURS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[hl]|2K|1A)")
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")
# The terminal becomes that of the command, so that its keys and its end reach it, whoever ignores them here.
TAKE = (
    "import fcntl, os, signal, sys, termios\n"
    "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


@dataclass(frozen=True)
class Seen:
    """How a command ended, and every character that came to its terminal."""

    code: int
    raw: str

    @property
    def text(self) -> str:
        """The characters without what our own bars and colours send."""
        return OURS.sub("", self.raw).replace("\r", "\n")

    @property
    def lines(self) -> list[str]:
        """Lines with something on them, as they were drawn one after the other."""
        return [line.rstrip() for line in self.text.splitlines() if line.strip()]

    @property
    def end(self) -> str:
        """The last of it, for a message that itself acts on no terminal."""
        return repr(self.raw[-3_000:])

    def demand_clean(self) -> None:
        """Fail over a traceback, or over anything on the terminal that is not ours."""
        assert "Traceback" not in self.raw, self.end
        assert "Exception ignored" not in self.raw, self.end
        assert UNSEEN.search(self.text) is None, self.end


@contextmanager
def _terminal(columns: int) -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        yield ours, theirs
    finally:
        os.close(ours)


def in_terminal(
    words: Sequence[str],
    folder: Path,
    extra: Mapping[str, str] | None = None,
    *,
    columns: int = 120,
    fresh: bool = False,
    press: Callable[[str, int], bool] | None = None,
) -> Seen:
    """Run a command in a terminal of its own.

    Args:
        words: of the command.
        folder: where it runs.
        extra: environment variables; `COLUMNS`, `NO_COLOR` and their like are not inherited.
        columns: width of the terminal.
        fresh: whether `thinktwice` starts with a new interpreter, and not by a fork of a warm one.
        press: asked with what was seen and the process id until it says yes; then Ctrl-C is pressed once.
    """
    environment = shell_environment({"TERM": "xterm-256color"})
    for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        environment.pop(name, None)
    environment |= ({} if fresh else on_path()) | dict(extra or {})
    with _terminal(columns) as (ours, theirs):
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", TAKE, *words],
            cwd=folder,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        try:
            raw = _read(ours, process.pid, press)
            return Seen(process.wait(LONGEST_S), raw)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()


def _read(ours: int, pid: int, press: Callable[[str, int], bool] | None) -> str:
    data, ends = b"", time.monotonic() + LONGEST_S
    while time.monotonic() < ends:
        if press is not None and press(data.decode(errors="replace"), pid):
            os.write(ours, b"\x03")
            press = None
        if not select.select([ours], [], [], 0.01)[0]:
            continue
        try:
            found = os.read(ours, 65_536)
        except OSError:  # the last process has closed the terminal
            break
        if not found:
            break
        data += found
    return data.decode(errors="replace")
