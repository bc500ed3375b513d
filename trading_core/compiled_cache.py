"""Where compiled code is cached.

One folder per state of the sources, so that a stale result cannot be loaded.

numba keys its disk cache on the file of the compiled function only; an edited helper in another file leaves
the old result in use. The folder name therefore carries the hash of every source file of the engine.
"""

import atexit
import hashlib
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import platformdirs

ROOM = Path(__file__).resolve().parent
OF_THIS_PROCESS = "thinktwice-numba-once-"


def source_hash(room: Path = ROOM) -> str:
    """First 16 hex digits of the SHA-256 over all Python sources below `room`, in path order."""
    digest = hashlib.sha256()
    for path in sorted(room.rglob("*.py")):
        digest.update(path.relative_to(room).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_parent() -> Path:
    """Where folders of what can be made again lie, whether or not it is there."""
    ours, of_numba = (os.environ.get(name) for name in ("THINKTWICE_CACHE_DIR", "NUMBA_CACHE_DIR"))
    if of_numba and not ours:
        return Path(of_numba) / "thinktwice"
    return Path(ours or platformdirs.user_cache_dir("thinktwice"))


def cache_folder(room: Path = ROOM) -> Path:
    """The folder for the present sources; the last resorts lie below the temporary directory.

    What lies in them is run: one that is not of this user alone is not used, but one of this process.
    """
    folder = cache_parent() / "numba" / source_hash(room)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if writable:
        return folder
    shared = _temporary_folder(room)
    return shared if _doubt(shared) is None else _folder_of_this_process()


def why_nothing_is_kept() -> str | None:
    """Why compiled code is gone with this process; None where it stays."""
    if not cache_folder().name.startswith(OF_THIS_PROCESS):
        return None
    shared = _temporary_folder(ROOM)
    return f"compiled code is not kept: {shared} {_doubt(shared)}"


def _temporary_folder(room: Path) -> Path:
    return Path(tempfile.gettempdir()) / f"thinktwice-numba-{os.getuid()}-{source_hash(room)}"


def _doubt(folder: Path) -> str | None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        return f"cannot be made: {error.strerror}"
    if found.st_uid != os.getuid():
        return "belongs to another user"
    return "is open to other users" if found.st_mode & 0o077 else None


@cache
def _folder_of_this_process() -> Path:
    folder = Path(tempfile.mkdtemp(prefix=OF_THIS_PROCESS))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def full_mark() -> Path:
    """The file that stands in the folder once everything was compiled into it."""
    return cache_folder() / "engine-compiled"
