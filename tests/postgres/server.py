"""A PostgreSQL server for one test process: unprivileged, on loopback, with a password, gone with its parent.

Nothing that is written to it matters: fsync is off and its folder is removed at the end. When the parent is
killed the kernel tells the server to quit (Linux), and the next server removes the folder that was left.
"""

import ctypes
import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

from tests.postgres.binaries import Binaries, moved

PREFIX = "thinktwice-postgres-"
READY = "database system is ready to accept connections"
USER = "postgres"
NOBODY = "nobody"
START_S = 60.0
TRIES = 5
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "60",
    "autovacuum": "off",
    "max_wal_senders": "0",
    "wal_level": "minimal",
}
KEEPS = SETTINGS | {"synchronous_commit": "on"}  # of a server that is killed while others look
PR_SET_PDEATHSIG = 1


class ServerFailed(Exception):
    """A program of the server ended with an error; the message carries the end of what it said."""


@dataclass(frozen=True)
class Server:
    """A running server."""

    port: int
    password: str
    pid: int

    def url(self, database: str = "postgres") -> str:
        """The address of a database on it."""
        return f"postgresql://{USER}:{self.password}@127.0.0.1:{self.port}/{database}"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder that others may enter, removed at the end; folders of killed processes are removed first."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        owner = re.match(rf"{PREFIX}(\d+)-", left.name)
        if owner and not _alive(int(owner[1])):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running(binaries: Binaries) -> Iterator[Server]:
    """A new server; at the end it is stopped without a goodbye and everything it wrote is removed.

    Raises:
        ServerFailed: the server was not made or did not come up.
    """
    with scratch_folder() as folder:
        binaries = moved(binaries, folder / "programs") if _is_root() else binaries
        password = secrets.token_hex(16)
        process, port = _up(binaries, _initialised(binaries, folder, password))
        # A pipe that nobody empties would stop the server after 64 kB of messages.
        reader = threading.Thread(target=deque, args=(_messages(process), 0), daemon=True)
        reader.start()
        try:
            yield Server(port, password, process.pid)
        finally:
            process.send_signal(signal.SIGQUIT)
            process.wait()
            reader.join()
            _messages(process).close()


class Troubled:
    """A server that is stopped, frozen and started again while others work on it.

    What it acknowledges outlives its own death: commits reach the operating system before they are answered.
    """

    def __init__(self, binaries: Binaries, data: Path, password: str) -> None:
        self._binaries = binaries
        self._data = data
        self._password = password
        self._frozen: list[int] = []
        self._process, self._port = _up(binaries, data, KEEPS)
        self._read()

    def url(self, database: str = "postgres") -> str:
        """The address of a database on it; the same after every start."""
        return Server(self._port, self._password, self._process.pid).url(database)

    def stop(self, how: Literal["fast", "immediate"]) -> None:
        """Stop as `pg_ctl stop -m` does: connections are closed, or everybody is killed."""
        self._process.send_signal(signal.SIGINT if how == "fast" else signal.SIGQUIT)
        self._process.wait()
        self._reader.join()
        _messages(self._process).close()

    def start(self) -> None:
        """Start again on the same port."""
        self._process, _ = _launched(self._binaries, self._data, KEEPS, self._port)
        self._read()

    def freeze(self) -> None:
        """Stop every process of the server, without a word to anybody."""
        os.kill(self._process.pid, signal.SIGSTOP)
        self._frozen = [self._process.pid, *_children(self._process.pid)]
        for pid in self._frozen[1:]:
            os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        for pid in self._frozen:
            os.kill(pid, signal.SIGCONT)
        self._frozen = []

    def _read(self) -> None:
        self._reader = threading.Thread(target=deque, args=(_messages(self._process), 0), daemon=True)
        self._reader.start()


@contextmanager
def troubled(binaries: Binaries) -> Iterator[Troubled]:
    """A new server that can be stopped and started; gone at the end, like that of `running`."""
    with scratch_folder() as folder:
        binaries = moved(binaries, folder / "programs") if _is_root() else binaries
        password = secrets.token_hex(16)
        server = Troubled(binaries, _initialised(binaries, folder, password), password)
        try:
            yield server
        finally:
            server.thaw()
            server.stop("immediate")


def _children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _initialised(binaries: Binaries, folder: Path, password: str) -> Path:
    data, secret = folder / "data", folder / "secret"
    secret.touch(mode=0o600)
    secret.write_text(password, "utf-8")
    data.mkdir(mode=0o700)
    _give_away(secret, data)
    options = ["--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions"]
    command = [binaries.program("initdb"), f"--pgdata={data}", f"--username={USER}", f"--pwfile={secret}"]
    done = subprocess.run([*command, *options], **_child(folder), check=False)
    secret.unlink()
    if done.returncode:
        raise ServerFailed(f"initdb ended with {done.returncode}: {done.stderr.strip()}")
    return data


def _up(
    binaries: Binaries, data: Path, settings: Mapping[str, str] = SETTINGS
) -> tuple[subprocess.Popen[str], int]:
    for _ in range(TRIES - 1):
        try:
            return _launched(binaries, data, settings)
        except ServerFailed:
            # Another process may have taken the port between our look and the server's.
            continue
    return _launched(binaries, data, settings)


def _launched(
    binaries: Binaries, data: Path, settings: Mapping[str, str] = SETTINGS, again_on: int | None = None
) -> tuple[subprocess.Popen[str], int]:
    port = again_on or _free_port()
    command = [binaries.program("postgres"), "-D", str(data), "-p", str(port)]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    with warnings.catch_warnings():
        # Python warns of a fork beside threads; the function run between fork and exec takes no lock.
        warnings.simplefilter("ignore", DeprecationWarning)
        process = subprocess.Popen(command, **_child(data), preexec_fn=_quit_with(os.getpid()))
    _until_ready(process)
    return process, port


def _until_ready(process: subprocess.Popen[str]) -> None:
    texts: deque[str] = deque(maxlen=20)
    lines = _messages(process)
    too_late = threading.Timer(START_S, process.kill)
    too_late.start()
    try:
        for line in lines:
            texts.append(line)
            if READY in line:
                return
    finally:
        too_late.cancel()
    process.wait()
    lines.close()
    raise ServerFailed(f"the server did not come up within {START_S:g} s: {''.join(texts).strip()}")


def _messages(process: subprocess.Popen[str]) -> IO[str]:
    if process.stderr is None:
        raise ServerFailed("the server was started without a pipe for its messages")
    return process.stderr


def _child(folder: Path) -> dict[str, Any]:
    environment = {"PATH": os.defpath, "LC_ALL": "C", "LANG": "C", "TZ": "UTC", "HOME": str(folder)}
    common = {"env": environment, "cwd": folder, "text": True}
    common |= {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    if not _is_root():
        return common
    nobody = pwd.getpwnam(NOBODY)
    return common | {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _quit_with(parent: int) -> Callable[[], None] | None:
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def ask() -> None:
        # After the change of user, which would clear it.
        if prctl(PR_SET_PDEATHSIG, signal.SIGQUIT) or os.getppid() != parent:
            os._exit(1)

    return ask


def _give_away(*paths: Path) -> None:
    if _is_root():
        nobody = pwd.getpwnam(NOBODY)
        for path in paths:
            os.lchown(path, nobody.pw_uid, nobody.pw_gid)


def _is_root() -> bool:
    return os.geteuid() == 0


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
