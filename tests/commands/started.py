"""`thinktwice` and `python` as tests start them: scripts that have them forked from a process that is warm.

A new interpreter needs one to three seconds until the engine is loaded; the fork needs hundredths of them.
Genuine starts (`.venv/bin/thinktwice`, `python -m thinktwice`) stay where a test is about the start itself:
imports, what Ctrl-C finds there, variables that are read at import, limits of the process, SIGKILL.
"""

import atexit
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tools.docs_examples import shell_environment
from tools.docs_pages import ROOT

# What a shell or a test starts. It stands for the command: its streams, signals, exit code.
SCRIPT = """#!{python} -IS
import contextlib, json, os, signal, socket, sys

TOLD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
ignored = [number for number in TOLD if signal.getsignal(number) == signal.SIG_IGN]
early, pid = [], None

def tell(number, frame):
    early.append(number) if pid is None else send(number)

def send(number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

for number in TOLD:
    signal.signal(number, tell)
umask = os.umask(0)
os.umask(umask)
order = json.dumps({{
    "name": sys.argv[0], "words": sys.argv[1:], "folder": os.getcwd(),
    "environment": dict(os.environ), "umask": umask, "ignored": ignored,
}}).encode()
with socket.socket(socket.AF_UNIX) as server:
    server.connect({socket!r})
    socket.send_fds(server, [b"%8d" % len(order)], [0, 1, 2])
    server.sendall(order)
    said = server.makefile("rb")
    pid = int(said.readline())
    for number in early:
        send(number)
    code = int(said.readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
os._exit(code)
"""


@cache
def _folder() -> Path:
    """Where the scripts are; the first call starts the process that forks, which ends with this one."""
    folder = Path(tempfile.mkdtemp(prefix="thinktwice-"))
    socket = folder / "socket"
    words = [sys.executable, "-m", "tests.commands.server", str(socket)]
    warm = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE)
    atexit.register(_end, warm, folder)
    for name in ("thinktwice", "python"):
        script = folder / name
        script.write_text(SCRIPT.format(python=sys.executable, socket=str(socket)), "utf-8")
        script.chmod(0o700)
    while not socket.exists():
        assert warm.poll() is None, "the process that forks has not started"
        time.sleep(0.01)
    return folder


def _end(warm: "subprocess.Popen[bytes]", folder: Path) -> None:
    warm.communicate()
    shutil.rmtree(folder)


def thinktwice() -> str:
    """The path of the command."""
    return str(_folder() / "thinktwice")


def python() -> str:
    """The path of a `python` that takes `-m`, `-c` or a file, and knows our modules already."""
    return str(_folder() / "python")


def run_to_end(words: Sequence[str], folder: Path, **given: Any) -> "subprocess.CompletedProcess[Any]":
    """A process in a folder, with no setting from outside; `given` goes to `subprocess.run`."""
    environment = given.pop("env", None) or shell_environment({})
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, encoding="utf-8", check=False, **given
    )


def on_path() -> dict[str, str]:
    """A variable under which a shell finds these two first, and other commands of the environment."""
    rest = [str(_folder()), sysconfig.get_path("scripts"), os.environ.get("PATH", "")]
    return {"PATH": os.pathsep.join(rest)}
