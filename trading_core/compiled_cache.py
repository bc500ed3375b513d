"""Where compiled code is cached.

One folder per state of the sources, so that a stale result cannot be loaded.

numba keys its disk cache on the file of the compiled function only; an edited helper in another file leaves
the old result in use. The folder name therefore carries the hash of every source file of the engine.
"""

import hashlib
import os
import sys
import tempfile
from pathlib import Path

import platformdirs

ROOM = Path(__file__).resolve().parent


def source_hash(room: Path = ROOM) -> str:
    """First 16 hex digits of the SHA-256 over all Python sources below `room`, in path order."""
    digest = hashlib.sha256()
    for path in sorted(room.rglob("*.py")):
        digest.update(path.relative_to(room).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def cache_parent() -> Path:
    """Where folders of what can be made again lie, whether or not it is there."""
    return Path(os.environ.get("THINKTWICE_CACHE_DIR") or platformdirs.user_cache_dir("thinktwice"))


def cache_folder(room: Path = ROOM) -> Path:
    """The folder for the present sources, below the temporary directory as a last resort."""
    folder = cache_parent() / "numba" / source_hash(room)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    return (
        folder
        if writable
        else Path(tempfile.gettempdir()) / f"thinktwice-numba-{os.getuid()}-{source_hash(room)}"
    )


def full_mark() -> Path:
    """The file that stands in the folder once everything was compiled into it."""
    return cache_folder() / "engine-compiled"


def use_cache_of_these_sources() -> None:
    """Point numba at the folder, whether or not numba is imported already."""
    folder = str(cache_folder())
    os.environ["NUMBA_CACHE_DIR"] = folder
    numba = sys.modules.get("numba")
    if numba is not None:
        numba.config.CACHE_DIR = folder
